package workflow

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// Work ends holds that nobody decided about in time, until ctx ends; it returns
// why. Any number of processes may do so. Without it the same happens when such
// a step is next looked at.
func (g *Gate) Work(ctx context.Context) error {
	for {
		if err := g.lapse(ctx); err != nil && ctx.Err() == nil {
			g.options().Logger.WarnContext(ctx, "holds that are due could not be looked at", "error", err)
		}
		if !pause.For(ctx, workEvery) {
			return context.Cause(ctx)
		}
	}
}

// lapse ends the holds that are due now, a batch of them.
func (g *Gate) lapse(ctx context.Context) error {
	papers, now, err := g.store.DuePapers(ctx, kindStep, workBatch)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range papers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.lapseStep(ctx, p.Tenant, p.Binder, strings.TrimPrefix(p.ID, p.Binder+"/")); err != nil {
			g.options().Logger.WarnContext(ctx, "a hold that is due could not be ended", "tenant", p.Tenant, "step", p.ID, "error", err)
			// One that cannot be ended must not keep the others waiting.
			p.Due = now.Add(workLater)
			if _, err := g.store.File(ctx, ledger.Filing{Papers: []ledger.Paper{p}}); err != nil && !errors.Is(err, ledger.ErrStale) {
				failed = cmp.Or(failed, err)
			}
		}
	}
	return failed
}

// lapseStep ends the hold of a step if its time is over. One of a workflow that
// has ended is refused.
func (g *Gate) lapseStep(ctx context.Context, tenant, workflowID, stepID string) error {
	var was ApprovalStatus
	_, err := g.carry(ctx, tenant, workflowID, stepID, func(d desk) (plan, error) {
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
		g.options().Logger.WarnContext(ctx, "nobody approved a step in time", "tenant", tenant, "workflow", workflowID, "step", stepID, "status", was)
	}
	return err
}

// lapsePrior ends the hold of a step of another workflow that stands in the way
// though its time is over. It reports whether it may have.
func (g *Gate) lapsePrior(ctx context.Context, prior ledger.Record) bool {
	if !prior.Entrusted || prior.State != ledger.Held {
		return false
	}
	p, err := g.store.Paper(ctx, prior.Tenant, kindStep, stepName(prior.Workflow, prior.Step))
	if err != nil || p.Due.IsZero() || p.Due.After(p.Now) {
		return false
	}
	return g.lapseStep(ctx, prior.Tenant, prior.Workflow, prior.Step) == nil
}
