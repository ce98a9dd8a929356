package command

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// unreadHint is the remedy for writes that cannot be read.
const unreadHint = "Everything else continues. What became of these is in the ledger, and is unknown until their rows are repaired: keep a copy of the ledger, check the destination, then restore the rows from a backup or repair them, and set their column `damaged` to NULL. Do not submit them again unless they are idempotent. What only a newer program can read is left to that."

// unread describes the writes that a ledger left out, or nil.
func unread(err error) *failure {
	var left *ledger.UnreadError
	var known *engine.Error // has more: what is known of one write
	if !errors.As(err, &left) || errors.As(err, &known) {
		return nil
	}
	f := &failure{Kind: "unread_writes", Exit: exitAttention, Message: err.Error(), Hint: unreadHint}
	for _, w := range left.Writes {
		f.Writes = append(f.Writes, w.ID)
	}
	return f
}

// partly separates the unread part of a result from an error without a result.
func partly(err error) (left *failure, fatal error) {
	if left = unread(err); left != nil {
		return left, nil
	}
	return nil, err
}

// goesOn is where a listing that ended early continues, if it did.
func goesOn(err error) ledger.ID {
	var left *ledger.UnreadError
	if errors.As(err, &left) {
		return left.Next
	}
	return ""
}

// part prints a result and then what it lacks, which its JSON contains already, and
// returns the exit code.
func (a *app) part(v any, left *failure, text func() string) (int, error) {
	if err := a.print(v, text); err != nil || left == nil {
		return 0, err
	}
	if !a.json {
		_, _ = fmt.Fprint(a.stderr, left.text()) // the exit code has it as well
	}
	return left.Exit, nil
}
