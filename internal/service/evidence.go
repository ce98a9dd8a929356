package service

import (
	"errors"
	"net/url"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// shown is an outcome as a caller may see it. What was read in a field that the intent
// sets is part of it. What was read in another field is evidence: a caller that may not
// trace gets only the fact that it changed. One that a reviewer must decide about has the
// address of the page for it.
func (o *Service) shown(who Who, out engine.Outcome) engine.Outcome {
	if o.parts.ReviewUI != "" && out.Status.Group() == ledger.NeedsReview {
		out.ReviewURL = o.parts.ReviewUI + "/writes/" + url.PathEscape(string(out.ID))
	}
	if who.May(access.Trace) != nil {
		out.Mismatches = engine.WithoutEvidence(out.Verdict, out.Mismatches)
	}
	return out
}

// refused is why a caller's write was refused, as the caller may see it: it can contain
// the record of the write that blocks it.
func refused(who Who, err error) error {
	var blocked *ledger.BlockedError
	if errors.As(err, &blocked) && !who.Scope.Shows(blocked.Prior) {
		return &hiddenError{blocked.Prior.Digest != blocked.Received}
	}
	if who.May(access.Trace) == nil || !errors.As(err, &blocked) || verify.ParseVerdict(blocked.Prior.Verdict) != verify.Collateral {
		return err
	}
	mine := *blocked // other callers may wait for the same error
	mine.Prior.Mismatches, mine.Prior.Evidence, mine.Prior.Before = engine.WithoutEvidence(verify.Collateral, mine.Prior.Mismatches), nil, nil
	return &blockedError{err, &mine}
}

// hiddenError is a [ledger.BlockedError] about a write outside of the scope of the
// caller: it reports that the operation was begun, and nothing else.
type hiddenError struct{ other bool }

func (h *hiddenError) Error() string {
	text := "the idempotency key was used by a write outside of the scope of this token"
	if h.other {
		text += ", which asks for something else"
	}
	return text + "; nothing was done"
}

func (h *hiddenError) Unwrap() error { return ledger.ErrBlocked }

// blockedError is an error with another record in it.
type blockedError struct {
	error
	mine *ledger.BlockedError
}

func (b *blockedError) Unwrap() error { return b.error }

// As returns the record that the caller may see.
func (b *blockedError) As(target any) bool {
	into, ok := target.(**ledger.BlockedError)
	if ok {
		*into = b.mine
	}
	return ok
}
