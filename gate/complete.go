package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// CompleteStep records that a step was carried out, whatever the state of its workflow. If the
// step declared an intent, the destination is read and the result returned; nil if nothing was
// read. It also settles the step's business operation, or sends it to review; so does the
// completion of an operation that was given up meanwhile. It fails with an [Error], among others
// of [NotFound], [KeyMismatch] and [StaleFence], and of [ApprovalPending], [StepRejected] or
// [ApprovalExpired] if no caller was ever allowed to carry the step out.
func (g *Gate) CompleteStep(ctx context.Context, c Caller, workflowID, stepID string, r CompleteRequest) (*Verification, error) {
	if err := firstOf(c.check(), c.mayAct(), checkIDs(workflowID, stepID), text(maxKey, "idempotency_key", r.IdempotencyKey),
		counts(r.TokensIn, r.TokensOut, r.CostUSD)); err != nil {
		return nil, err
	}
	if r.Fence < 0 {
		return nil, badRequest("fence", "is %d; want the fence that was granted, or it left out", r.Fence)
	}
	output, err := anyJSON("output", r.Output, maxOutput)
	if err != nil {
		return nil, g.options().redacted(c.Tenant, err)
	}
	q := completing{who: c, workflowID: workflowID, stepID: stepID, r: r, output: output, canRead: g.options().Reader != nil}
	p, err := g.carry(ctx, c.Tenant, workflowID, stepID, q.decide)
	if e := new(Error); errors.As(err, &e) && slices.Contains(unheld, e.Code) {
		g.options().Logger.WarnContext(ctx, "a caller says that it carried out a step that was not granted", "tenant", c.Tenant,
			"workflow", workflowID, "step", stepID, "caller", c.Name, "code", e.Code)
	}
	if err != nil {
		return nil, g.options().redacted(c.Tenant, err)
	}
	seen := p.step.verification()
	if seen != nil {
		g.options().clean(c.Tenant, seen, *p.step)
	}
	return seen, nil
}

// unheld are the refusals of a completion of a step that was never allowed.
var unheld = []Code{ApprovalPending, StepRejected, ApprovalExpired}

// completing is one report that a step is done.
type completing struct {
	who                Caller
	workflowID, stepID string
	r                  CompleteRequest
	output             json.RawMessage
	canRead            bool
}

func (q completing) decide(d documents) (plan, error) {
	if !d.known {
		return plan{}, &Error{Code: NotFound, Message: "Step not found"}
	}
	s, _ := d.step.lapsed(d.now)
	if err := firstOf(q.who.covers(s), q.fits(s)); err != nil {
		return plan{}, err
	}
	var p plan
	if s.Operation != "" && d.rec == nil {
		return plan{need: needRecord}, nil
	}
	if w := s.declared(); w != nil && q.canRead && !s.completed() {
		if !d.readBack.fits(s) || !d.readBack.done {
			l := s.readAt(*w, d.now, d.now)
			l.done = true
			return plan{read: l}, nil
		}
		s.Read = &attemptRead{Verification: d.readBack.verification(d.readBack.at, d.now), Fence: s.Lent.Fence}
	} else if !s.completed() {
		s.Read = nil // what a gate read before does not apply to the completion
	}
	switch {
	case d.rec == nil:
	case s.contradicts(*d.rec) != "":
		p.events = []ledger.Event{{Kind: ledger.EvEscalated, By: recordedName(q.who.Name), Rule: "reported", Reason: s.contradicts(*d.rec)}}
	case d.rec.State == ledger.Delegated:
		p.events = reported(d.readBack, recordedName(q.who.Name))
	}
	s.Completions++
	s.CompletedAt, s.CompletedBy, s.Output = &d.now, q.who.Name, q.output
	s.count(q.r.TokensIn, q.r.TokensOut, q.r.CostUSD)
	p.step = &s
	return p, nil
}

// contradicts returns why the first completion of the step needs review: its business operation
// was given up, so that another workflow may have done it too. It returns "" if there is no
// reason.
func (s step) contradicts(rec ledger.Record) string {
	gaveUp := []ledger.Status{ledger.NotApplied, ledger.Denied, ledger.Expired}
	switch {
	case s.completed() || rec.Tombstone:
		return ""
	case rec.State == ledger.Delegated && rec.Yielded:
		return "its caller reports it as done, after an operator released the operation: another workflow may have done it too"
	case rec.State == ledger.Settled && slices.Contains(gaveUp, rec.Settlement):
		return fmt.Sprintf("its caller reports it as done, after it was settled as %s: another workflow may have done it too", rec.Settlement)
	}
	return ""
}

// fits refuses a completion of a different request, of a step that another caller holds, and of
// one that was never allowed. A step that a hold came too late for may have been done, and that
// report must not be lost.
func (q completing) fits(s step) error {
	if q.r.IdempotencyKey != s.Key {
		return mismatch(KeyMismatch, q.workflowID, q.stepID, "idempotency_key", s.Key, q.r.IdempotencyKey)
	}
	switch {
	case q.r.Fence > s.Lent.Fence:
		return badRequest("fence", "is %d, which was never granted; want the one that was", q.r.Fence)
	case q.r.Fence > 0 && q.r.Fence < s.Lent.Fence:
		return &Error{Code: StaleFence, Field: "fence", WorkflowID: q.workflowID, StepID: q.stepID,
			Message: "the step was granted to another caller since; ask the gate what is known about it"}
	}
	if s.Allowed {
		return nil
	}
	switch s.status() {
	case Pending:
		return &Error{Code: ApprovalPending, Message: "the step waits for approval; it cannot be completed before"}
	case Rejected:
		return &Error{Code: StepRejected, Message: "the step was rejected; it cannot be completed"}
	case Expired:
		return &Error{Code: ApprovalExpired, Message: "no reviewer approved the step in time; it cannot be completed"}
	}
	return nil
}

// declared is the intent of the step, nil if it has none.
func (s step) declared() *intent.WriteIntent { return s.Asked.declared() }

// reported maps a completion to events of the business operation's write: verified if a read
// observed it, review if a read contradicts it, otherwise the caller's report.
func reported(l *readBack, by string) []ledger.Event {
	if l == nil || l.failed {
		return []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: by, Rule: "reported", Reason: "its caller reports it as done"}}
	}
	read := l.read()
	switch {
	case l.Effect == engine.EffectPresent:
		return []ledger.Event{read, {Kind: ledger.EvSettled, Settlement: ledger.Verified, By: by, Rule: "look", Verdict: read.Verdict,
			Ref: l.Ref, URL: l.URL, Reason: "its caller reports it as done, and it was seen"}}
	case l.Effect == engine.EffectAbsent, slices.Contains(contradictions, read.Verdict):
		return []ledger.Event{read, {Kind: ledger.EvEscalated, By: by, Rule: "look", Verdict: read.Verdict,
			Reason: "its caller reports it as done, and the destination says otherwise: " + l.Reason}}
	}
	return []ledger.Event{read, {Kind: ledger.EvSettled, Settlement: ledger.Reported, By: by, Rule: "reported", Verdict: read.Verdict,
		Reason: "its caller reports it as done; a read could not confirm it: " + l.Reason}}
}

// contradictions are verdicts that no lag explains.
var contradictions = []string{"mismatched", "duplicated", "collateral"}

// read is the read-back as an event.
func (l *readBack) read() ledger.Event {
	return ledger.Event{Kind: ledger.EvRead, Verdict: l.Verdict.String(), Effect: l.Effect == engine.EffectPresent, Ref: l.Ref, URL: l.URL,
		Rule: "look", Reason: l.Reason, Evidence: l.kept(), Mismatches: keepable(l.Mismatches, maxMismatches)}
}
