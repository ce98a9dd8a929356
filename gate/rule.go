package gate

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
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Bounds of what is stored about a step beyond its clients' input.
const (
	// maxSeen is how much of an observation is kept, in bytes: records of real systems are
	// kilobytes. A larger one cannot be compared later.
	maxSeen = 64 << 10
	// maxMismatches bounds the stored mismatches, in bytes.
	maxMismatches = 16 << 10
	// maxGated is how many gates of a step can be tried against new rules.
	maxGated = 20
	// maxEarlier is how much is kept, in bytes, of a step's earlier request: enough to try rules
	// on it.
	maxEarlier = 64 << 10
	// maxPolicies and maxPolicyText, in bytes, bound what is kept of the evaluated rules.
	maxPolicies   = 64
	maxPolicyText = 500
	// maxHolds is how often one step may be held. Each changed request asks a reviewer again.
	maxHolds = 20
	// maxBody is the ledger's bound of a document, in bytes. A step that holds all of the above
	// is checked against it before it is written.
	maxBody = 1 << 20
	// maxAskers is how many names that gated a step are kept, to stop them from approving it. One
	// client, or a few, gate a step. If there were more, no named reviewer can approve it.
	maxAskers = 100
)

var errNoDecision = errors.New("want allow, block or require_approval")

// rule asks the rules. Without rules, a step is allowed.
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

// hold is what the risk rules require of a step: for the tool that it declares, and for its
// intent, which may name another one.
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

// ofTools are the rules as they apply to a step without an intent, whose destination is unknown.
// A rule that names its tool still applies; otherwise a caller could avoid approval by omitting
// the intent.
func ofTools(risks []policies.RiskRule) []policies.RiskRule {
	risks = slices.Clone(risks)
	for i := range risks {
		if r := &risks[i]; strings.Trim(r.Tool, "*") != "" {
			r.Destination, r.Kind, r.Writes = "", "", nil
		}
	}
	return risks
}

// both combines two holds: the stricter in every field.
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

// ruled is the step after a ruling, with the reservation of its business operation if it begins
// one.
func (q gating) ruled(d documents, s step, r Ruling) (step, *ledger.Reservation, error) {
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
		s.Decision, s.Reason, s.Prior = Block, q.who.blockedReason(d.blocked), q.who.priorOf(d.blocked)
		return s, nil, nil //nolint:nilerr // the block is the answer
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

// ask is how reviewers are asked: by the risk rules, the gate's own settings, or the stricter of
// both.
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

// byCare are the actions of matches, the strictest first. An unknown word comes before them.
var byCare = []string{string(Block), string(RequireApproval), "log", string(Allow)}

var actions = map[intent.Risk]string{intent.RiskAuto: string(Allow), intent.RiskLog: "log", intent.RiskApprove: string(RequireApproval)}

// bounded is the part of the matches that is kept: of many, the strictest.
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

func cut(s string) string { return visible.Cut(s, maxPolicyText) }

// approvalURL is where a reviewer's program approves a step.
func (o *Options) approvalURL(workflowID, stepID string) string {
	at := stepURL(o.BaseURL, workflowID, stepID)
	if at == "" {
		return ""
	}
	return at + "/approve"
}

// reviewURL is the page of a step.
func (o *Options) reviewURL(workflowID, stepID string) string {
	return stepURL(o.ReviewUI, workflowID, stepID)
}

func stepURL(base, workflowID, stepID string) string {
	if base == "" {
		return ""
	}
	return strings.TrimRight(base, "/") + "/workflows/" + url.PathEscape(workflowID) + "/steps/" + url.PathEscape(stepID)
}

// reservation reserves the business operation of a step that begins one.
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
	rec, err := ledger.NewDelegated(op)
	if err != nil {
		return nil, &Error{Code: Internal, Message: "the business operation cannot be recorded; nothing was", Err: err}
	}
	first := ledger.Event{Kind: ledger.EvDelegated, By: q.who.Name, Rule: "gate", Reason: s.Reason}
	if s.Decision == RequireApproval {
		// The step's document holds the deadline, so that only one clock decides.
		first = ledger.Event{Kind: ledger.EvHeld, By: q.who.Name, Rule: "gate", Reason: s.Reason, Need: s.Hold.Need}
	}
	return &ledger.Reservation{Record: rec, Events: []ledger.Event{first}, Window: q.opts.Window}, nil
}

// priorOf is the attempt that blocks a step. Of one outside the caller's scope it shows only
// whether its request differs. It is kept with the step and shown to agents, so it holds no
// evidence.
func (c Caller) priorOf(b *ledger.BlockedError) *Prior {
	if !c.Scope.Shows(b.Prior) {
		return &Prior{PriorDiffers: b.Received != "" && b.Received != b.Prior.Digest}
	}
	p := &Prior{
		PriorWorkflowID: b.Prior.Workflow, PriorStepID: b.Prior.Step, PriorWriteID: string(b.Prior.ID),
		PriorState: b.Prior.Phase(), PriorDiffers: b.Received != "" && b.Received != b.Prior.Digest,
	}
	if b.Prior.State == ledger.Settled {
		out := engine.OutcomeOf(b.Prior)
		out.Mismatches = engine.WithoutEvidence(out.Verdict, out.Mismatches)
		p.PriorOutcome = out
	}
	return p
}

func (c Caller) blockedReason(b *ledger.BlockedError) string {
	r := b.Prior
	text := "the idempotency key was used by a write outside of the scope of this token"
	if c.Scope.Shows(r) {
		text = fmt.Sprintf("the business operation %q was begun by workflow %s (step %s, write %s), which is now %s",
			r.IdempotencyKey, r.Workflow, r.Step, r.ID, r.Phase())
	}
	if b.Received != "" && b.Received != r.Digest {
		text += "; that one asks for something else under the same key"
	}
	return text
}

// priorAgain is the number of seconds after which asking again can help, given the state of
// another workflow's attempt: 0 for a settled one.
func priorAgain(state string) int {
	switch ledger.State(state) {
	case ledger.Queued, ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Delegated:
		return seconds(askAgain)
	case ledger.Held, ledger.Review:
		return seconds(time.Minute)
	}
	return 0
}
