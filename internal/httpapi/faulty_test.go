package httpapi_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
)

// faulty is a gate that fails callers who are named for a fault.
type faulty struct {
	httpapi.Workflows
	httpapi.Endings
	httpapi.Steps
	httpapi.Approvals
	gate *workflow.Gate
}

func (f faulty) fail(ctx context.Context, c workflow.Caller) error {
	fault, ok := strings.CutPrefix(c.Name, "fault:")
	switch {
	case !ok:
		return nil
	case fault == "panic":
		panic("a secret")
	case fault == "ledger":
		return fmt.Errorf("%w: a secret", ledger.ErrUnavailable)
	case fault == "hang":
		<-ctx.Done()
		return ctx.Err()
	}
	return &workflow.Error{Code: workflow.Code(fault), Message: "as the test says"}
}

func (f faulty) Create(ctx context.Context, c workflow.Caller, r workflow.CreateRequest) (workflow.Created, error) {
	if err := f.fail(ctx, c); err != nil {
		return workflow.Created{}, err
	}
	return f.gate.Create(ctx, c, r)
}

func (f faulty) List(ctx context.Context, c workflow.Caller, r workflow.ListRequest) (workflow.List, error) {
	if err := f.fail(ctx, c); err != nil {
		return workflow.List{}, err
	}
	return f.gate.List(ctx, c, r)
}

func (f faulty) Approve(ctx context.Context, c workflow.Caller, workflowID, stepID string, w workflow.Said) (workflow.ApprovalResult, error) {
	if err := f.fail(ctx, c); err != nil {
		return workflow.ApprovalResult{}, err
	}
	return f.gate.Approve(ctx, c, workflowID, stepID, w)
}
