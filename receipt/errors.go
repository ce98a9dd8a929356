package receipt

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/ledger"
)

// The errors, to be asked for with errors.Is.
var (
	// ErrNotObserved: what a receipt would say of the write was not observed. The
	// message says why, and what could change it.
	ErrNotObserved = errors.New("no receipt")
	// ErrContradiction: the record, its intent and its events do not say the same.
	// It wraps [ledger.ErrCorrupt]: somebody altered the ledger, or it is damaged.
	ErrContradiction = fmt.Errorf("%w: the record and its events contradict each other", ledger.ErrCorrupt)
	// ErrInvalid: what was signed is no receipt that this version can read, or one
	// that contradicts itself. The message names the field.
	ErrInvalid = errors.New("not a valid receipt")
	// ErrAnother: the receipt is genuine, and about another write or another intent
	// than the one that was asked for.
	ErrAnother = errors.New("a receipt of something else")
)

func another(how string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrAnother, fmt.Sprintf(how, args...))
}

func unobserved(why string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotObserved, fmt.Sprintf(why, args...))
}

func contradiction(what string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrContradiction, fmt.Sprintf(what, args...))
}

func invalid(field, what string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, field, fmt.Sprintf(what, args...))
}

// clip shortens text from outside for a message.
func clip(s string) string {
	if len(s) <= clipped {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:clipped], len(s))
}
