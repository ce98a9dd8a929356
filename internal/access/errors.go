package access

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// More errors of authentication.
var (
	// ErrNoCredentials is an [ErrUnknown]: the request has no credentials of this
	// resolver's kind. [First] asks the next one.
	ErrNoCredentials = fmt.Errorf("%w: no credentials were given", ErrUnknown)
	// ErrUnavailable: the owner of the credentials cannot be determined now. It does not
	// say that they are bad.
	ErrUnavailable = errors.New("credentials cannot be checked now")
	// ErrTooMany is wrapped by [TooManyError].
	ErrTooMany = errors.New("too many attempts")
)

// Errors of creating and revoking.
var (
	// ErrInvalid: the request is not valid; the text has the remedy.
	ErrInvalid = errors.New("invalid")
	// ErrNoToken: the tenant has no such token.
	ErrNoToken = errors.New("no such token")
)

// TooManyError reports that an address came too often with bad credentials.
type TooManyError struct {
	// After is how long the caller has to wait.
	After time.Duration
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s with bad credentials; try again in %s", ErrTooMany, e.After.Round(time.Second))
}

// Unwrap returns [ErrTooMany].
func (e *TooManyError) Unwrap() error { return ErrTooMany }

// Refused is an API's response to an error of a [Resolver] or of [Identity.May]: the
// status, and the header fields that belong to it. Any other error is a 500.
func Refused(err error) (status int, header http.Header) {
	header = http.Header{}
	var many *TooManyError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(limit.After.Seconds()))))
		return http.StatusTooManyRequests, header
	case errors.As(err, &many):
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(many.After.Seconds()))))
		return http.StatusTooManyRequests, header
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(restFor.Seconds()))))
		return http.StatusServiceUnavailable, header
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden, header
	case errors.Is(err, ErrUnknown):
		// Basic is not offered as well, though a token works as its password: when a page
		// of the review UI loads or refreshes, a browser would ask its user for a user
		// name and a password, and from then on send them with requests of other pages.
		header.Set("WWW-Authenticate", `Bearer realm="readback"`)
		return http.StatusUnauthorized, header
	}
	return http.StatusInternalServerError, header
}
