package httpsend

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
)

// MaxRetryAfter is the longest wait that a destination can request. A date in the far future is a
// mistake or an attack, and a record that waits for it is as good as lost.
const MaxRetryAfter = 24 * time.Hour

// Classify returns what a status means for a write; nil for a 2xx. What is not known to be a
// refusal is of unknown fate. A connector for which a status has another meaning checks that
// first.
//
// now is used for dates in Retry-After.
func Classify(status int, h http.Header, now time.Time) error {
	if status >= 200 && status <= 299 {
		return nil
	}
	code := strconv.Itoa(status)
	cause := fmt.Errorf("the destination answered %s", strings.TrimSpace(code+" "+http.StatusText(status)))
	wait, _ := RetryAfter(h, now)
	switch meaning(status) {
	case throttled:
		return &connectors.Error{Fate: connectors.FateThrottled, RetryAfter: wait, Code: code, Err: cause}
	case conflict:
		return &connectors.Error{Fate: connectors.FateRefused, Conflict: true, RetryAfter: wait, Code: code, Err: cause}
	case login:
		return &connectors.Error{Fate: connectors.FateLogin, RetryAfter: wait, Code: code, Err: cause}
	case refused:
		return &connectors.Error{Fate: connectors.FateRefused, RetryAfter: wait, Code: code, Err: cause}
	case moved:
		return connectors.Refused(code, fmt.Errorf("%w: %s", cause, notFollowed))
	}
	if status > 300 && status < 304 {
		cause = fmt.Errorf("%w: %s", cause, notFollowed)
	}
	return &connectors.Error{RetryAfter: wait, Code: code, Err: cause}
}

const notFollowed = "redirects of a write are not followed; the base URL should name the final address"

type sense int

const (
	unknown sense = iota
	refused
	conflict
	throttled
	moved
	login
)

// meaning is the table. 301, 302 and 303 are not in it: they turn a POST into a GET, and servers
// also answer an accepted form so. Nor is 402, which some payment services return after they
// stored an attempt.
func meaning(status int) sense {
	switch status {
	case 307, 308:
		return moved
	case 401:
		return login
	case 400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 417, 421, 422, 423, 425, 426, 428, 431, 501, 505:
		return refused
	case 409, 412:
		return conflict
	case 429:
		return throttled
	}
	return unknown
}

// RetryAfter reads the header Retry-After in both of its forms, seconds (decimal fractions
// included) and an HTTP date. A date is relative to the answer's own Date if it has one,
// otherwise to now, so that a skewed clock is harmless. The result is between 0 and
// [MaxRetryAfter]; false if the header is missing or invalid.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s != s { // not a number
			return 0, false
		}
		return time.Duration(min(max(s, 0), MaxRetryAfter.Seconds()) * float64(time.Second)), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter), true
}
