package httpapi

import (
	"context"

	"github.com/readback-go/readback/workflow"
)

// Gate is what the door asks. [*workflow.Gate] is one. Its refusals are
// [workflow.Error].
type Gate interface {
	Workflows
	Endings
	Steps
	Approvals
}

// Workflows begins and finds workflows.
type Workflows interface {
	Create(ctx context.Context, c workflow.Caller, r workflow.CreateRequest) (workflow.Created, error)
	Get(ctx context.Context, c workflow.Caller, workflowID string) (workflow.View, error)
	List(ctx context.Context, c workflow.Caller, r workflow.ListRequest) (workflow.List, error)
}

// Endings ends workflows, and takes up again.
type Endings interface {
	Complete(ctx context.Context, c workflow.Caller, workflowID, reason string) (workflow.Ended, error)
	Fail(ctx context.Context, c workflow.Caller, workflowID, reason string) (workflow.Ended, error)
	Abort(ctx context.Context, c workflow.Caller, workflowID, reason string) (workflow.Ended, error)
	Resume(ctx context.Context, c workflow.Caller, workflowID, reason string) (workflow.Ended, error)
}

// Steps lets steps through and hears of them.
type Steps interface {
	Gate(ctx context.Context, c workflow.Caller, workflowID, stepID string, r workflow.GateRequest) (workflow.GateResponse, error)
	CompleteStep(ctx context.Context, c workflow.Caller, workflowID, stepID string, r workflow.CompleteRequest) (*workflow.Verification, error)
	Checkpoints(ctx context.Context, c workflow.Caller, workflowID string) (workflow.CheckpointList, error)
}

// Approvals decides about steps that wait for a person.
type Approvals interface {
	Approve(ctx context.Context, c workflow.Caller, workflowID, stepID string, w workflow.Said) (workflow.ApprovalResult, error)
	Reject(ctx context.Context, c workflow.Caller, workflowID, stepID string, w workflow.Said) (workflow.ApprovalResult, error)
	Pending(ctx context.Context, c workflow.Caller, limit int) ([]workflow.PendingApproval, error)
	CountPending(ctx context.Context, c workflow.Caller) (int, error)
}
