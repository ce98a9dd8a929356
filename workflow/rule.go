package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

var errNoDecision = errors.New("want allow, block or require_approval")

// rule asks the rules. Without any, nothing speaks against a step.
func (o *Options) rule(ctx context.Context, f Facts) (Ruling, error) {
	if o.Rules == nil {
		return Ruling{Decision: Allow, Reason: "no rule speaks against it"}, nil
	}
	r, err := o.Rules.Decide(ctx, f)
	if err != nil {
		return Ruling{}, err
	}
	if !slices.Contains([]Decision{Allow, Block, RequireApproval}, r.Decision) {
		return Ruling{}, fmt.Errorf("the decision is %q: %w", r.Decision, errNoDecision)
	}
	return r, nil
}

// hold is what risk rules ask for about a step: by the tool that it says, and by
// its intent, which may name another one.
func (o *Options) hold(s step, w *intent.WriteIntent) policies.Hold {
	tool := s.Asked.toolName(s.ID, w)
	if w == nil {
		return policies.Classify(ofTools(o.Risks), intent.WriteIntent{Tool: tool})
	}
	byIntent := policies.Classify(o.Risks, *w)
	if w.Tool == tool {
		return byIntent
	}
	other := *w
	other.Tool = tool
	return both(byIntent, policies.Classify(o.Risks, other))
}

// ofTools are the rules as they are for a step that declares no intent. Where it
// writes is not known then: a rule that names its tool is for it all the same,
// or whoever leaves the intent out would need nobody's approval.
func ofTools(risks []policies.RiskRule) []policies.RiskRule {
	risks = slices.Clone(risks)
	for i := range risks {
		if r := &risks[i]; strings.Trim(r.Tool, "*") != "" {
			r.Destination, r.Kind, r.Writes = "", "", nil
		}
	}
	return risks
}

// both is the more careful of two holds in everything.
func both(a, b policies.Hold) policies.Hold {
	classes := []intent.Risk{intent.RiskAuto, intent.RiskLog, intent.RiskApprove}
	if slices.Index(classes, b.Class) > slices.Index(classes, a.Class) {
		a.Class = b.Class
	}
	a.Approvers, a.Within = max(a.Approvers, b.Approvers), min(a.Within, b.Within)
	if b.OnTimeout != policies.OnTimeoutEscalate {
		a.OnTimeout = policies.OnTimeoutDeny
	}
	for _, name := range b.Rules {
		if !slices.Contains(a.Rules, name) {
			a.Rules = append(slices.Clone(a.Rules), name)
		}
	}
	return a
}

// ruled is the step after a ruling, with the reservation of its business
// operation where it begins one.
func (q gating) ruled(d desk, s step, r Ruling) (step, *ledger.Reservation, error) {
	risk := q.opts.hold(s, q.ask.intent)
	approvedBefore := s.status() == Approved && s.Hold.Digest == s.Asked.Digest
	before := s.Hold
	s.Risk, s.Prior, s.Hold = string(risk.Class), nil, nil
	s.Decision, s.Reason = r.Decision, cut(r.Reason)
	s.Evaluated, s.Matched = bounded(r.Evaluated), bounded(append(slices.Clone(r.Matched), riskMatches(risk)...))
	if risk.Class == intent.RiskApprove && r.Decision == Allow {
		s.Decision, s.Reason = RequireApproval, "its risk class is approve"
	}
	if d.blocked != nil {
		s.Decision, s.Reason, s.Prior = Block, blockedReason(d.blocked), priorOf(d.blocked)
		return s, nil, nil //nolint:nilerr // that it is blocked is the answer
	}
	if s.Decision == RequireApproval {
		switch {
		case approvedBefore:
			s.Hold = before
		case s.Holds >= maxHolds:
			s.Decision, s.Reason = Block, fmt.Sprintf("it asked for approval of something else %d times; begin another step", s.Holds)
		default:
			s.Hold = s.newHold(q.opts.ask(r.Decision == RequireApproval, risk), s.Reason, d.now)
			s.Holds++
		}
	}
	res, err := q.reservation(s)
	if res != nil {
		s.Operation, s.OperationDigest, s.OperationTool = res.Record.ID, res.Record.Digest, res.Record.Tool
	}
	return s, res, err
}

// ask is how people are asked: as the risk rules say, the gate's own settings,
// or the more careful of both.
func (o *Options) ask(ruled bool, risk policies.Hold) policies.Hold {
	own := policies.Hold{Approvers: o.Approvals.Approvers, Within: o.Approvals.Within, OnTimeout: o.Approvals.OnTimeout}
	switch {
	case risk.Class != intent.RiskApprove:
		own.Approvers = max(own.Approvers, risk.Approvers)
		return own
	case !ruled:
		return risk
	}
	return both(risk, own)
}

func riskMatches(h policies.Hold) (matches []PolicyMatch) {
	for _, name := range h.Rules {
		matches = append(matches, PolicyMatch{PolicyID: "risk:" + name, PolicyName: name, Action: actions[h.Class], RiskLevel: string(h.Class)})
	}
	return matches
}

// byCare are the actions of matches, the most careful first; a word that is none
// comes before them.
var byCare = []string{string(Block), string(RequireApproval), "log", string(Allow)}

var actions = map[intent.Risk]string{intent.RiskAuto: string(Allow), intent.RiskLog: "log", intent.RiskApprove: string(RequireApproval)}

// bounded is as much of what rules say as is kept: of many, the most careful.
func bounded(matches []PolicyMatch) []PolicyMatch {
	matches = slices.Clone(matches)
	if len(matches) > maxPolicies {
		slices.SortStableFunc(matches, func(a, b PolicyMatch) int {
			return cmp.Compare(slices.Index(byCare, a.Action), slices.Index(byCare, b.Action))
		})
		matches = matches[:maxPolicies]
	}
	for i := range matches {
		m := &matches[i]
		m.Reason, m.MatchedRule, m.PolicyDescription = cut(m.Reason), cut(m.MatchedRule), cut(m.PolicyDescription)
		m.PolicyID, m.PolicyName = cut(m.PolicyID), cut(m.PolicyName)
	}
	return matches
}

func cut(s string) string {
	if len(s) <= maxPolicyText {
		return s
	}
	return strings.ToValidUTF8(s[:maxPolicyText], "") + "…"
}

// approvalURL is where a person approves a step.
func (o *Options) approvalURL(workflowID, stepID string) string {
	if o.BaseURL == "" {
		return ""
	}
	return strings.TrimRight(o.BaseURL, "/") + "/workflows/" + url.PathEscape(workflowID) + "/steps/" + url.PathEscape(stepID) + "/approve"
}

// reservation takes up the business operation of a step that begins one.
func (q gating) reservation(s step) (*ledger.Reservation, error) {
	if s.Key == "" || q.opts.AcrossWorkflows == AcrossIgnore || s.Operation != "" || s.Decision == Block || s.completed() {
		return nil, nil
	}
	op := ledger.Operation{
		Tenant: q.who.Tenant, Workflow: q.workflowID, Step: q.stepID, Tool: s.Asked.toolName(s.ID, q.ask.intent), IdempotencyKey: s.Key,
		Digest: s.Asked.Digest, Asked: body(map[string]any{"step_input": s.Asked.Input, "tool_context": s.Asked.Tool}), RequestedBy: q.who.Name,
	}
	if w := q.ask.intent; w != nil {
		var err error
		if op.Digest, err = w.Digest(); err != nil {
			return nil, badRequest("intent", "cannot be kept: %v", err)
		}
		op.Destination, op.Kind, op.CorrelationID, op.Asked = w.Destination, w.Kind, w.CorrelationID, s.Asked.Intent
	}
	rec, err := ledger.NewEntrusted(op)
	if err != nil {
		return nil, &Error{Code: Internal, Message: "the business operation cannot be recorded; nothing was", Err: err}
	}
	first := ledger.Event{Kind: ledger.EvEntrusted, By: q.who.Name, Rule: "gate", Reason: s.Reason}
	if s.Decision == RequireApproval {
		// The step says when the time for it is over, so that one clock does.
		first = ledger.Event{Kind: ledger.EvHeld, By: q.who.Name, Rule: "gate", Reason: s.Reason, Need: s.Hold.Need}
	}
	return &ledger.Reservation{Record: rec, Events: []ledger.Event{first}, Window: q.opts.Window}, nil
}

// priorOf is the attempt that stands in the way.
func priorOf(b *ledger.BlockedError) *Prior {
	p := &Prior{
		PriorWorkflowID: b.Prior.Workflow, PriorStepID: b.Prior.Step, PriorWriteID: string(b.Prior.ID),
		PriorState: b.Prior.Phase(), PriorDiffers: b.Received != "" && b.Received != b.Prior.Digest,
	}
	if b.Prior.State == ledger.Settled {
		p.PriorOutcome = engine.OutcomeOf(b.Prior)
	}
	return p
}

func blockedReason(b *ledger.BlockedError) string {
	r := b.Prior
	text := fmt.Sprintf("the business operation %q was begun by workflow %s (step %s, write %s), which is now %s",
		r.IdempotencyKey, r.Workflow, r.Step, r.ID, r.Phase())
	if b.Received != "" && b.Received != r.Digest {
		text += "; that one asks for something else under the same key"
	}
	return text
}

// priorAgain is in how many seconds asking again can help about another
// workflow's attempt, by its state: 0 for one that is settled.
func priorAgain(state string) int {
	switch ledger.State(state) {
	case ledger.Queued, ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Entrusted:
		return seconds(askAgain)
	case ledger.Held, ledger.Review:
		return seconds(time.Minute)
	}
	return 0
}
