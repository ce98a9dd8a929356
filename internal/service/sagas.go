package service

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// BeginSaga begins a saga in the name of the caller. The same plan again returns the saga
// in its current state. The tenant is that of the credentials, as in [Service.Submit].
func (o *Service) BeginSaga(ctx context.Context, who Who, p saga.Plan) (saga.Saga, error) {
	if err := o.sagas(who, access.Submit); err != nil {
		return saga.Saga{}, err
	}
	if p.Tenant == "" {
		p.Tenant = who.Tenant
	}
	if p.Tenant != who.Tenant {
		return saga.Saga{}, fmt.Errorf("%w: /tenant is not the one of the credentials; leave it out", ErrTenant)
	}
	s, err := o.parts.Sagas.Begin(engine.As(ctx, who.Principal()), p)
	var of []intent.WriteIntent
	for _, step := range p.Steps {
		of = append(of, step.Intent)
		if step.Undo != nil {
			of = append(of, *step.Undo)
		}
	}
	return o.pageOf(s), o.cleaned(who, err, of...)
}

// sagas fails where there are none, or the caller may not do this to them.
func (o *Service) sagas(who Who, a access.Act) error {
	if err := who.May(a); err != nil {
		return err
	}
	if o.parts.Sagas == nil {
		return fmt.Errorf("%w: this ledger keeps no sagas", ErrUnsupported)
	}
	return nil
}

// Saga is the state of a saga of the own tenant. One with a step outside of the scope of
// the caller is not found.
func (o *Service) Saga(ctx context.Context, who Who, id string) (saga.Saga, error) {
	if err := o.sagas(who, access.Read); err != nil {
		return saga.Saga{}, err
	}
	s, err := o.parts.Sagas.Get(ctx, who.Tenant, id)
	for _, step := range s.Steps {
		if who.Scope.Names(step.Destination, step.Kind, step.Write, step.Tool) != nil {
			return saga.Saga{}, fmt.Errorf("%w: %q", saga.ErrNotFound, id)
		}
	}
	return o.pageOf(s), err
}

// pageOf is a saga with the address of its page, if it or one of its writes waits for a
// reviewer.
func (o *Service) pageOf(s saga.Saga) saga.Saga {
	waits := s.State == saga.Review || slices.ContainsFunc(s.Steps, func(t saga.StepState) bool {
		return t.Status.Group() == ledger.NeedsReview || t.UndoStatus.Group() == ledger.NeedsReview
	})
	if waits && o.parts.ReviewUI != "" {
		s.ReviewURL = o.parts.ReviewUI + "/sagas/" + url.PathEscape(s.ID)
	}
	return s
}

// Sagas lists sagas of the own tenant, newest first, of any state where none is
// given.
func (o *Service) Sagas(ctx context.Context, who Who, limit int, states ...saga.State) ([]saga.Saga, error) {
	if err := o.sagas(who, access.Trace); err != nil {
		return nil, err
	}
	all, err := o.parts.Sagas.List(ctx, who.Tenant, limit, states...)
	for i, s := range all {
		all[i] = o.pageOf(s)
	}
	return all, err
}

// CancelSaga makes a saga compensate.
func (o *Service) CancelSaga(ctx context.Context, who Who, id, reason string) (saga.Saga, error) {
	if err := o.sagas(who, access.Operate); err != nil {
		return saga.Saga{}, err
	}
	s, err := o.parts.Sagas.Cancel(engine.As(ctx, who.Principal()), who.Tenant, id, who.Name, reason)
	o.describe(ctx, who, "a saga is cancelled", err, "saga", id)
	return s, err
}

// CloseSaga ends a saga that a reviewer has seen to.
func (o *Service) CloseSaga(ctx context.Context, who Who, id, reason string) (saga.Saga, error) {
	if err := o.sagas(who, access.Operate); err != nil {
		return saga.Saga{}, err
	}
	s, err := o.parts.Sagas.Close(engine.As(ctx, who.Principal()), who.Tenant, id, who.Name, reason)
	o.describe(ctx, who, "a saga is closed", err, "saga", id)
	return s, err
}

// steps fails where there is no gate, or the caller may not do this to its steps.
func (o *Service) steps(who Who, a access.Act) error {
	if err := who.May(a); err != nil {
		return err
	}
	if o.parts.Steps == nil {
		return fmt.Errorf("%w: there is no gate", ErrUnsupported)
	}
	return nil
}

// DecideStep approves a step that the gate holds, or rejects it.
func (o *Service) DecideStep(ctx context.Context, who Who, workflowID, stepID string, approve bool, s gate.Comment) (gate.ApprovalResult, error) {
	if err := o.steps(who, access.Decide); err != nil {
		return gate.ApprovalResult{}, err
	}
	how, word := o.parts.Steps.Reject, "reject"
	if approve {
		how, word = o.parts.Steps.Approve, "approve"
	}
	result, err := how(ctx, caller(who), workflowID, stepID, s)
	o.describe(ctx, who, "a step is decided about", err, "workflow", workflowID, "step", stepID, "word", word)
	return result, err
}

// StepTrace is the decision about a step of the own tenant: which caller asked, and by
// which rules and why it was decided, also where it was blocked and has no write.
func (o *Service) StepTrace(ctx context.Context, who Who, workflowID, stepID string) (gate.StepTrace, error) {
	if err := o.steps(who, access.Trace); err != nil {
		return gate.StepTrace{}, err
	}
	return o.parts.Steps.Trace(ctx, caller(who), workflowID, stepID)
}

// WorkflowSteps are the decisions about the steps of a workflow of the own tenant, in the
// order in which they reached the gate, from offset on; those that were blocked and have
// no write are among them. The limit is 20 by default and 100 at the most.
func (o *Service) WorkflowSteps(ctx context.Context, who Who, workflowID string, limit, offset int) (gate.StepList, error) {
	if err := o.steps(who, access.Trace); err != nil {
		return gate.StepList{}, err
	}
	return o.parts.Steps.Steps(ctx, caller(who), workflowID, limit, offset)
}

func caller(who Who) gate.Caller {
	return gate.Caller{Tenant: who.Tenant, Name: who.Name, Role: who.Role, Scope: who.Scope}
}

// describe logs a caller's decision; the reason is in the ledger.
func (o *Service) describe(ctx context.Context, who Who, what string, err error, about ...any) {
	args := append([]any{"tenant", who.Tenant, "by", who.Name, "via", who.Via, "credentials", who.ID}, about...)
	if err != nil {
		args = append(args, "refused", err)
	}
	o.log.InfoContext(ctx, what, args...)
}
