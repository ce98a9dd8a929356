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

// More errors of whoever comes in.
var (
	// ErrNoCredentials is an [ErrUnknown]: the request carries nothing that this
	// resolver looks at. [First] asks the next one.
	ErrNoCredentials = fmt.Errorf("%w: no credentials were given", ErrUnknown)
	// ErrUnavailable: whose credentials these are cannot be found out now. It
	// says nothing about them.
	ErrUnavailable = errors.New("credentials cannot be checked now")
	// ErrTooMany is wrapped by [TooManyError].
	ErrTooMany = errors.New("too many attempts")
)

// Errors of whoever makes and revokes.
var (
	// ErrInvalid: what is asked for cannot be; the text says what would be right.
	ErrInvalid = errors.New("invalid")
	// ErrNoToken: the tenant has no such token.
	ErrNoToken = errors.New("no such token")
)

// TooManyError says that an address came too often with bad credentials.
type TooManyError struct {
	// After is how long it has to wait.
	After time.Duration
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s with bad credentials; try again in %s", ErrTooMany, e.After.Round(time.Second))
}

// Unwrap returns [ErrTooMany].
func (e *TooManyError) Unwrap() error { return ErrTooMany }

// Refused is how a door answers an error of a [Resolver] or of [Identity.May]:
// the status, and the header fields that belong to it. Anything that is none of
// ours is a 500.
func Refused(err error) (status int, header http.Header) {
	header = http.Header{}
	var many *TooManyError
	switch {
	case errors.As(err, &many):
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(many.After.Seconds()))))
		return http.StatusTooManyRequests, header
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(restFor.Seconds()))))
		return http.StatusServiceUnavailable, header
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden, header
	case errors.Is(err, ErrUnknown):
		// Not Basic as well, though a token works as its password: a browser would ask
		// a person who opens a page of the review UI, or lets it refresh itself, for a user
		// and a password, and send them from then on with what other pages ask for.
		header.Set("WWW-Authenticate", `Bearer realm="readback"`)
		return http.StatusUnauthorized, header
	}
	return http.StatusInternalServerError, header
}
