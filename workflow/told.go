package workflow

import (
	"context"
	"time"
)

// StepTrace is what the gate and people decided about a step, and who asked. It is
// for callers in this process: it is not in the contract.
type StepTrace struct {
	WorkflowID   string `json:"workflow_id"`
	WorkflowName string `json:"workflow_name"`
	StepID       string `json:"step_id"`
	StepName     string `json:"step_name,omitempty"`
	StepType     string `json:"step_type"`
	// Tool and IdempotencyKey name its business operation, WriteID is the write that
	// stands for that. Default none: it named no key, was blocked, or keys are
	// compared within one workflow only.
	Tool           string `json:"tool,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	WriteID        string `json:"write_id,omitempty"`
	// Decision and Reason are what the gate would say of it now.
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	// Waits says that a person must decide.
	Waits bool `json:"waits,omitempty"`
	// Prior is the attempt of another workflow that was in its way when it was gated
	// last, without its outcome. Default none was.
	Prior *Prior `json:"prior,omitempty"`
	// CompletedAt and CompletedBy are the last report that it was carried out.
	CompletedAt *time.Time `json:"completed_at,omitempty"`
	CompletedBy string     `json:"completed_by,omitempty"`
	// Gates is how often the step was gated; the last 20 at most are in Decisions.
	Gates     int            `json:"gates"`
	Decisions []StepDecision `json:"decisions"`       // in order
	Heard     []Heard        `json:"heard,omitempty"` // in order, all that was recorded
}

// StepDecision is one answer of the gate about a step.
type StepDecision struct {
	At time.Time `json:"at"`
	// By asked. Default nobody: it was not kept, or the caller had no name.
	By       string   `json:"by,omitempty"`
	Decision Decision `json:"decision"`
	// Ruled is what the rules said, before risk rules, people and the attempts of other
	// workflows. "" where no rule was asked: the answer is that of before.
	Ruled Decision `json:"ruled,omitempty"`
	// Rules are the ids of the rules that the decision goes back to. Default none
	// fitted.
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
	// Lease says whether whoever asked could carry the step out then. Default it was
	// not allowed, or it was not kept.
	Lease LeaseWord `json:"lease,omitempty"`
	// Trace is the W3C trace context of the call. Default none.
	Trace string    `json:"trace,omitempty"`
	Asked StepAsked `json:"asked"`
	Known StepKnown `json:"known"`
}

// LeaseWord says what became of a lease where the answer was allow.
type LeaseWord string

// The words. The zero value says nothing.
const (
	LeaseGranted  LeaseWord = "granted"
	LeaseWithheld LeaseWord = "withheld" // somebody has it, it is done, or its effect is there or in doubt
)

// StepAsked is what was asked of the gate.
type StepAsked struct {
	Tool        string `json:"tool,omitempty"`
	RetryPolicy string `json:"retry_policy,omitempty"`
	Risk        string `json:"risk,omitempty"` // the risk class: auto, log or approve
	// Digest fingerprints what was asked for: input, tool and intent.
	Digest string `json:"digest,omitempty"`
}

// StepKnown is what was known of attempts at the step, as the rules saw it.
type StepKnown struct {
	Gates       int        `json:"gate_count"` // that one included
	Completions int        `json:"completion_count"`
	Prior       Completion `json:"prior_completion_status,omitempty"`
	Last        Decision   `json:"last_decision,omitempty"`
	// Since is how long ago it was asked for the first time.
	Since time.Duration `json:"since_first_ns"`
	// Verification is what the destination said. Default nothing was looked at.
	Verification *StepSeen `json:"verification,omitempty"`
}

// StepSeen is what a look at the destination found; see [Verification].
type StepSeen struct {
	Effect    string    `json:"effect"`
	Verdict   string    `json:"verdict"`
	Reason    string    `json:"reason,omitempty"`
	WriteID   string    `json:"write_id,omitempty"`
	CheckedAt time.Time `json:"checked_at"`
}

// Trace returns who asked about a step, what the gate answered and why, and what
// people decided, also for a step that was blocked and never had a write. It fails
// with an [Error] of [NotFound] where the tenant has no such step.
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

// trace is what may be told of a step as it stands at a time.
func (o *Options) trace(tenant, workflowID string, f flow, kept step, now time.Time) StepTrace {
	s, _ := kept.lapsed(now)
	t := StepTrace{WorkflowID: workflowID, WorkflowName: f.Name, StepID: s.ID, StepName: s.Name, StepType: s.Type,
		Tool: s.tool(), IdempotencyKey: s.Key, WriteID: string(s.Operation), CompletedAt: s.CompletedAt, CompletedBy: s.CompletedBy,
		Gates: s.Gates, Decisions: []StepDecision{}, Heard: kept.Heard} // that time was over is heard when it is recorded, not whenever somebody looks
	t.Decision, t.Reason = s.answer()
	t.Waits = s.status() == Pending && f.Status == InProgress
	if s.Prior != nil {
		p := *s.Prior
		p.PriorOutcome = nil
		t.Prior = &p
	}
	for _, one := range s.Gated {
		t.Decisions = append(t.Decisions, one.told())
	}
	o.clean(tenant, &t, s)
	return t
}

// told is one gate as it is told.
func (g gated) told() StepDecision {
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
