package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// Gate answers whether a step may be carried out, and what is known about earlier attempts at it.
// An answer is one commit in the ledger. It fails with an [Error]; the codes are those of the
// contract, in its order.
func (g *Gate) Gate(ctx context.Context, c Caller, workflowID, stepID string, r GateRequest) (GateResponse, error) {
	opts := g.options()
	a, err := opts.newAsk(c, workflowID, stepID, r)
	if err == nil && stepID == "" {
		err = badRequest("step_id", "is required")
	}
	if err == nil {
		err = opts.nameable(c, stepID, r)
	}
	if err != nil {
		return GateResponse{}, opts.redacted(c.Tenant, err)
	}
	q := gating{opts: opts, who: c, workflowID: workflowID, stepID: stepID, ask: a, leaseID: "ls_" + randomHex(16),
		rule: func(f Facts) (Ruling, error) { return opts.rule(ctx, f) }}
	p, err := g.carry(ctx, c.Tenant, workflowID, stepID, q.decide)
	return p.gate, opts.redacted(c.Tenant, err)
}

// nameable refuses a step whose names contain sensitive values.
func (o *Options) nameable(c Caller, stepID string, r GateRequest) error {
	tool := ""
	if r.ToolContext != nil {
		tool = r.ToolContext.ToolName
	}
	return o.named(c, "step_id", stepID, "idempotency_key", r.IdempotencyKey, "tool_context.tool_name", tool)
}

// gating is one gate request.
type gating struct {
	opts               *Options
	who                Caller
	workflowID, stepID string
	ask                ask
	leaseID            string
	rule               func(Facts) (Ruling, error)
}

// decide makes the gate's decision, in the order of the contract.
func (q gating) decide(d documents) (plan, error) {
	if d.flow.Status != InProgress {
		return plan{}, terminal(d)
	}
	s, events := d.step.lapsed(d.now)
	if d.known {
		if err := cmp.Or(q.who.covers(s), q.repeats(s)); err != nil {
			return plan{}, err
		}
	}
	anew := !d.known || q.ask.RetryPolicy == reevaluate || s.Prior != nil
	if anew {
		if d.flow.other(q.stepID) != "" && d.other == nil {
			return plan{need: needOther}, nil
		}
		if other, _ := d.otherStep.lapsed(d.now); d.other != nil && other.status() == Pending {
			return plan{}, &Error{Code: ApprovalPending, Message: "step " + other.ID + " waits for approval; decide about it first"}
		}
	}
	p := plan{events: events}
	if len(events) > 0 && s.Operation != "" && d.rec == nil {
		return plan{need: needRecord}, nil
	}
	if s, p.flow = q.open(d, s); p.flow != nil && s.Index >= maxSteps {
		return plan{}, &Error{Code: TooMany, Message: "the workflow has too many steps; begin another one"}
	}
	if anew {
		s = q.take(s, d.known)
	}
	s, p.read = q.verify(d, s)
	if p.read != nil {
		return p, nil
	}
	return q.rest(d, s, p, anew)
}

// rest is the part of the decision after all facts for the ruling are known.
func (q gating) rest(d documents, s step, p plan, anew bool) (plan, error) {
	previous := s.Answer
	s = s.counted(d.now)
	facts := q.facts(d, s, previous)
	var ruled Decision
	if anew {
		ruling, err := q.rule(facts.with(s.Asked))
		if err != nil {
			return plan{}, unanswered(err)
		}
		ruled = ruling.Decision
		if s, p.reserve, err = q.ruled(d, s, ruling); err != nil {
			return plan{}, err
		}
	}
	if len(p.events) > 0 {
		p.events = s.onRecord(d.rec, p.events)
	}
	decision, reason := s.answer()
	granted := decision == Allow && s.lendable(d.now)
	switch {
	case granted && s.Lent.Fence == 0 && q.ask.intent != nil && !d.readBack.fits(s):
		return plan{read: s.readAt(*q.ask.intent, time.Time{}, d.now)}, nil
	case granted && s.Operation != "" && p.reserve == nil && d.rec == nil:
		return plan{need: needRecord}, nil
	case granted && s.Operation != "" && p.reserve == nil && s.gone(*d.rec) != "":
		granted, decision, reason = false, Block, s.gone(*d.rec)
	case granted:
		s = s.lend(q.leaseID, q.who.Name, q.ask.lease, d.now)
		if s.Operation != "" && p.reserve == nil {
			p.events = append(p.events, ledger.Event{Kind: ledger.EvDelegated, By: q.who.Name, Rule: "gate",
				Reason: fmt.Sprintf("lent under fence %d", s.Lent.Fence)})
		}
	}
	s.Answer, s.Allowed = decision, s.Allowed || decision == Allow
	s.Askers = asker(s.Askers, recordedName(q.who.Name))
	s = s.remember(gated{At: d.now, Facts: facts, Digest: s.Asked.Digest, Ruled: ruled, Decision: decision, Reason: reason,
		By: q.who.Name, Rules: ruleNames(s.Matched), Lease: leaseWord(decision, granted)})
	p.step = &s
	p.gate = q.response(s, decision, reason, previous, granted, !anew, d.now)
	p.gate.RetryContext.Verification = facts.Verification // of the attempts before this one
	q.opts.cleanAnswer(q.who.Tenant, &p.gate, s)
	return p, nil
}

// leaseWord is the part of a lease that is kept.
func leaseWord(d Decision, granted bool) leaseResult {
	switch {
	case granted:
		return leaseGranted
	case d == Allow:
		return leaseWithheld
	}
	return ""
}

// unanswered reports that the rules gave no answer. It names the rule at fault, if any: a missing
// fact is often the caller's to supply.
func unanswered(err error) error {
	text := "the rules gave no answer; nothing was recorded"
	var one *UnansweredError
	if errors.As(err, &one) {
		text += fmt.Sprintf(": rule %s: %s", one.Rule, cut(one.Error()))
	}
	return &Error{Code: Internal, Message: text, Err: err}
}

func terminal(d documents) error {
	return &Error{Code: Terminal, Message: "workflow is " + string(d.flow.Status)}
}

// repeats refuses a repeat that differs from the first request.
func (q gating) repeats(s step) error {
	if q.ask.IdempotencyKey != s.Key {
		return mismatch(KeyMismatch, q.workflowID, q.stepID, "idempotency_key", s.Key, q.ask.IdempotencyKey)
	}
	field := s.Asked.differs(q.ask.asked)
	switch {
	case field != "" && q.ask.RetryPolicy == idempotent,
		// The result of the one attempt does not follow from the other.
		s.Asked.IntentDigest != q.ask.asked.IntentDigest && s.Lent.Fence > 0 && !s.completed():
		if field == "" || q.ask.RetryPolicy == reevaluate {
			field = "intent"
		}
		e := mismatch(InputMismatch, q.workflowID, q.stepID, field, s.Asked.part(field), q.ask.asked.part(field))
		e.Key = s.Key
		return e
	case s.Operation != "" && q.ask.asked.toolName(q.stepID, q.ask.intent) != s.OperationTool:
		// The operation is known to others by its tool, and a step has only one.
		e := mismatch(InputMismatch, q.workflowID, q.stepID, "tool_context", s.Asked.ToolDigest, q.ask.asked.ToolDigest)
		e.Key, e.Message = s.Key, "tool_context names another tool than the one under which the idempotency_key was recorded on gate; begin another step"
		return e
	case q.ask.RetryPolicy == reevaluate && s.status() != "" && s.status() != Approved:
		return &Error{Code: ApprovalHold, Message: "the step's approval is " + string(s.status()) + "; gating it again does not change that"}
	}
	return nil
}

func mismatch(code Code, workflowID, stepID, field, expected, received string) *Error {
	e := &Error{Code: code, Field: field, WorkflowID: workflowID, StepID: stepID, Expected: expected, Received: received,
		Message: "idempotency_key does not match the key recorded on gate"}
	if code == InputMismatch {
		e.Message = field + " is not the one recorded on gate; repeat it unchanged, or gate the step with retry_policy reevaluate"
		if field == "intent" {
			e.Message = "intent is not the one recorded on gate; it cannot change before the step is completed"
		}
	}
	return e
}

// part is the digest of one field.
func (a asked) part(field string) string {
	switch field {
	case "step_input":
		return a.InputDigest
	case "tool_context":
		return a.ToolDigest
	}
	return a.IntentDigest
}

// open is the step, together with the workflow if it is new.
func (q gating) open(d documents, s step) (step, *flow) {
	if d.known {
		return s, nil
	}
	f := d.flow.with(q.stepID)
	return step{ID: q.stepID, Index: d.flow.Steps, Key: q.ask.IdempotencyKey, First: d.now}, &f
}

// take records the step's request before a ruling.
func (q gating) take(s step, known bool) step {
	if known && s.Asked.Digest != q.ask.asked.Digest {
		s.keepEarlier()
		if s.Asked.IntentDigest != q.ask.asked.IntentDigest {
			s.Before, s.Read = nil, nil
		}
	}
	r := q.ask
	s.Name, s.Type, s.Model, s.Provider, s.Asked = r.StepName, r.StepType, r.Model, r.Provider, r.asked
	s.count(r.TokensIn, r.TokensOut, r.CostUSD)
	return s
}

func (s *step) count(in, out *int, cost *float64) {
	if in != nil {
		s.Tokens[0] = *in
	}
	if out != nil {
		s.Tokens[1] = *out
	}
	if cost != nil {
		s.Cost = *cost
	}
}

// verify applies the result of a read, or requests a read if an attempt was made and nothing is
// known of it.
func (q gating) verify(d documents, s step) (step, *readRequest) {
	w := q.ask.intent
	if w == nil || s.completed() && s.Read == nil {
		return s, nil
	}
	if s.completed() {
		// A completion may have been too early to see the effect.
		switch {
		case d.readBack.fits(s) && d.readBack.done:
			s.Read = &attemptRead{Verification: d.readBack.verification(d.readBack.at, d.now), Fence: s.Lent.Fence}
		case s.Read.Effect != effectPresent && !s.Read.fresh(s, d.now):
			l := s.readAt(*w, *s.CompletedAt, d.now)
			l.done = true
			return s, l
		}
		return s, nil
	}
	first := s.Lent.Fence == 0
	switch {
	case d.readBack.fits(s):
		if first {
			s.Before = d.readBack.kept()
		}
		// Before the first attempt, only a write of readback or an effect that is already present
		// is evidence about the step.
		if s.Read = nil; !first || d.readBack.Write != "" || d.readBack.Effect == engine.EffectPresent {
			s.Read = &attemptRead{Verification: d.readBack.verification(s.Lent.Until, d.now), Fence: s.Lent.Fence}
		}
	case first && s.Read == nil, s.Read.fresh(s, d.now):
	default:
		return s, s.readAt(*w, s.Lent.Until, d.now)
	}
	return s, nil
}

// counted is the step with this gate.
func (s step) counted(now time.Time) step {
	s.Gates++
	s.LastGate = now
	return s
}

// answer is the gate's answer in the current state.
func (s step) answer() (Decision, string) {
	switch s.status() {
	case Approved:
		return Allow, "Previously approved: " + s.Hold.Reason
	case Rejected:
		return Block, "rejected by " + s.Hold.By + ": " + cmp.Or(s.Hold.RejectReason, s.Hold.Reason)
	case Expired:
		return Block, "no reviewer approved it in time: " + s.Hold.Reason
	}
	return s.Decision, s.Reason
}

// asker adds the caller's name. One name beyond the bound means that there were more.
func asker(names []string, name string) []string {
	if slices.Contains(names, name) || len(names) > maxAskers {
		return names
	}
	return append(slices.Clone(names), name)
}

// gone returns why a step that was allowed must not be carried out: its business operation was
// released or ended, so that another workflow may be carrying it out. It returns "" while the
// step still has it.
func (s step) gone(rec ledger.Record) string {
	switch {
	case rec.Yielded:
		return fmt.Sprintf("an operator released the business operation of this step (write %s); another workflow may have begun it", s.Operation)
	case rec.State == ledger.Review:
		return fmt.Sprintf("a reviewer must decide about the business operation of this step (write %s)", s.Operation)
	case rec.State != ledger.Delegated:
		return fmt.Sprintf("the business operation of this step is %s (write %s) though the step was not completed", rec.Phase(), s.Operation)
	}
	return ""
}

// onRecord maps a hold's events to events of the operation's write.
func (s step) onRecord(rec *ledger.Record, events []ledger.Event) []ledger.Event {
	if rec == nil || s.Operation == "" {
		return nil
	}
	return s.fitting(*rec, events)
}
