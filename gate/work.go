package gate

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// workEvery is the interval of searches for due holds, workBatch how many are taken at once,
	// and workLater when a failed one is tried again.
	workEvery = time.Second
	workBatch = 50
	workLater = time.Minute
)

// Work ends holds that no reviewer decided in time, until ctx ends; it returns why. Any number of
// processes may run it. Without it, a hold ends at the next read of its step.
func (g *Gate) Work(ctx context.Context) error {
	for {
		if err := g.lapse(ctx); err != nil && ctx.Err() == nil {
			g.options().Logger.WarnContext(ctx, "holds that are due could not be read", "error", err)
		}
		if !pause.For(ctx, workEvery) {
			return context.Cause(ctx)
		}
	}
}

// lapse ends a batch of the holds that are due now.
func (g *Gate) lapse(ctx context.Context) error {
	documents, now, err := g.store.DueDocuments(ctx, kindStep, workBatch)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range documents {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.lapseStep(ctx, p.Tenant, p.Collection, strings.TrimPrefix(p.ID, p.Collection+"/")); err != nil {
			g.options().Logger.WarnContext(ctx, "a hold that is due could not be ended", "tenant", p.Tenant, "step", p.ID, "error", err)
			// One that fails must not delay the others.
			p.Due = now.Add(workLater)
			if _, err := g.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}}); err != nil && !errors.Is(err, ledger.ErrStale) {
				failed = cmp.Or(failed, err)
			}
		}
	}
	return failed
}

// lapseStep ends the hold of a step if its deadline has passed. A hold of an ended workflow is
// refused.
func (g *Gate) lapseStep(ctx context.Context, tenant, workflowID, stepID string) error {
	var was ApprovalStatus
	_, err := g.carry(ctx, tenant, workflowID, stepID, func(d documents) (plan, error) {
		was = ""
		if !d.known || d.step.status() != Pending {
			return plan{}, nil
		}
		s, events := d.step.lapsed(d.now)
		if s.status() == Pending && d.flow.Status != InProgress {
			var denied []ledger.Event
			s, denied = s.refused(byGate, "its workflow has ended: "+d.flow.Reason, d.now)
			events = append(events, denied...)
		}
		if len(events) == 0 {
			return plan{}, nil
		}
		if s.Operation != "" && d.rec == nil {
			return plan{need: needRecord}, nil
		}
		was = s.Hold.Status
		return plan{step: &s, events: s.onRecord(d.rec, events)}, nil
	})
	if err == nil && was != "" {
		g.options().Logger.WarnContext(ctx, "no reviewer approved a step in time", "tenant", tenant, "workflow", workflowID, "step", stepID, "status", was)
	}
	return err
}

// lapsePrior ends the hold of a blocking step of another workflow if its deadline has passed. It
// reports whether it may have.
func (g *Gate) lapsePrior(ctx context.Context, prior ledger.Record) bool {
	if !prior.Delegated || prior.State != ledger.Held {
		return false
	}
	p, err := g.store.Document(ctx, prior.Tenant, kindStep, stepName(prior.Workflow, prior.Step))
	if err != nil || p.Due.IsZero() || p.Due.After(p.Now) {
		return false
	}
	return g.lapseStep(ctx, prior.Tenant, prior.Workflow, prior.Step) == nil
}
