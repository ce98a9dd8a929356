package workflow

import (
	"context"
	"time"
)

// StepTrace is what the gate and people decided about a step, and who asked. It is
// for callers in this process: it is not in the contract.
type StepTrace struct {
	WorkflowID   string
	WorkflowName string
	StepID       string
	StepName     string
	StepType     string
	// Decision and Reason are what the gate would say of it now.
	Decision Decision
	Reason   string
	// Waits says that a person must decide.
	Waits bool
	// Gates is how often the step was gated; the last 20 at most are in Decisions.
	Gates     int
	Decisions []StepDecision // in order
	Heard     []Heard        // in order, all that was recorded
}

// StepDecision is one answer of the gate about a step.
type StepDecision struct {
	At time.Time
	// By asked. Default nobody: it was not kept, or the caller had no name.
	By       string
	Decision Decision
	// Rules are the ids of the rules that the decision goes back to. Default none
	// fitted.
	Rules  []string
	Reason string
	// Trace is the W3C trace context of the call. Default none.
	Trace string
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
	s, _ := d.step.lapsed(d.now)
	t := StepTrace{WorkflowID: d.wf.ID, WorkflowName: d.flow.Name, StepID: s.ID, StepName: s.Name, StepType: s.Type, Gates: s.Gates,
		Heard: d.step.Heard} // that time was over is heard when it is recorded, not whenever somebody looks
	t.Decision, t.Reason = s.answer()
	t.Waits = s.status() == Pending && d.flow.Status == InProgress
	for _, one := range s.Gated {
		t.Decisions = append(t.Decisions, StepDecision{At: one.At, By: one.By, Decision: one.Decision, Rules: one.Rules, Reason: one.Reason, Trace: one.Trace})
	}
	g.options().clean(c.Tenant, &t, s)
	return t, nil
}
