package connectors

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrBlind is what reads of a blind destination fail with; nobody makes any.
var ErrBlind = errors.New("nothing can be read at this destination")

// ErrNoTarget is wrapped by the error of a read where the destination says that the
// table, column, mailbox, path or tool of the configuration does not exist. Reading again
// does not help: where nothing was sent, the write is not applied.
var ErrNoTarget = errors.New("there is no such table, column, mailbox, path or tool")

// ErrScope is wrapped when a destination cannot list what a [Scope] asks for.
var ErrScope = errors.New("this cannot be listed")

// Fate is what is known about one send.
type Fate string

// The fates. The zero value, like every error that is not of a kind below, is
// unknown.
const (
	FateUnknown   Fate = ""          // it may have been applied, now or later
	FateAnswered  Fate = "answered"  // the destination said yes; whether it is true, a read tells
	FateNotSent   Fate = "not_sent"  // proof that nothing left us
	FateRefused   Fate = "refused"   // the destination said no to this send
	FateThrottled Fate = "throttled" // the destination said not now to this send
	// FateLogin: the destination refused our credentials, and so every write of
	// them. It says nothing about this one.
	FateLogin Fate = "login_refused"
)

// Error is an error of a known kind. Whatever a connector returns that does
// not wrap one is ambiguous.
type Error struct {
	Fate Fate
	// RetryAfter is how long the destination asked us to wait. Default: it
	// did not say.
	RetryAfter time.Duration
	// Conflict marks a refusal that says the record exists already or is no
	// longer as it was (409, 412, unique violation). After an earlier send of
	// unknown fate it is evidence that the earlier one landed.
	Conflict bool
	// Code is the destination's own code ("422", "NO [OVERQUOTA]").
	Code string
	Err  error
}

// fateWords say what became of one call.
var fateWords = map[Fate]string{
	FateNotSent:   "nothing was sent",
	FateRefused:   "refused",
	FateThrottled: "throttled",
	FateLogin:     "the login was refused",
}

// Error says what is known first.
func (e *Error) Error() string {
	known := "unknown whether applied"
	if words := fateWords[e.Fate]; words != "" {
		known = "not applied: " + words
	}
	return e.text(known)
}

func (e *Error) text(known string) string {
	if e.Code != "" {
		known += " (" + e.Code + ")"
	}
	return fmt.Sprintf("%s: %v", known, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// OfRead returns the error of a read, a list or a probe with a text that says
// nothing about whether a write was applied. It wraps err; nil stays nil.
func OfRead(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return &readError{err, e}
}

// readError is an error of a known kind of a read, in words of a read.
type readError struct {
	error
	kind *Error
}

// Error is the text without what its kind says of writes.
func (e *readError) Error() string {
	words := fateWords[e.kind.Fate]
	if words == "" {
		words = "failed"
	}
	return strings.Replace(e.error.Error(), e.kind.Error(), e.kind.text(words), 1)
}

// Unwrap returns the error as the connector made it.
func (e *readError) Unwrap() error { return e.error }

// NotSent says that provably nothing left us.
func NotSent(err error) error { return &Error{Fate: FateNotSent, Err: err} }

// Refused says that the destination definitely did not apply this send.
func Refused(code string, err error) error {
	return &Error{Fate: FateRefused, Code: code, Err: err}
}

// Conflict is a refusal because the record exists, or changed.
func Conflict(code string, err error) error {
	return &Error{Fate: FateRefused, Code: code, Conflict: true, Err: err}
}

// Throttled says that the destination did not apply this send and asked to
// wait; after 0 when it did not say how long.
func Throttled(after time.Duration, err error) error {
	return &Error{Fate: FateThrottled, RetryAfter: max(after, 0), Err: err}
}

// LoginRefused says that the destination refused our credentials. Nothing was
// applied, and the same write can succeed with others.
func LoginRefused(code string, err error) error {
	return &Error{Fate: FateLogin, Code: code, Err: err}
}

// FateOf says what an error of Write means. A nil error is answered; an error
// of no known kind is unknown.
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

// FieldError is an error of [Checker] that says where the intent is wrong, so that
// who made the intent of something else can name the place there. Whether another
// value would help, it says too.
type FieldError struct {
	// Path is the place in the intent, a JSON Pointer such as "/expect/to".
	Path string
	// Value says that the field is right, and its type: another value may be
	// accepted there. Default false: no value is.
	Value bool
	// Example is such a value, nil where none is known. Only with Value.
	Example any
	Err     error
}

// Error is the text of the cause, which names the place.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// WrongField says that no value is accepted at a place of an intent, or none of that
// type, or that one is missing there.
func WrongField(path string, err error) error { return &FieldError{Path: path, Err: err} }

// WrongValue says that a value is not accepted at a place of an intent, where another
// one may be; example is such a value, nil where none is known.
func WrongValue(path string, example any, err error) error {
	return &FieldError{Path: path, Value: true, Example: example, Err: err}
}
