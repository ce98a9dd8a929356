package gate

import "fmt"

// Code is the reason for a refusal, in the contract's words.
type Code string

// The codes. Those after ApprovalUnreadable are readback's own.
const (
	BadRequest         Code = "BAD_REQUEST"
	InvalidTraceID     Code = "INVALID_TRACE_ID"
	InvalidToolContext Code = "INVALID_TOOL_CONTEXT"
	Unauthorized       Code = "UNAUTHORIZED"
	Forbidden          Code = "FORBIDDEN"
	NotFound           Code = "NOT_FOUND"
	Terminal           Code = "WORKFLOW_TERMINAL"
	KeyMismatch        Code = "IDEMPOTENCY_KEY_MISMATCH"
	InputMismatch      Code = "STEP_INPUT_MISMATCH"
	ApprovalHold       Code = "APPROVAL_HOLD"
	ApprovalPending    Code = "APPROVAL_PENDING"
	StepRejected       Code = "STEP_REJECTED"
	NoApprovalNeeded   Code = "NO_APPROVAL_NEEDED"
	NotPending         Code = "NOT_PENDING"
	ApprovalExpired    Code = "APPROVAL_EXPIRED"
	ApprovalUnreadable Code = "APPROVAL_STATE_UNREADABLE"
	TooMany            Code = "CONCURRENT_EXECUTION_LIMIT"
	TooLarge           Code = "REQUEST_TOO_LARGE"
	Internal           Code = "INTERNAL_ERROR"

	StaleFence Code = "STALE_FENCE" // another caller has the lease
)

// Error is a refusal of the gate. Nothing was changed, unless Code is Internal and the message
// states a change.
type Error struct {
	Code    Code
	Message string
	// Field is the part of the request at fault, if it is one part.
	Field string
	// WorkflowID, StepID, Expected and Received are given with KeyMismatch and
	// InputMismatch.
	WorkflowID, StepID string
	Expected, Received string
	// Key is the step's idempotency key, given with InputMismatch.
	Key string
	Err error // the cause, for the log
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
