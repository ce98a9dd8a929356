package workflow

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/readback-go/readback/ledger"
)

// Complete ends a workflow as done. What its steps may have done and nobody has
// reported is looked at as in [Gate.Fail]. It fails with an [Error] of [Terminal] when
// it has ended already, and of [ApprovalPending] while its last step waits for a
// person.
func (g *Gate) Complete(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	return g.end(ctx, c, workflowID, Completed, reason, "Workflow completed")
}

// Fail ends a workflow as failed. Default reason "Failed". What its steps may
// have done and nobody has reported stays open: its fate is not known, and the
// business operation is not begun anew, unless the destination says that nothing
// was done. Steps that wait for a person are refused.
func (g *Gate) Fail(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	return g.end(ctx, c, workflowID, Failed, cmp.Or(reason, "Failed"), "Workflow failed")
}

// Abort ends a workflow as aborted, as [Gate.Fail] does. Default reason "Aborted
// by user".
func (g *Gate) Abort(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	return g.end(ctx, c, workflowID, Aborted, cmp.Or(reason, "Aborted by user"), "Workflow aborted")
}

// Resume says that a workflow goes on. It changes nothing: a workflow goes on
// when its last step does not wait for a person, and never when it has ended.
func (g *Gate) Resume(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	if err := firstOf(c.check(), c.mayAct(), checkIDs(workflowID, "-"), text(maxReason, "reason", reason)); err != nil {
		return Ended{}, err
	}
	_, err := g.carry(ctx, c.Tenant, workflowID, "", func(d desk) (plan, error) {
		p, err := moving(d)
		if err != nil || p.need != needNothing {
			return p, err
		}
		if last, _ := d.otherStep.lapsed(d.now); d.other != nil && (last.status() == Rejected || last.status() == Expired) {
			return plan{}, &Error{Code: StepRejected, Message: "step " + last.ID + " was not approved"}
		}
		return plan{}, nil
	})
	if err != nil {
		return Ended{}, err
	}
	return Ended{WorkflowID: workflowID, Status: InProgress, Message: "Workflow resumed"}, nil
}

// moving refuses what neither a workflow that has ended nor one that waits for a
// person does.
func moving(d desk) (plan, error) {
	if d.flow.Status != InProgress {
		return plan{}, terminal(d)
	}
	if d.flow.other("") != "" && d.other == nil {
		return plan{need: needOther}, nil
	}
	if last, _ := d.otherStep.lapsed(d.now); d.other != nil && last.status() == Pending {
		return plan{}, &Error{Code: ApprovalPending, Message: "step " + last.ID + " waits for approval"}
	}
	return plan{}, nil
}

func (g *Gate) end(ctx context.Context, c Caller, workflowID string, to Status, reason, message string) (Ended, error) {
	if err := firstOf(c.check(), c.mayAct(), checkIDs(workflowID, "-"), text(maxReason, "reason", reason)); err != nil {
		return Ended{}, err
	}
	g.options().clean(c.Tenant, &reason)
	e := g.ender(c, workflowID, to, reason)
	_, err := g.carry(ctx, c.Tenant, workflowID, "", func(d desk) (plan, error) {
		if d.flow.Status != InProgress {
			return plan{}, terminal(d)
		}
		if to == Completed {
			if p, err := moving(d); err != nil || p.need != needNothing {
				return p, err
			}
		}
		return e.others(ctx, d, plan{}, "")
	})
	if err != nil {
		return Ended{}, err
	}
	return Ended{WorkflowID: workflowID, Status: to, Message: message, Reason: reason}, nil
}

// ender ends one workflow.
type ender struct {
	g          *Gate
	who        Caller
	workflowID string
	to         Status
	reason     string
	// looks are what was found at the destinations of steps that were begun and
	// not completed, by step; looked says that they were made.
	looks  map[string]*looked
	looked bool
}

func (g *Gate) ender(c Caller, workflowID string, to Status, reason string) *ender {
	return &ender{g: g, who: c, workflowID: workflowID, to: to, reason: reason}
}

// others ends the workflow in a plan: steps that wait for a person are refused,
// and what a look has shown not to have been done is settled. What is too much
// for one filing is left: a hold of a workflow that has ended is refused when
// its time comes, and a write of unknown fate stays open.
func (e *ender) others(ctx context.Context, d desk, p plan, but string) (plan, error) {
	if !e.looked {
		return plan{prepare: func(ctx context.Context) {
			e.looks, e.looked = e.g.endLooks(ctx, e.who, e.workflowID), true
		}}, nil
	}
	f := d.flow
	f.Status, f.Reason, f.EndedBy, f.EndedAt = e.to, e.reason, e.who.Name, &d.now
	p.flow = &f
	room := maxEnding
	err := e.g.eachStep(ctx, e.who.Tenant, e.workflowID, func(paper ledger.Paper, s step) error {
		if s.ID == but || len(p.ended) == maxEndingSteps || len(paper.Body) > room {
			return nil
		}
		one, err := e.ending(ctx, d, paper, s)
		if err != nil || one == nil {
			return err
		}
		if one.changed {
			room -= len(one.paper.Body)
		}
		p.ended = append(p.ended, *one)
		return nil
	})
	return p, err
}

// ending is what the end of a workflow means to one of its steps, nil for
// nothing.
func (e *ender) ending(ctx context.Context, d desk, paper ledger.Paper, s step) (*ending, error) {
	if s.status() != Pending && !e.looks[s.ID].fits(s) {
		return nil, nil
	}
	var rec ledger.Record
	if s.Operation != "" {
		var err error
		if rec, err = e.g.store.Get(ctx, e.who.Tenant, s.Operation); err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
	}
	if s.status() != Pending {
		events := e.looks[s.ID].nothingDone(rec)
		if len(events) == 0 {
			return nil, nil
		}
		return &ending{paper: paper, rec: rec, events: events}, nil
	}
	next, events := s.lapsed(d.now)
	if next.status() == Pending {
		var denied []ledger.Event
		next, denied = next.refused(byGate, "its workflow was ended by "+person(e.who.Name)+": "+e.reason, d.now)
		events = append(events, denied...)
	}
	one := &ending{paper: next.paper(paper), changed: true, rec: rec}
	if s.Operation != "" && rec.ID != "" {
		one.events = next.fitting(rec, events)
	}
	return one, nil
}

// nothingDone settles the write of a step of which a look says that nothing was
// done, or that it was.
func (l *looked) nothingDone(rec ledger.Record) []ledger.Event {
	if rec.State != ledger.Entrusted {
		return nil
	}
	read := l.read()
	switch l.verification(l.about.Ended, l.at).Effect {
	case effectAbsent:
		return []ledger.Event{read, {Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "look", Verdict: read.Verdict,
			Reason: "its workflow has ended, and nothing of it is at the destination"}}
	case effectPresent:
		return []ledger.Event{read, {Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "look", Verdict: read.Verdict, Ref: l.Ref, URL: l.URL,
			Reason: "its workflow has ended without saying so, and it was seen"}}
	}
	return nil
}

// endLooks looks at what steps that were begun and not completed may have done.
// It is bounded in number and time; what was not looked at stays open.
func (g *Gate) endLooks(ctx context.Context, c Caller, workflowID string) map[string]*looked {
	if g.options().Look == nil {
		return nil
	}
	var todo []looking
	err := g.eachStep(ctx, c.Tenant, workflowID, func(paper ledger.Paper, s step) error {
		w := s.declared()
		if w != nil && s.Operation != "" && !s.completed() && s.Lent.Fence > 0 && len(todo) < endSteps {
			todo = append(todo, *s.lookAt(*w, s.Lent.Until, paper.Now))
		}
		return nil
	})
	if err != nil {
		return nil // the end itself will say so
	}
	ctx, cancel := context.WithTimeout(ctx, endFor)
	defer cancel()
	found := make(map[string]*looked)
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, endLooks)
	for _, l := range todo {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			one, err := g.look(ctx, l)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[l.intent.Step] = one
		})
	}
	all.Wait()
	return found
}
