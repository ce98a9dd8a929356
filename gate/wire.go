package gate

import (
	"encoding/json"
	"time"
)

// The names in JSON are those of the published contract of the step gate (AxonFlow v7.3.0).
// Fields that readback adds are marked "ours"; old clients ignore them.

// Decision is the gate's answer about a step.
type Decision string

// The decisions. The zero value is invalid.
const (
	Allow           Decision = "allow"
	Block           Decision = "block"
	RequireApproval Decision = "require_approval"
)

// Status is the status of a workflow.
type Status string

// The statuses of workflows.
const (
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Aborted    Status = "aborted"
)

// Completion describes earlier attempts at a step.
type Completion string

// The prior completion statuses.
const (
	PriorNone         Completion = "none"
	PriorCompleted    Completion = "completed"
	PriorNotCompleted Completion = "gated_not_completed"
)

// ApprovalStatus is the approval status of a step.
type ApprovalStatus string

// The approval statuses. The zero value: no approval is needed.
const (
	Pending  ApprovalStatus = "pending"
	Approved ApprovalStatus = "approved"
	Rejected ApprovalStatus = "rejected"
	Expired  ApprovalStatus = "expired"
)

// CreateRequest begins a workflow.
type CreateRequest struct {
	WorkflowName string          `json:"workflow_name"`      // required
	Source       string          `json:"source,omitempty"`   // langgraph, langchain, crewai, external. Default external
	Metadata     json.RawMessage `json:"metadata,omitempty"` // an object
	TraceID      string          `json:"trace_id,omitempty"` // at most 255 characters
}

// Created is a new workflow.
type Created struct {
	WorkflowID   string    `json:"workflow_id"` // "wf_" and 8 hex digits
	WorkflowName string    `json:"workflow_name"`
	Source       string    `json:"source"`
	Status       Status    `json:"status"`
	CreatedAt    time.Time `json:"created_at"`
	TraceID      string    `json:"trace_id,omitempty"`
}

// ToolContext is the tool that a step calls.
type ToolContext struct {
	ToolName  string          `json:"tool_name"` // required
	ToolType  string          `json:"tool_type,omitempty"`
	ToolInput json.RawMessage `json:"tool_input,omitempty"` // an object
}

// GateRequest asks whether a step may be carried out.
type GateRequest struct {
	StepName       string          `json:"step_name,omitempty"`
	StepType       string          `json:"step_type"` // llm_call, tool_call, connector_call, human_task; required
	StepInput      json.RawMessage `json:"step_input,omitempty"`
	Model          string          `json:"model,omitempty"`
	Provider       string          `json:"provider,omitempty"`
	TokensIn       *int            `json:"tokens_in,omitempty"`
	TokensOut      *int            `json:"tokens_out,omitempty"`
	CostUSD        *float64        `json:"cost_usd,omitempty"`
	ToolContext    *ToolContext    `json:"tool_context,omitempty"`
	RetryPolicy    string          `json:"retry_policy,omitempty"`    // idempotent (default) or reevaluate
	IdempotencyKey string          `json:"idempotency_key,omitempty"` // at most 255 characters

	// Intent is ours: the WriteIntent that the step carries out by itself, with
	// tenant, workflow, step and idempotency key left out or the same as the
	// step's. With it the gate can say whether the effect is there.
	Intent json.RawMessage `json:"intent,omitempty"`
	// LeaseSeconds is ours: how long the caller may need for the step.
	LeaseSeconds int `json:"lease_seconds,omitempty"`

	// IncludePriorOutput is a query parameter of the URL.
	IncludePriorOutput bool `json:"-"`
}

// PolicyMatch is one rule that was evaluated.
type PolicyMatch struct {
	PolicyID          string `json:"policy_id"`
	PolicyName        string `json:"policy_name"`
	Action            string `json:"action"`
	Reason            string `json:"reason,omitempty"`
	RiskLevel         string `json:"risk_level,omitempty"`
	AllowOverride     bool   `json:"allow_override,omitempty"`
	MatchedRule       string `json:"matched_rule,omitempty"`
	PolicyDescription string `json:"policy_description,omitempty"`
}

// GateResponse is the answer of the gate.
type GateResponse struct {
	Decision          Decision      `json:"decision"`
	StepID            string        `json:"step_id"`
	DecisionID        string        `json:"decision_id,omitempty"`
	PolicyIDs         []string      `json:"policy_ids,omitempty"`
	Reason            string        `json:"reason,omitempty"`
	ApprovalID        string        `json:"approval_id,omitempty"`
	ApprovalURL       string        `json:"approval_url,omitempty"`
	PoliciesEvaluated []PolicyMatch `json:"policies_evaluated,omitempty"`
	PoliciesMatched   []PolicyMatch `json:"policies_matched,omitempty"`
	Cached            bool          `json:"cached"`          // deprecated in the contract
	DecisionSource    string        `json:"decision_source"` // fresh, cached; deprecated in the contract
	RetryContext      RetryContext  `json:"retry_context"`

	// Ours from here on. ReviewURL is the page where a reviewer decides, set while the step waits
	// for approval, by a server with a review UI. ApprovalURL takes the decision of a program.
	ReviewURL string `json:"review_url,omitempty"`
	// Lease is set when the decision is allow: whether this caller may carry
	// the step out now, or must wait for another one.
	*Lease
	// Prior is set when the decision is block because another workflow began the business
	// operation.
	*Prior
	// RetryAfterSeconds is when to ask again if the lease was not granted or another workflow is
	// carrying it out. 0: asking again does not help by itself.
	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"`
}

// Lease names the caller that may carry a step out.
type Lease struct {
	LeaseGranted   bool      `json:"lease_granted"`      // to this caller
	LeaseID        string    `json:"lease_id,omitempty"` // of the current or last holder
	LeaseHolder    string    `json:"lease_holder,omitempty"`
	LeaseExpiresAt time.Time `json:"lease_expires_at,omitzero"`
	// Fence is sent with the completion of the step. It increases whenever the lease goes to
	// another caller. It is set only if the lease was granted.
	Fence int64 `json:"fence,omitempty"`
}

// Prior is the attempt of another workflow at the same business operation.
type Prior struct {
	PriorWorkflowID string `json:"prior_workflow_id"`
	PriorStepID     string `json:"prior_step_id"`
	PriorWriteID    string `json:"prior_write_id"`
	PriorState      string `json:"prior_state"`             // as ledger.Record.Phase
	PriorOutcome    any    `json:"prior_outcome,omitempty"` // when it is settled
	PriorDiffers    bool   `json:"prior_differs,omitempty"` // its request differs under the same key
}

// RetryContext is what is known about attempts at a step. Every field of the
// contract is always present.
type RetryContext struct {
	GateCount             int             `json:"gate_count"` // including this one
	CompletionCount       int             `json:"completion_count"`
	PriorCompletionStatus Completion      `json:"prior_completion_status"`
	PriorOutputAvailable  bool            `json:"prior_output_available"`
	PriorOutput           json.RawMessage `json:"prior_output"` // an object or null
	PriorCompletionAt     *time.Time      `json:"prior_completion_at"`
	FirstAttemptAt        time.Time       `json:"first_attempt_at"`
	LastAttemptAt         time.Time       `json:"last_attempt_at"`
	LastDecision          Decision        `json:"last_decision"`
	IdempotencyKey        string          `json:"idempotency_key"`

	// Verification is ours: what the destination shows of the WriteIntent of a step that was
	// gated before, or was reported as completed. Absent if the destination was not read.
	Verification *Verification `json:"verification,omitempty"`
}

// Verification is the result of a read-back of a step's WriteIntent.
type Verification struct {
	// Effect is present, absent or unknown. Present: do not carry the step out again, complete
	// it. Absent: it is safe to carry out, unless it was completed: then its caller reported an
	// effect that is not there. Unknown: do not carry it out again before this is known.
	Effect     string          `json:"effect"`
	Verdict    string          `json:"verdict"`
	Reason     string          `json:"reason"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
	RecordRef  string          `json:"record_ref,omitempty"`
	RecordURL  string          `json:"record_url,omitempty"`
	WriteID    string          `json:"write_id,omitempty"` // the readback write that made it, if any
	// NotChecked lists the parts of the intent that were not compared, as JSON Pointers. A
	// verdict of verified does not cover them.
	NotChecked []string   `json:"not_checked,omitempty"`
	CheckedAt  time.Time  `json:"checked_at"`
	AskAfter   *time.Time `json:"ask_after,omitempty"` // when another read can give more
}

// CompleteRequest reports that a step was carried out.
type CompleteRequest struct {
	Output         json.RawMessage `json:"output,omitempty"`
	TokensIn       *int            `json:"tokens_in,omitempty"`
	TokensOut      *int            `json:"tokens_out,omitempty"`
	CostUSD        *float64        `json:"cost_usd,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`

	// Fence is ours: the granted one. A stale one is refused. Default: not given, and not
	// checked.
	Fence int64 `json:"fence,omitempty"`
}

// Ended is a workflow after complete, fail, abort or resume.
type Ended struct {
	WorkflowID string `json:"workflow_id"`
	Status     Status `json:"status"`
	Message    string `json:"message"`
	Reason     string `json:"reason,omitempty"`
}

// View is a workflow with its steps.
type View struct {
	WorkflowID       string          `json:"workflow_id"`
	WorkflowName     string          `json:"workflow_name"`
	Source           string          `json:"source"`
	Status           Status          `json:"status"`
	CurrentStepIndex int             `json:"current_step_index"`
	TotalSteps       *int            `json:"total_steps,omitempty"`
	StartedAt        time.Time       `json:"started_at"`
	CompletedAt      *time.Time      `json:"completed_at,omitempty"`
	TraceID          string          `json:"trace_id,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"` // ours
	Steps            []StepView      `json:"steps,omitempty"`
}

// StepView is a step of a workflow. Its output is not in it.
type StepView struct {
	StepID         string         `json:"step_id"`
	StepIndex      int            `json:"step_index"`
	StepName       string         `json:"step_name,omitempty"`
	StepType       string         `json:"step_type,omitempty"`
	Decision       Decision       `json:"decision"`
	DecisionReason string         `json:"decision_reason,omitempty"`
	ApprovalStatus ApprovalStatus `json:"approval_status,omitempty"`
	ApprovedBy     string         `json:"approved_by,omitempty"`
	ApprovedAt     *time.Time     `json:"approved_at,omitempty"`
	GateCheckedAt  time.Time      `json:"gate_checked_at"`
	CompletedAt    *time.Time     `json:"completed_at,omitempty"`

	// Reports are the decisions of reviewers, and of the deadline, about the step, in order. It is
	// for callers in this process and not in the contract's JSON.
	Reports []Report `json:"-"`
}

// Report is one decision about a step that waits for approval. Reports are never changed or
// removed.
type Report struct {
	Hold int       `json:"hold"` // the first, second, … time that the step was held
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
	// Decision is approved (by this reviewer; others may still be required), rejected or expired.
	// Pending reports that it was overdue and kept waiting.
	Decision ApprovalStatus `json:"decision"`
	// Digest fingerprints what was asked for: input, tool and intent.
	Digest string `json:"digest"`
	Reason string `json:"reason,omitempty"`
	// Trace is the W3C trace context of the call that decided. Default none.
	Trace string `json:"trace,omitempty"`
}

// CheckpointList is the completed steps of a workflow.
type CheckpointList struct {
	WorkflowID  string       `json:"workflow_id"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	Count       int          `json:"count"`
}

// Checkpoint is a completed step: the workflow can continue after it.
type Checkpoint struct {
	StepIndex int    `json:"step_index"` // names the checkpoint
	StepID    string `json:"step_id"`
	StepName  string `json:"step_name,omitempty"`
	StepType  string `json:"step_type,omitempty"`
	// GateDecision is the gate's last decision about the step.
	GateDecision Decision  `json:"gate_decision"`
	GateReason   string    `json:"gate_reason,omitempty"`
	CompletedAt  time.Time `json:"completed_at"`
}

// ListRequest selects workflows of a tenant.
type ListRequest struct {
	Limit, Offset           int // default 20 and 0
	Status, Source, TraceID string
}

// List is a page of workflows, newest first.
type List struct {
	Workflows []View `json:"workflows"`
	Total     int    `json:"total"`
	Limit     int    `json:"limit"`
	Offset    int    `json:"offset"`
	HasMore   bool   `json:"has_more"`
}

// ApprovalResult is a step after a reviewer's decision.
type ApprovalResult struct {
	WorkflowID      string         `json:"workflow_id"`
	PlanID          string         `json:"plan_id,omitempty"`
	StepID          string         `json:"step_id"`
	Status          string         `json:"status,omitempty"`
	Decision        Decision       `json:"decision"`
	Reason          string         `json:"reason,omitempty"`
	ApprovalStatus  ApprovalStatus `json:"approval_status,omitempty"`
	ApprovalID      string         `json:"approval_id,omitempty"`
	ApprovedBy      string         `json:"approved_by,omitempty"`
	ApprovedAt      *time.Time     `json:"approved_at,omitempty"`
	RejectedBy      string         `json:"rejected_by,omitempty"`
	RejectedAt      *time.Time     `json:"rejected_at,omitempty"`
	PoliciesMatched []PolicyMatch  `json:"policies_matched,omitempty"`
	RetryContext    RetryContext   `json:"retry_context"`
	Message         string         `json:"message,omitempty"`
}

// PendingApproval is a step that waits for a reviewer.
type PendingApproval struct {
	WorkflowID      string          `json:"workflow_id"`
	WorkflowName    string          `json:"workflow_name"`
	PlanID          string          `json:"plan_id,omitempty"`
	StepID          string          `json:"step_id"`
	StepIndex       int             `json:"step_index"`
	StepName        string          `json:"step_name,omitempty"`
	StepType        string          `json:"step_type,omitempty"`
	Decision        Decision        `json:"decision"`
	DecisionReason  string          `json:"decision_reason,omitempty"`
	PoliciesMatched []PolicyMatch   `json:"policies_matched,omitempty"`
	StepInput       json.RawMessage `json:"step_input,omitempty"`
	ApprovalStatus  ApprovalStatus  `json:"approval_status,omitempty"`
	CreatedAt       time.Time       `json:"created_at"`

	// Ours: the ID of this hold for a decision, the rest of the request, the deadline, how many
	// reviewers must approve, and who already has.
	ApprovalID  string          `json:"approval_id,omitempty"`
	ToolContext *ToolContext    `json:"tool_context,omitempty"`
	Intent      json.RawMessage `json:"intent,omitempty"`
	ExpiresAt   *time.Time      `json:"expires_at,omitempty"`
	Need        int             `json:"approvals_needed,omitempty"`
	ApprovedBy  []string        `json:"approved_by,omitempty"`
	Overdue     bool            `json:"overdue,omitempty"`
}
