package gate

import (
	"context"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

// Facts is what rules may test.
type Facts struct {
	Tenant       string `json:"tenant"`
	WorkflowID   string `json:"workflow_id"`
	WorkflowName string `json:"workflow_name"`
	Source       string `json:"source"`
	StepID       string `json:"step_id"`
	StepName     string `json:"step_name,omitempty"`
	StepType     string `json:"step_type"`
	Tool         string `json:"tool,omitempty"`
	ToolType     string `json:"tool_type,omitempty"`
	Model        string `json:"model,omitempty"`
	Provider     string `json:"provider,omitempty"`
	RetryPolicy  string `json:"retry_policy"` // idempotent or reevaluate
	// Risk is the risk class of the step's tool and destination: auto, log or
	// approve.
	Risk string `json:"risk"`
	// Cost is in US dollars.
	Cost      float64 `json:"cost"`
	TokensIn  int     `json:"tokens_in,omitempty"`
	TokensOut int     `json:"tokens_out,omitempty"`

	// As in the RetryContext of this gate.
	GateCount             int           `json:"gate_count"`
	CompletionCount       int           `json:"completion_count"`
	PriorCompletionStatus Completion    `json:"prior_completion_status"`
	PriorOutputAvailable  bool          `json:"prior_output_available"`
	LastDecision          Decision      `json:"last_decision"`
	FirstAttemptAge       time.Duration `json:"first_attempt_age"` // ns
	IdempotencyKey        string        `json:"idempotency_key"`
	Verification          *Verification `json:"verification,omitempty"`

	// Input is step_input, ToolInput that of the tool, Intent the WriteIntent as JSON; nil if
	// there is none.
	Input     map[string]any `json:"input,omitempty"`
	ToolInput map[string]any `json:"tool_input,omitempty"`
	Intent    map[string]any `json:"intent,omitempty"`
}

// Ruling is a decision of the rules, with its reason.
type Ruling struct {
	Decision           Decision
	Reason             string
	Evaluated, Matched []PolicyMatch
}

// Decider rules on a step. It is pure: the same facts give the same answer. An error means no
// answer, and the gate gives none.
type Decider interface {
	Decide(ctx context.Context, f Facts) (Ruling, error)
}

// UnansweredError names the rule that has no answer, and the reason. The caller receives both.
type UnansweredError struct {
	Rule string // its id
	Err  error
}

// Error is why.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap is why.
func (e *UnansweredError) Unwrap() error { return e.Err }

// Reader reports whether the effect of a delegated write is at its destination. [engine.Engine]
// implements it.
type Reader interface {
	ReadBack(ctx context.Context, w intent.WriteIntent, c engine.ReadBackCase) (engine.ReadResult, error)
}
