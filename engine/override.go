package engine

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/ledger"
)

// Yield lets the business operation of a write go: from then on its idempotency
// key stops no other write, whatever this one did or may yet do. It is an
// operator's override, kept with name and reason, and changes nothing else about
// the write. Doing it again changes nothing.
//
// It fails with [ErrForbidden], [ledger.ErrNotFound], or [ErrNotWaiting] for a
// write that has no idempotency key or that cannot be let go as it stands: a
// held one is denied instead, of one that is being sent or undone the end must
// be waited for.
func (e *Engine) Yield(ctx context.Context, tenant string, id ledger.ID, by, reason string) error {
	if err := mayDecide(ctx, by, reason); err != nil {
		return err
	}
	if who := Caller(ctx); who.Role == RoleReviewer {
		return fmt.Errorf("%w: %q decides about writes, and letting an operation go is an operator's to say", ErrForbidden, who.Name)
	}
	ctx = context.WithoutCancel(ctx) // a short wait is no reason not to decide
	for range yieldTries {
		rec, err := e.ledger.Get(ctx, tenant, id)
		switch {
		case err != nil:
			return err
		case rec.Yielded:
			return nil
		case rec.State == ledger.Held && rec.Entrusted:
			return fmt.Errorf("%w: %s waits for approval; reject step %q of workflow %q at the gate, and it stops no other write", ErrNotWaiting, id, rec.Step, rec.Workflow)
		case rec.State == ledger.Held:
			return fmt.Errorf("%w: %s waits for approval; deny it, and it stops no other write", ErrNotWaiting, id)
		case rec.State == ledger.Sending, rec.State == ledger.Compensating:
			return fmt.Errorf("%w: %s is %s; its end must be waited for", ErrNotWaiting, id, rec.Phase())
		case rec.IdempotencyKey == "":
			return fmt.Errorf("%w: %s has no idempotency key, and so stops no other write", ErrNotWaiting, id)
		}
		// Under the fence of whoever works on it: nothing that they do depends on
		// this, and this depends on nothing that they do.
		_, err = e.ledger.Append(ctx, id, rec.Fence, ledger.Event{Kind: ledger.EvYielded, By: by, Reason: e.text(rec, reason), Rule: "person",
			Trace: causedBy(trace.SpanContextFromContext(ctx), rec)})
		switch {
		case errors.Is(err, ledger.ErrFenced): // it changed hands meanwhile
		case errors.Is(err, ledger.ErrIllegalMove):
			return fmt.Errorf("%w: %s is %s: %w", ErrNotWaiting, id, rec.Phase(), err)
		default:
			return err
		}
	}
	return fmt.Errorf("%w: %s changes hands too often", ErrBusy, id)
}

// AwaitPrior waits for the write that stopped another one, as the error of
// [Engine.Do] or [Engine.Enqueue] tells, and returns its outcome: that write is
// the operation. What a workflow does itself is only watched. An error that is
// no [ledger.BlockedError] is returned as it is.
func (e *Engine) AwaitPrior(ctx context.Context, err error) (Outcome, error) {
	var blocked *ledger.BlockedError
	if !errors.As(err, &blocked) {
		return Outcome{}, err
	}
	prior := blocked.Prior
	if !prior.Entrusted {
		return e.Wait(ctx, prior.Tenant, prior.ID, true)
	}
	for pace := newFollowPace(); ; {
		now, err := e.ledger.Get(context.WithoutCancel(ctx), prior.Tenant, prior.ID)
		switch {
		case err != nil:
			return Outcome{}, err
		case now.State != ledger.Entrusted || !sleep(ctx, e.ctx, pace.NextBackOff()):
			return outcomeOf(now, true), nil
		}
	}
}
