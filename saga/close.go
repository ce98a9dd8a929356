package saga

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// ErrNotWaiting is returned by Close for a saga that needs another action first; the message
// names it.
var ErrNotWaiting = errors.New("the saga does not wait for this decision")

// Close records a reviewer's statement that a saga which goes neither on nor back by itself has
// been handled: it is over, and no longer waits. Nothing is sent or undone, and the recorded
// state of its steps is unchanged. A saga with an open write is not closed: decide about that
// write first.
//
// By and reason are required and kept. It fails with [ErrNotFound], [ErrIncomplete],
// [ErrNotWaiting], or [engine.ErrForbidden] for an agent and for a name that is not the caller's.
// A saga that is already closed is returned as it is.
func (r *Runner) Close(ctx context.Context, tenant, id, by, reason string) (Saga, error) {
	if by == "" || reason == "" || len(by) > maxBy {
		return Saga{}, ErrIncomplete
	}
	switch who := engine.Caller(ctx); {
	case who.Role == engine.RoleAgent:
		return Saga{}, fmt.Errorf("%w: the credentials are an agent's; an operator closes a saga", engine.ErrForbidden)
	case who.Name != "" && who.Name != by:
		return Saga{}, fmt.Errorf("%w: the decision is in the name of %q, the credentials are those of %q", engine.ErrForbidden, by, who.Name)
	}
	for range maxStale {
		t, err := r.read(ctx, tenant, id)
		if err != nil {
			return Saga{}, err
		}
		if t.body.State == Closed {
			return r.picture(ctx, t)
		}
		if err := t.closed(decisionOf(ctx, by, reason, t.document.Now)); err != nil {
			return Saga{}, err
		}
		switch _, err := r.file(ctx, &t, time.Time{}, nil); {
		case errors.Is(err, ledger.ErrStale):
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

// closed applies a reviewer's decision to close to the body, or returns what must be done first.
func (t *loaded) closed(by *Decision) error {
	m := next(t.body, t.known, t.document.Now, false)
	if m.do != rest || m.state != Review || m.poll {
		return fmt.Errorf("%w: saga %q is %s: %s", ErrNotWaiting, t.document.ID, m.state, m.reason)
	}
	for i, s := range t.body.Steps {
		if k := t.known[i]; s.begun() && !k.ends() {
			return fmt.Errorf("%w: step %q of saga %q is open: write %s is %s", ErrNotWaiting, s.Name, t.document.ID, s.write(), k.rec.Phase())
		}
	}
	b := t.body.took(m, "", "", t.document.Now)
	b.Closed = by
	b.says(Closed, fmt.Sprintf("closed by %s: %s. What was left: %s", by.By, by.Reason, b.Reason), t.document.Now)
	t.body = b
	return nil
}

// ends reports whether a write needs no further work.
func (k known) ends() bool {
	switch k.fate() {
	case fateDone, fateAccepted, fateNothing, fateUnknown:
		return true
	}
	return false
}
