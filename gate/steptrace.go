package gate

import (
	"context"
	"slices"
	"time"

	"github.com/readback-go/readback/redact"
)

// StepTrace is the gate's and the reviewers' decisions about a step, with the callers. It is for
// callers in this process and not in the contract.
type StepTrace struct {
	WorkflowID   string `json:"workflow_id"`
	WorkflowName string `json:"workflow_name"`
	StepID       string `json:"step_id"`
	StepName     string `json:"step_name,omitempty"`
	StepType     string `json:"step_type"`
	// Tool and IdempotencyKey name its business operation, WriteID is the write that represents
	// it. Default none: it named no key, was blocked, or keys are compared within one workflow
	// only.
	Tool           string `json:"tool,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	WriteID        string `json:"write_id,omitempty"`
	// Decision and Reason are what the gate would answer now.
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	// Waits reports that a reviewer must decide.
	Waits bool `json:"waits,omitempty"`
	// Prior is the other workflow's attempt that blocked the step at its last gate, without its
	// outcome. Default none.
	Prior *Prior `json:"prior,omitempty"`
	// CompletedAt and CompletedBy are from the last completion report.
	CompletedAt *time.Time `json:"completed_at,omitempty"`
	CompletedBy string     `json:"completed_by,omitempty"`
	// Gates is how often the step was gated; Decisions holds at most the last 20.
	Gates     int            `json:"gates"`
	Decisions []StepDecision `json:"decisions"`       // in order
	Reports   []Report       `json:"heard,omitempty"` // in order, all that was recorded
}

// StepDecision is one answer of the gate about a step.
type StepDecision struct {
	At time.Time `json:"at"`
	// By is the caller. Default "": it was not recorded, or the caller had no name.
	By       string   `json:"by,omitempty"`
	Decision Decision `json:"decision"`
	// Ruled is the rules' decision, before risk rules, reviewers and other workflows' attempts.
	// "" if no rule was asked: the answer is the previous one.
	Ruled Decision `json:"ruled,omitempty"`
	// Rules are the IDs of the rules that the decision is based on. Default: none matched.
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
	// Lease reports whether the caller could carry the step out then. Default: it was not
	// allowed, or it was not recorded.
	Lease leaseResult `json:"lease,omitempty"`
	// Trace is the W3C trace context of the call. Default none.
	Trace string    `json:"trace,omitempty"`
	Asked StepAsked `json:"asked"`
	Known StepKnown `json:"known"`
}

// leaseResult is the result of the lease request if the answer was allow.
type leaseResult string

// The values. The zero value means unknown.
const (
	leaseGranted  leaseResult = "granted"
	leaseWithheld leaseResult = "withheld" // another caller has it, it is done, or its effect is present or in doubt
)

// StepAsked is a gate request.
type StepAsked struct {
	Tool        string `json:"tool,omitempty"`
	RetryPolicy string `json:"retry_policy,omitempty"`
	Risk        string `json:"risk,omitempty"` // the risk class: auto, log or approve
	// Digest fingerprints what was asked for: input, tool and intent.
	Digest string `json:"digest,omitempty"`
}

// StepKnown is the facts about attempts at the step, as the rules saw them.
type StepKnown struct {
	Gates       int        `json:"gate_count"` // including that one
	Completions int        `json:"completion_count"`
	Prior       Completion `json:"prior_completion_status,omitempty"`
	Last        Decision   `json:"last_decision,omitempty"`
	// Since is the time since the first gate.
	Since time.Duration `json:"since_first_ns"`
	// Verification is what the destination showed. Default: it was not read.
	Verification *StepSeen `json:"verification,omitempty"`
}

// StepSeen is the result of a read of the destination; see [Verification].
type StepSeen struct {
	Effect    string    `json:"effect"`
	Verdict   string    `json:"verdict"`
	Reason    string    `json:"reason,omitempty"`
	WriteID   string    `json:"write_id,omitempty"`
	CheckedAt time.Time `json:"checked_at"`
}

// Trace returns the callers of a step's gate, the gate's answers with their reasons, and the
// reviewers' decisions, also for a step that was blocked and never had a write. It fails with an
// [Error] of [NotFound] if the tenant has no such step.
func (g *Gate) Trace(ctx context.Context, c Caller, workflowID, stepID string) (StepTrace, error) {
	if err := firstOf(c.check(), checkIDs(workflowID, stepID)); err != nil {
		return StepTrace{}, err
	}
	d, err := g.read(ctx, c.Tenant, workflowID, stepID)
	if err != nil {
		return StepTrace{}, failed(err)
	}
	if !d.known {
		return StepTrace{}, &Error{Code: NotFound, Message: "Step not found"}
	}
	return g.options().trace(c.Tenant, d.wf.ID, d.flow, d.step, d.now), nil
}

// trace is the trace of a step at a time, redacted.
func (o *Options) trace(tenant, workflowID string, f flow, kept step, now time.Time) StepTrace {
	s, _ := kept.lapsed(now)
	t := StepTrace{WorkflowID: workflowID, WorkflowName: f.Name, StepID: s.ID, StepName: s.Name, StepType: s.Type,
		Tool: s.tool(), IdempotencyKey: s.Key, WriteID: string(s.Operation), CompletedAt: s.CompletedAt, CompletedBy: s.CompletedBy,
		Gates: s.Gates, Decisions: []StepDecision{}, Reports: slices.Clone(kept.Reports)} // an expiry appears once it is recorded, not on each read
	t.Decision, t.Reason = s.answer()
	t.Waits = s.status() == Pending && f.Status == InProgress
	if s.Prior != nil {
		p := *s.Prior
		p.PriorOutcome = nil
		t.Prior = &p
	}
	for _, one := range s.Gated {
		t.Decisions = append(t.Decisions, one.decision())
	}
	o.clean(tenant, &t, s)
	return t.shown()
}

// shown replaces sealed values by digests: reasons from the ledger are sealed there.
func (t StepTrace) shown() StepTrace {
	reasons := []*string{&t.Reason}
	for i := range t.Decisions {
		reasons = append(reasons, &t.Decisions[i].Reason)
		if v := t.Decisions[i].Known.Verification; v != nil {
			reasons = append(reasons, &v.Reason)
		}
	}
	for i := range t.Reports {
		reasons = append(reasons, &t.Reports[i].Reason)
	}
	for _, r := range reasons {
		*r = redact.ShownText(*r)
	}
	return t
}

// decision is one gate as returned in a trace.
func (g gated) decision() StepDecision {
	f := g.Facts
	d := StepDecision{At: g.At, By: g.By, Decision: g.Decision, Ruled: g.Ruled, Rules: g.Rules, Reason: g.Reason, Lease: g.Lease, Trace: g.Trace,
		Asked: StepAsked{Tool: f.Tool, RetryPolicy: f.RetryPolicy, Risk: f.Risk, Digest: g.Digest},
		Known: StepKnown{Gates: f.GateCount, Completions: f.CompletionCount, Prior: f.PriorCompletionStatus, Last: f.LastDecision, Since: f.FirstAttemptAge}}
	if v := f.Verification; v != nil {
		d.Known.Verification = &StepSeen{Effect: v.Effect, Verdict: v.Verdict, Reason: v.Reason, WriteID: v.WriteID, CheckedAt: v.CheckedAt}
	}
	return d
}

// tool is the tool of the step's business operation.
func (s step) tool() string { return s.Asked.toolName(s.ID, s.declared()) }
