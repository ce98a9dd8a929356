package connectors

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrWriteOnly is the error of a read of a write-only destination. The engine makes none.
var ErrWriteOnly = errors.New("nothing can be read at this destination")

// ErrNoTarget is wrapped by the error of a read where the destination reports that the configured
// table, column, mailbox, path or tool does not exist. Reading again does not help: if nothing
// was sent, the write is not applied.
var ErrNoTarget = errors.New("there is no such table, column, mailbox, path or tool")

// ErrScope is wrapped when a destination cannot list a [Scope].
var ErrScope = errors.New("this cannot be listed")

// Fate is what is known about one send.
type Fate string

// The fates. The zero value, like every error that is not of a kind below, is
// unknown.
const (
	FateUnknown   Fate = ""          // it may have been applied, now or later
	FateAnswered  Fate = "answered"  // the destination accepted; only a read shows whether that is true
	FateNotSent   Fate = "not_sent"  // proof that nothing left us
	FateRefused   Fate = "refused"   // the destination refused this send
	FateThrottled Fate = "throttled" // the destination deferred this send
	// FateLogin: the destination refused our credentials, and so every write with them. It is not
	// about this write.
	FateLogin Fate = "login_refused"
)

// Error is an error of a known kind. Whatever a connector returns that does
// not wrap one is ambiguous.
type Error struct {
	Fate Fate
	// RetryAfter is how long the destination asked us to wait. Default: not given.
	RetryAfter time.Duration
	// Conflict marks a refusal because the record exists already or has changed (409, 412, unique
	// violation). After an earlier send of unknown fate it is evidence that the earlier send was
	// applied.
	Conflict bool
	// Code is the destination's own code ("422", "NO [OVERQUOTA]").
	Code string
	Err  error
}

// fateWords describe the fate of one call.
var fateWords = map[Fate]string{
	FateNotSent:   "nothing was sent",
	FateRefused:   "the destination refused it",
	FateThrottled: "the destination asked to wait",
	FateLogin:     "the destination refused the login",
}

// Error begins with what is known.
func (e *Error) Error() string {
	known := "unknown whether applied"
	if words := fateWords[e.Fate]; words != "" {
		known = "not applied: " + words
	}
	return e.text(known)
}

// text leaves out what the cause or the known part says as well.
func (e *Error) text(known string) string {
	cause := fmt.Sprint(e.Err)
	if e.Code != "" && !strings.Contains(cause, e.Code) {
		known += " (" + e.Code + ")"
	}
	if fateWords[e.Fate] != "" {
		cause = strings.TrimPrefix(cause, "the destination answered ")
	}
	return known + ": " + cause
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// OfRead returns the error of a read, a list or a probe, with a text that does not mention
// whether a write was applied. It wraps err; nil stays nil.
func OfRead(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return &readError{err, e}
}

// readError is an error of a known kind of a read, with the text for reads.
type readError struct {
	error
	kind *Error
}

// Error is the text without the part about writes.
func (e *readError) Error() string {
	words := fateWords[e.kind.Fate]
	if words == "" {
		words = "failed"
	}
	return strings.Replace(e.error.Error(), e.kind.Error(), e.kind.text(words), 1)
}

// Unwrap returns the error as the connector made it.
func (e *readError) Unwrap() error { return e.error }

// NotSent returns an error: provably nothing left this process.
func NotSent(err error) error { return &Error{Fate: FateNotSent, Err: err} }

// Refused returns an error: the destination definitely did not apply this send.
func Refused(code string, err error) error {
	return &Error{Fate: FateRefused, Code: code, Err: err}
}

// Conflict is a refusal because the record exists, or changed.
func Conflict(code string, err error) error {
	return &Error{Fate: FateRefused, Code: code, Conflict: true, Err: err}
}

// Throttled returns an error: the destination did not apply this send and asked to wait. after is
// 0 when it did not say how long.
func Throttled(after time.Duration, err error) error {
	return &Error{Fate: FateThrottled, RetryAfter: max(after, 0), Err: err}
}

// LoginRefused returns an error: the destination refused our credentials. Nothing was applied,
// and the same write can succeed with others.
func LoginRefused(code string, err error) error {
	return &Error{Fate: FateLogin, Code: code, Err: err}
}

// FateOf returns the fate that an error of Write means. A nil error is answered; an error of no
// known kind is unknown.
func FateOf(err error) Fate {
	if err == nil {
		return FateAnswered
	}
	var e *Error
	if errors.As(err, &e) {
		switch e.Fate {
		case FateNotSent, FateRefused, FateThrottled, FateLogin:
			return e.Fate
		}
	}
	return FateUnknown
}

// FieldError is an error of [Checker] that names the wrong place of the intent, so that a caller
// that built the intent from other data can name the place there. It also says whether another
// value would help.
type FieldError struct {
	// Path is the place in the intent, a JSON Pointer such as "/expect/to".
	Path string
	// Value means that the field and its type are right: another value may be accepted there.
	// Default false: no value is.
	Value bool
	// Example is such a value, nil where none is known. Only with Value.
	Example any
	Err     error
}

// Error is the text of the cause, which names the place.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// WrongField returns an error: at this place of an intent no value is accepted, or none of that
// type, or a value is missing.
func WrongField(path string, err error) error { return &FieldError{Path: path, Err: err} }

// WrongValue returns an error: the value is not accepted at this place of an intent, where
// another one may be. example is such a value, nil where none is known.
func WrongValue(path string, example any, err error) error {
	return &FieldError{Path: path, Value: true, Example: example, Err: err}
}
