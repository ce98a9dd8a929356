package receipt

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// clipped is how much of an external text an error repeats, in bytes.
const clipped = 80

// The errors, for errors.Is.
var (
	// ErrNotObserved: what a receipt would state of the write was not observed. The message gives
	// the reason, and what could change it.
	ErrNotObserved = errors.New("no receipt")
	// ErrContradiction: the record, its intent and its events differ. It wraps
	// [ledger.ErrCorrupt]: the ledger was altered, or it is damaged.
	ErrContradiction = fmt.Errorf("%w: the record and its events contradict each other", ledger.ErrCorrupt)
	// ErrInvalid: the signed text is not a receipt that this version can read, or contradicts
	// itself. The message names the field.
	ErrInvalid = errors.New("not a valid receipt")
	// ErrAnother: the receipt is genuine, and about another write or another intent than the
	// requested one.
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

// clip shortens external text for a message.
func clip(s string) string { return strconv.Quote(visible.Cut(s, clipped)) }
