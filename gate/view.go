package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Get returns a workflow with the steps that the caller's scope covers, or an [Error] of
// [NotFound].
func (g *Gate) Get(ctx context.Context, c Caller, workflowID string) (View, error) {
	if err := firstOf(c.check(), checkIDs(workflowID, "-")); err != nil {
		return View{}, err
	}
	d, err := g.read(ctx, c.Tenant, workflowID, "")
	if err != nil {
		return View{}, failed(err)
	}
	opts := g.options()
	v := d.flow.view(d.wf)
	opts.clean(c.Tenant, &v)
	err = g.eachStep(ctx, c.Tenant, workflowID, func(p ledger.Document, s step) error {
		if c.covers(s) != nil {
			return nil //nolint:nilerr // steps outside the scope are not shown
		}
		s, _ = s.lapsed(p.Now)
		one := s.view()
		opts.clean(c.Tenant, &one, s)
		v.Steps = append(v.Steps, one)
		return nil
	})
	if err != nil {
		return View{}, failed(err)
	}
	return v, nil
}

func (f flow) view(p ledger.Document) View {
	v := View{WorkflowID: p.ID, WorkflowName: f.Name, Source: f.Source, Status: f.Status, CurrentStepIndex: max(0, f.Steps-1),
		StartedAt: p.Created, CompletedAt: f.EndedAt, TraceID: f.TraceID, Metadata: f.Metadata}
	if f.Status != InProgress {
		v.TotalSteps = &f.Steps
	}
	return v
}

func (s step) view() StepView {
	v := StepView{StepID: s.ID, StepIndex: s.Index, StepName: s.Name, StepType: s.Type, Decision: s.Decision, DecisionReason: s.Reason,
		ApprovalStatus: s.status(), GateCheckedAt: s.LastGate, CompletedAt: s.CompletedAt, Reports: s.Reports}
	if s.status() == Approved {
		v.ApprovedBy, v.ApprovedAt = s.Hold.By, s.Hold.At
	}
	return v
}

// stepsAtOnce is how many steps are read together: their documents can be large.
const stepsAtOnce = 32

// eachStep visits the steps of a workflow in order.
func (g *Gate) eachStep(ctx context.Context, tenant, workflowID string, visit func(ledger.Document, step) error) error {
	for offset := 0; ; offset += stepsAtOnce {
		documents, total, err := g.store.FindDocuments(ctx, ledger.DocumentQuery{Tenant: tenant, Kind: kindStep, Collection: workflowID, Limit: stepsAtOnce, Offset: offset})
		if err != nil {
			return err
		}
		for _, p := range documents {
			s, err := readStep(p)
			if err == nil {
				err = visit(p, s)
			}
			if err != nil {
				return err
			}
		}
		if len(documents) == 0 || offset+len(documents) >= total {
			return nil
		}
	}
}

// List returns workflows of the tenant, newest first, without their steps.
func (g *Gate) List(ctx context.Context, c Caller, r ListRequest) (List, error) {
	err := firstOf(c.check(), text(maxTrace, "trace_id", r.TraceID))
	if err == nil && r.Status != "" {
		err = oneOf("status", r.Status, string(InProgress), string(Completed), string(Failed), string(Aborted))
	}
	if err == nil && r.Source != "" {
		err = oneOf("source", r.Source, sources...)
	}
	switch {
	case err != nil:
		return List{}, err
	case r.Limit < 0 || r.Offset < 0:
		return List{}, badRequest("limit and offset", "are %d and %d; want at least 0", r.Limit, r.Offset)
	}
	q := ledger.DocumentQuery{Tenant: c.Tenant, Kind: kindWorkflow, Subject: r.Source, Trace: r.TraceID, Limit: min(cmp.Or(r.Limit, defaultList), maxList), Offset: r.Offset}
	if r.Status != "" {
		q.States = []string{r.Status}
	}
	documents, total, err := g.store.FindDocuments(ctx, q)
	if err != nil {
		return List{}, failed(err)
	}
	l := List{Workflows: []View{}, Total: total, Limit: q.Limit, Offset: q.Offset, HasMore: q.Offset+len(documents) < total}
	for _, p := range documents {
		f, err := readFlow(p)
		if err != nil {
			return List{}, failed(err)
		}
		one := f.view(p)
		g.options().clean(c.Tenant, &one)
		l.Workflows = append(l.Workflows, one)
	}
	return l, nil
}

// Pending returns steps of the tenant that wait for a reviewer, newest first. The limit is 20 by
// default and 100 at most.
func (g *Gate) Pending(ctx context.Context, c Caller, limit int) ([]PendingApproval, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if limit < 0 {
		return nil, badRequest("limit", "is %d; want at least 0", limit)
	}
	limit = min(cmp.Or(limit, defaultList), maxList)
	all := []PendingApproval{}
	for offset := 0; len(all) < limit; offset += stepsAtOnce {
		documents, total, err := g.store.FindDocuments(ctx, ledger.DocumentQuery{Tenant: c.Tenant, Kind: kindStep, States: []string{statePending}, Limit: stepsAtOnce, Offset: offset})
		if err != nil {
			return nil, failed(err)
		}
		for _, p := range documents {
			one, err := g.pending(ctx, p)
			if err != nil {
				return nil, failed(err)
			}
			if one != nil && len(all) < limit {
				all = append(all, *one)
			}
		}
		if len(documents) == 0 || offset+len(documents) >= total {
			break
		}
	}
	return all, nil
}

// CountPending is how many steps of the tenant wait for a reviewer. It may briefly count a step
// whose deadline has passed, or whose workflow has ended.
func (g *Gate) CountPending(ctx context.Context, c Caller) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	_, total, err := g.store.FindDocuments(ctx, ledger.DocumentQuery{Tenant: c.Tenant, Kind: kindStep, States: []string{statePending}, Limit: 1})
	if err != nil {
		return 0, failed(err)
	}
	return total, nil
}

// pending is a step that waits for a reviewer, nil if it no longer does.
func (g *Gate) pending(ctx context.Context, p ledger.Document) (*PendingApproval, error) {
	s, err := readStep(p)
	if err != nil {
		return nil, err
	}
	if s, _ = s.lapsed(p.Now); s.status() != Pending {
		return nil, nil
	}
	wf, err := g.store.Document(ctx, p.Tenant, kindWorkflow, p.Collection)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := readFlow(wf)
	if err != nil || f.Status != InProgress {
		return nil, err
	}
	h := s.Hold
	one := PendingApproval{
		WorkflowID: p.Collection, WorkflowName: f.Name, StepID: s.ID, StepIndex: s.Index, StepName: s.Name, StepType: s.Type,
		Decision: s.Decision, DecisionReason: s.Reason, PoliciesMatched: s.Matched, StepInput: s.Asked.Input, ApprovalStatus: Pending,
		ApprovalID: approvalID(p.Collection, s.ID, h.Number), ToolContext: s.Asked.Tool, Intent: s.Asked.Intent,
		CreatedAt: h.Since, ExpiresAt: &h.Until, Need: h.Need, ApprovedBy: h.Agreed, Overdue: h.Overdue,
	}
	g.options().clean(p.Tenant, &one, s)
	return &one, nil
}

// Checkpoints returns the completed steps of a workflow, in its order.
func (g *Gate) Checkpoints(ctx context.Context, c Caller, workflowID string) (CheckpointList, error) {
	v, err := g.Get(ctx, c, workflowID)
	if err != nil {
		return CheckpointList{}, err
	}
	l := CheckpointList{WorkflowID: workflowID, Checkpoints: []Checkpoint{}}
	for _, s := range v.Steps {
		if s.CompletedAt != nil {
			l.Checkpoints = append(l.Checkpoints, Checkpoint{StepIndex: s.StepIndex, StepID: s.StepID, StepName: s.StepName, StepType: s.StepType,
				GateDecision: s.Decision, GateReason: s.DecisionReason, CompletedAt: *s.CompletedAt})
		}
	}
	l.Count = len(l.Checkpoints)
	return l, nil
}

// RecordedStep is one past gate, to try rules on.
type RecordedStep struct {
	At    time.Time `json:"at"`
	Facts Facts     `json:"facts"`
	// Ruled is the rules' decision then, "" if the decision was cached. Decision and Reason are
	// the gate's.
	Ruled    Decision `json:"ruled,omitempty"`
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
}

// Recorded returns past gates of a tenant: of its newest steps, at most limit (default 20, at
// most 1000), the newest step first, its gates in order. Of each step the last 20 are kept.
func (g *Gate) Recorded(ctx context.Context, tenant string, limit int) ([]RecordedStep, error) {
	if tenant == "" {
		return nil, &Error{Code: Unauthorized, Message: "Missing tenant or org identity"}
	}
	const most = 1000
	limit = min(max(cmp.Or(limit, defaultList), 1), most)
	all := []RecordedStep{}
	for offset := 0; len(all) < limit; offset += stepsAtOnce {
		documents, total, err := g.store.FindDocuments(ctx, ledger.DocumentQuery{Tenant: tenant, Kind: kindStep, Limit: stepsAtOnce, Offset: offset})
		if err != nil {
			return nil, failed(err)
		}
		for _, p := range documents {
			s, err := readStep(p)
			if err != nil {
				return nil, failed(err)
			}
			all = append(all, s.recorded()...)
		}
		if len(documents) == 0 || offset+len(documents) >= total {
			break
		}
	}
	return all[:min(len(all), limit)], nil
}

func (s step) recorded() (all []RecordedStep) {
	byDigest := map[string]asked{}
	for _, a := range append(slices.Clone(s.Earlier), s.Asked) {
		byDigest[a.Digest] = a
	}
	for _, one := range s.Gated {
		all = append(all, RecordedStep{At: one.At, Facts: one.Facts.with(byDigest[one.Digest]), Ruled: one.Ruled, Decision: one.Decision, Reason: one.Reason})
	}
	return all
}
