package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// maxEffect is how many open writes of a tenant are read to count the workflows that a stop
// affects: a preview must be there at once.
const maxEffect = 1000

// StopEffect is what a stop of a scope would affect now.
type StopEffect struct {
	Destination string         `json:"destination,omitempty" jsonschema:"of this destination; without it of all"`
	Tool        string         `json:"tool,omitempty" jsonschema:"of this tool; without it of all"`
	Writes      []StopAffected `json:"writes" jsonschema:"the open writes by state, and what happens to them"`
	Workflows   int            `json:"workflows" jsonschema:"how many workflows have such a write"`
	Sagas       int            `json:"sagas" jsonschema:"how many unfinished sagas have such a step"`
	More        bool           `json:"more" jsonschema:"some were not counted: workflows, sagas and, with a tool, writes are at least as many"`
	// Stops are those in force that hold sends of the scope already.
	Stops []guards.Stopped `json:"-"`
}

// StopAffected are the open writes in one state.
type StopAffected struct {
	State ledger.State `json:"state"`
	Count int          `json:"count"`
	What  string       `json:"effect" jsonschema:"what the stop does to them; for people"`
}

// stopEffects is what a stop does to writes by their state, those that it holds first.
var stopEffects = []StopAffected{
	{State: ledger.Queued, What: "They wait and are sent after the release."},
	{State: ledger.Held, What: "They can still be approved or denied. Approved ones are sent after the release."},
	{State: ledger.Sending, What: "Calls in flight end, and readback reads the result back. Nothing is sent again before the release."},
	{State: ledger.Checking, What: "They are still read back, and most need nothing else. A second send waits for the release."},
	{State: ledger.Compensating, What: "An undo that was not sent waits for the release. One that was sent is still read back."},
	{State: ledger.Review, What: "They can still be decided. A decision that sends something waits for the release."},
	{State: ledger.Delegated, What: "The stop does not hold them: their callers send them."},
}

// StopEffect counts what a stop of the own tenant would affect.
func (o *Service) StopEffect(ctx context.Context, who Who, s guards.Scope) (StopEffect, error) {
	if err := who.May(access.Trace); err != nil {
		return StopEffect{}, err
	}
	if err := o.own(who, &s); err != nil {
		return StopEffect{}, err
	}
	return EffectOf(ctx, o.parts.Ledger, o.parts.Sagas, s)
}

// own makes a scope one of the caller's tenant.
func (o *Service) own(who Who, s *guards.Scope) error {
	if s.Tenant != "" && s.Tenant != who.Tenant {
		return fmt.Errorf("%w: a stop of another tenant", ErrTenant)
	}
	s.Tenant = who.Tenant
	if s.Destination != "" && !slices.Contains(o.parts.Registry.NamesFor(who.Tenant), s.Destination) {
		return fmt.Errorf("%w: %q", connectors.ErrUnknownDestination, s.Destination)
	}
	return nil
}

// EffectOf counts what a stop of any scope would affect. Without sagas it counts none.
func EffectOf(ctx context.Context, l ledger.Ledger, sagas Sagas, s guards.Scope) (StopEffect, error) {
	e := StopEffect{Destination: s.Destination, Tool: s.Tool}
	stats, err := l.QueueStats(ctx)
	if err != nil {
		return e, err
	}
	counts, tenants := map[ledger.State]int{}, []string{}
	for _, q := range stats.Queues {
		if s.Tenant != "" && q.Tenant != s.Tenant || s.Destination != "" && q.Destination != s.Destination {
			continue
		}
		if s.Tool == "" {
			counts[q.State] += q.Count
		}
		if !slices.Contains(tenants, q.Tenant) {
			tenants = append(tenants, q.Tenant)
		}
	}
	if s.Tenant != "" {
		tenants = []string{s.Tenant} // a saga can have a step that is no write yet
	}
	for _, tenant := range tenants {
		if err := e.read(ctx, l, tenant, s, counts); err != nil {
			return e, err
		}
		if err := e.readSagas(ctx, sagas, tenant, s); err != nil {
			return e, err
		}
	}
	e.Writes = slices.Clone(stopEffects)
	for i := range e.Writes {
		e.Writes[i].Count = counts[e.Writes[i].State]
	}
	stops, err := guards.Stops(ctx, l)
	for _, one := range stops {
		if one.Active && (one.Tenant == "" || one.Tenant == s.Tenant) && (one.Destination == "" || one.Destination == s.Destination) && (one.Tool == "" || one.Tool == s.Tool) {
			e.Stops = append(e.Stops, one)
		}
	}
	return e, err
}

// read counts the workflows of a tenant, and with a tool its writes.
func (e *StopEffect) read(ctx context.Context, l ledger.Ledger, tenant string, s guards.Scope, counts map[ledger.State]int) error {
	workflows := map[string]bool{}
	search := ledger.Search{Tenant: tenant, Destination: s.Destination, Limit: 200}
	for _, one := range stopEffects {
		search.States = append(search.States, one.State)
	}
	for n := 0; ; {
		found, err := l.Find(ctx, search)
		if err != nil {
			return err
		}
		for _, r := range found.Records {
			if s.Tool == "" || r.Tool == s.Tool {
				workflows[r.Workflow] = true
				if s.Tool != "" {
					counts[r.State]++
				}
			}
		}
		n += len(found.Records)
		e.More = e.More || len(found.Unread) > 0 || found.Next != "" && n >= maxEffect
		if found.Next == "" || n >= maxEffect {
			break
		}
		search.After = found.Next
	}
	e.Workflows += len(workflows)
	return nil
}

// readSagas counts the unfinished sagas of a tenant with a step, or the undo of one, that is
// in the scope and not done.
func (e *StopEffect) readSagas(ctx context.Context, sagas Sagas, tenant string, s guards.Scope) error {
	if sagas == nil {
		return nil
	}
	all, err := sagas.List(ctx, tenant, maxPending, saga.Running, saga.Undoing)
	if err != nil {
		return err
	}
	e.More = e.More || len(all) == maxPending
	for _, one := range all {
		if slices.ContainsFunc(one.Steps, func(p saga.StepState) bool {
			status := p.Status
			if one.State == saga.Undoing {
				status = p.UndoStatus
			}
			ended := status.Group() == ledger.Done || status.Group() == ledger.NotDone
			begun := one.State == saga.Running || p.WriteID != "" && p.Undoing != ""
			return begun && !ended && (s.Destination == "" || p.Destination == s.Destination) && (s.Tool == "" || p.Tool == s.Tool)
		}) {
			e.Sagas++
		}
	}
	return nil
}
