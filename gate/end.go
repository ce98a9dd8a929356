package gate

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// endFor bounds all reads at the end of a workflow together, endReads how many run at once
	// and endSteps their number: the caller waits.
	endFor   = 15 * time.Second
	endReads = 4
	endSteps = 32
	// maxEnding is how many bytes of documents change at the end of a workflow, and
	// maxEndingSteps how many documents. A batch takes 4 MiB and 100.
	maxEnding      = 2 << 20
	maxEndingSteps = 40
)

// Complete ends a workflow as done. Unreported effects of its steps are read back as in
// [Gate.Fail]. It fails with an [Error] of [Terminal] when it has ended already, and of
// [ApprovalPending] while its last step waits for a reviewer.
func (g *Gate) Complete(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	return g.end(ctx, c, workflowID, Completed, reason, "Workflow completed")
}

// Fail ends a workflow as failed. Default reason "Failed". Unreported effects of its steps stay
// open: their fate is unknown, and the business operation cannot begin again unless the
// destination shows that nothing was done. Steps that wait for a reviewer are refused.
func (g *Gate) Fail(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	return g.end(ctx, c, workflowID, Failed, cmp.Or(reason, "Failed"), "Workflow failed")
}

// Abort ends a workflow as aborted, as [Gate.Fail] does. Default reason "Aborted by user".
func (g *Gate) Abort(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	return g.end(ctx, c, workflowID, Aborted, cmp.Or(reason, "Aborted by user"), "Workflow aborted")
}

// Resume reports whether a workflow continues. It changes nothing: a workflow continues when its
// last step does not wait for a reviewer, and never when it has ended.
func (g *Gate) Resume(ctx context.Context, c Caller, workflowID, reason string) (Ended, error) {
	if err := firstOf(c.check(), c.mayAct(), checkIDs(workflowID, "-"), text(maxReason, "reason", reason)); err != nil {
		return Ended{}, err
	}
	_, err := g.carry(ctx, c.Tenant, workflowID, "", func(d documents) (plan, error) {
		if err := g.coversAll(ctx, c, workflowID); err != nil {
			return plan{}, err
		}
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

// moving refuses a workflow that has ended, or that waits for a reviewer.
func moving(d documents) (plan, error) {
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
	_, err := g.carry(ctx, c.Tenant, workflowID, "", func(d documents) (plan, error) {
		if err := g.coversAll(ctx, c, workflowID); err != nil {
			return plan{}, err
		}
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
	// reads are the reads of the destinations of steps that were begun and not completed, by
	// step. readDone reports that they were made.
	reads    map[string]*readBack
	readDone bool
}

func (g *Gate) ender(c Caller, workflowID string, to Status, reason string) *ender {
	return &ender{g: g, who: c, workflowID: workflowID, to: to, reason: reason}
}

// others ends the workflow in a plan: steps that wait for a reviewer are refused, and writes that
// a read has shown to have had no effect are settled. What exceeds one batch is left: a hold of
// an ended workflow is refused at its deadline, and a write of unknown fate stays open.
func (e *ender) others(ctx context.Context, d documents, p plan, but string) (plan, error) {
	if !e.readDone {
		return plan{prepare: func(ctx context.Context) {
			e.reads, e.readDone = e.g.endReads(ctx, e.who, e.workflowID), true
		}}, nil
	}
	f := d.flow
	f.Status, f.Reason, f.EndedBy, f.EndedAt = e.to, e.reason, e.who.Name, &d.now
	p.flow = &f
	budget := maxEnding
	err := e.g.eachStep(ctx, e.who.Tenant, e.workflowID, func(document ledger.Document, s step) error {
		if s.ID == but || len(p.ended) == maxEndingSteps || len(document.Body) > budget {
			return nil
		}
		one, err := e.ending(ctx, d, document, s)
		if err != nil || one == nil {
			return err
		}
		if one.changed {
			budget -= len(one.document.Body)
		}
		p.ended = append(p.ended, *one)
		return nil
	})
	return p, err
}

// ending is the change that the workflow's end makes to one of its steps, nil for none.
func (e *ender) ending(ctx context.Context, d documents, document ledger.Document, s step) (*ending, error) {
	if s.status() != Pending && !e.reads[s.ID].fits(s) {
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
		events := e.reads[s.ID].nothingDone(rec)
		if len(events) == 0 {
			return nil, nil
		}
		return &ending{document: document, rec: rec, events: events}, nil
	}
	next, events := s.lapsed(d.now)
	if next.status() == Pending {
		var denied []ledger.Event
		next, denied = next.refused(byGate, "its workflow was ended by "+recordedName(e.who.Name)+": "+e.reason, d.now)
		events = append(events, denied...)
	}
	one := &ending{document: next.document(document), changed: true, rec: rec}
	if s.Operation != "" && rec.ID != "" {
		one.events = next.fitting(rec, events)
	}
	return one, nil
}

// nothingDone settles the write of a step for which a read shows that nothing was done, or that
// it was done.
func (l *readBack) nothingDone(rec ledger.Record) []ledger.Event {
	if rec.State != ledger.Delegated {
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

// endReads reads back possible effects of steps that were begun and not completed. It is bounded
// in number and time; unread effects stay open.
func (g *Gate) endReads(ctx context.Context, c Caller, workflowID string) map[string]*readBack {
	if g.options().Reader == nil {
		return nil
	}
	var todo []readRequest
	err := g.eachStep(ctx, c.Tenant, workflowID, func(document ledger.Document, s step) error {
		w := s.declared()
		if w != nil && s.Operation != "" && !s.completed() && s.Lent.Fence > 0 && len(todo) < endSteps {
			todo = append(todo, *s.readAt(*w, s.Lent.Until, document.Now))
		}
		return nil
	})
	if err != nil {
		return nil // ending the workflow reports it
	}
	ctx, cancel := context.WithTimeout(ctx, endFor)
	defer cancel()
	found := make(map[string]*readBack)
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, endReads)
	for _, l := range todo {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			one, err := g.readShared(ctx, l)
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
