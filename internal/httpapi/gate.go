package httpapi

import (
	"context"

	"github.com/readback-go/readback/gate"
)

// Gate is what the API calls of a [gate.Gate], whose refusals are a [gate.Error].
type Gate interface {
	Create(ctx context.Context, c gate.Caller, r gate.CreateRequest) (gate.Created, error)
	Get(ctx context.Context, c gate.Caller, workflowID string) (gate.View, error)
	List(ctx context.Context, c gate.Caller, r gate.ListRequest) (gate.List, error)

	Complete(ctx context.Context, c gate.Caller, workflowID, reason string) (gate.Ended, error)
	Fail(ctx context.Context, c gate.Caller, workflowID, reason string) (gate.Ended, error)
	Abort(ctx context.Context, c gate.Caller, workflowID, reason string) (gate.Ended, error)
	Resume(ctx context.Context, c gate.Caller, workflowID, reason string) (gate.Ended, error)

	Gate(ctx context.Context, c gate.Caller, workflowID, stepID string, r gate.GateRequest) (gate.GateResponse, error)
	CompleteStep(ctx context.Context, c gate.Caller, workflowID, stepID string, r gate.CompleteRequest) (*gate.Verification, error)
	Checkpoints(ctx context.Context, c gate.Caller, workflowID string) (gate.CheckpointList, error)

	Approve(ctx context.Context, c gate.Caller, workflowID, stepID string, w gate.Comment) (gate.ApprovalResult, error)
	Reject(ctx context.Context, c gate.Caller, workflowID, stepID string, w gate.Comment) (gate.ApprovalResult, error)
	Pending(ctx context.Context, c gate.Caller, limit int) ([]gate.PendingApproval, error)
	CountPending(ctx context.Context, c gate.Caller) (int, error)
}
