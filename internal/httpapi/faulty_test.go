package httpapi_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/ledger"
)

// others is a Gate whose name is that of none of its methods.
type others = httpapi.Gate

// faulty is a gate that fails callers that are named for a fault.
type faulty struct {
	others
	gate *gate.Gate
}

func (f faulty) fail(ctx context.Context, c gate.Caller) error {
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
	return &gate.Error{Code: gate.Code(fault), Message: "as the test says"}
}

func (f faulty) Create(ctx context.Context, c gate.Caller, r gate.CreateRequest) (gate.Created, error) {
	if err := f.fail(ctx, c); err != nil {
		return gate.Created{}, err
	}
	return f.gate.Create(ctx, c, r)
}

func (f faulty) List(ctx context.Context, c gate.Caller, r gate.ListRequest) (gate.List, error) {
	if err := f.fail(ctx, c); err != nil {
		return gate.List{}, err
	}
	return f.gate.List(ctx, c, r)
}

func (f faulty) Approve(ctx context.Context, c gate.Caller, workflowID, stepID string, w gate.Comment) (gate.ApprovalResult, error) {
	if err := f.fail(ctx, c); err != nil {
		return gate.ApprovalResult{}, err
	}
	return f.gate.Approve(ctx, c, workflowID, stepID, w)
}
