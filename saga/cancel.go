package saga

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// maxBy bounds a name, in bytes.
const maxBy = 255

// Errors of Cancel. The call changed nothing.
var (
	// ErrTooLate: the saga can no longer be cancelled. The message gives the known state.
	ErrTooLate = errors.New("too late to cancel")
	// ErrIncomplete: the name or the reason of the cancellation is missing.
	ErrIncomplete = errors.New("a cancellation needs a name (by) and a reason")
)

// Cancel decides that a saga goes back. Before its pivot was begun, completed steps are undone
// and a write of which nothing was sent is withdrawn. A step that is held back for its grace is
// never sent; after the pivot nothing else changes. The ledger decides whether the cancellation
// or the next step came first. Cancel returns the saga's state then; a worker or a call of Run
// carries it back.
//
// By and reason are required and kept. It fails with [ErrNotFound], [ErrIncomplete],
// [ErrTooLate], or [engine.ErrForbidden] for an agent that did not begin it and for a name that
// is not the caller's. A saga that already goes back is returned as it is.
func (r *Runner) Cancel(ctx context.Context, tenant, id, by, reason string) (Saga, error) {
	if by == "" || reason == "" || len(by) > maxBy {
		return Saga{}, ErrIncomplete
	}
	for range maxStale {
		t, err := r.read(ctx, tenant, id)
		if err != nil {
			return Saga{}, err
		}
		if err := t.mayCancel(engine.Caller(ctx), by); err != nil {
			return Saga{}, err
		}
		if t.body.Back != nil || t.body.Stopped != nil || t.body.State == Undone {
			return r.picture(ctx, t)
		}
		if err := t.cancelled(decisionOf(ctx, by, reason, t.document.Now)); err != nil {
			return Saga{}, err
		}
		switch _, err := r.file(ctx, &t, t.document.Now, nil, t.withdrawal(t.body.last(), by, "cancelled", reason)...); {
		case errors.Is(err, ledger.ErrStale), changedHands(err):
			if !pause.For(ctx, jitter()) {
				return Saga{}, ctx.Err()
			}
		case err != nil:
			return Saga{}, err
		default:
			return r.picture(ctx, t)
		}
	}
	return Saga{}, fmt.Errorf("%w: saga %q changes all the time", ledger.ErrStale, id)
}

// mayCancel stops agents from cancelling others' sagas, and all callers from cancelling in
// another's name.
func (t loaded) mayCancel(p engine.Principal, by string) error {
	switch {
	case p.Name != "" && p.Name != by:
		return fmt.Errorf("%w: the cancellation is in the name of %q, the credentials are those of %q", engine.ErrForbidden, by, p.Name)
	case p.Role == engine.RoleAgent && (p.Name == "" || p.Name != t.body.By):
		return fmt.Errorf("%w: the credentials are an agent's (%q), which did not begin saga %q", engine.ErrForbidden, p.Name, t.document.ID)
	}
	return nil
}

// withdrawal ends the write of a step when the saga goes back, if nothing was sent and no worker
// has it: in the same commit, so that it is never sent.
func (t loaded) withdrawal(step int, by, rule, reason string) []ledger.Appending {
	k := t.known[step]
	if t.body.Back == nil || !k.withdrawable(t.document.Now) {
		return nil
	}
	ev := ledger.Event{Kind: ledger.EvSettled, By: by, Rule: rule, Reason: clipped(reason) + "; nothing was sent", Settlement: ledger.NotApplied}
	if k.rec.State == ledger.Held {
		ev.Settlement = ledger.Denied
	}
	if trace := t.body.Back.Trace; trace != k.rec.Trace {
		ev.Trace = trace
	}
	return []ledger.Appending{{ID: k.rec.ID, Fence: k.rec.Fence, Events: []ledger.Event{ev}}}
}

// decisionOf is a reviewer's decision about a saga.
func decisionOf(ctx context.Context, by, reason string, now time.Time) *Decision {
	return &Decision{By: by, Reason: clipped(reason), At: now, Rule: ruleReviewer, Trace: engine.Traceparent(ctx)}
}

// cancelled applies a cancellation to the body, or returns why it is too late.
func (t *loaded) cancelled(by *Decision) error {
	b := t.body.copy()
	now := t.document.Now
	if b.State == Done || b.State == Closed {
		return fmt.Errorf("%w: saga %q is %s: %s", ErrTooLate, t.document.ID, b.State, b.Reason)
	}
	next := slices.IndexFunc(b.Steps, func(s bodyStep) bool { return !s.begun() })
	if b.Past {
		if next < 0 || !b.Steps[next].heldBack(now) {
			return t.tooLate(b.last())
		}
		b.Stopped = by
		b.says(Review, b.first(next, now, false).reason, now)
		t.body = b
		return nil
	}
	for i, s := range b.Steps {
		if s.begun() && s.Class != intent.Compensable && t.known[i].fate() != fateNothing {
			return t.tooLate(i)
		}
	}
	b.Back = by
	b.says(Undoing, fmt.Sprintf("cancelled by %s: %s", by.By, by.Reason), now)
	t.body = b
	return nil
}

// heldBack reports whether the step is to be held back, and its grace is not over.
func (s bodyStep) heldBack(now time.Time) bool {
	return s.Grace > 0 && (s.NotBefore.IsZero() || now.Before(s.NotBefore))
}

// last is the last step that was begun.
func (b body) last() int {
	last := 0
	for i, s := range b.Steps {
		if s.begun() {
			last = i
		}
	}
	return last
}

// tooLate describes the step that cannot be taken back.
func (t *loaded) tooLate(i int) error {
	s := t.body.Steps[i]
	what := "nothing is known of it"
	if t.known[i].there {
		what = engine.OutcomeOf(t.known[i].rec).Text
	}
	if t.known[i].fate() == fateHeld {
		what += " Denying it makes the saga go back."
	}
	return fmt.Errorf("%w: step %q (%s, write %s) was begun, and is not taken back: %s", ErrTooLate, s.Name, s.Class, s.write(), what)
}
