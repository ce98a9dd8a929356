package workflow_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/workflow"
)

// hush takes every reason out of a trace.
type hush struct{}

func (hush) Tells(string, string) bool { return false }
func (hush) Clean(_ string, v any, _ ...intent.WriteIntent) {
	if t, ok := v.(*workflow.StepTrace); ok {
		for i := range t.Decisions {
			t.Decisions[i].Reason = "hushed"
		}
	}
}

func TestTheTraceOfAStep(t *testing.T) {
	b := newBench(t, func(o *workflow.Options) { o.Redaction = hush{} })
	b.rules.says = workflow.Block
	asking := engine.WithTraceparent(t.Context(), agentsTrace)
	made, err := b.gate.Create(asking, agent, workflow.CreateRequest{WorkflowName: "payout"})
	if err != nil {
		t.Fatal(err)
	}
	const gates = 22 // more than are kept
	for range gates {
		if _, err := b.gate.Gate(asking, agent, made.WorkflowID, "pay", call()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.gate.Trace(t.Context(), alice, made.WorkflowID, "pay")
	if err != nil || got.Decision != workflow.Block || got.Gates != gates || len(got.Decisions) != 20 || got.WorkflowName != "payout" {
		t.Fatalf("%+v, %v", got, err)
	}
	want := workflow.StepDecision{By: agent.Name, Decision: workflow.Block, Reason: "hushed", Trace: agentsTrace}
	if diff := cmp.Diff(want, got.Decisions[0], cmpopts.IgnoreFields(workflow.StepDecision{}, "At", "Rules")); diff != "" || got.Decisions[0].At.IsZero() {
		t.Errorf("at %v (-want +got):\n%s", got.Decisions[0].At, diff)
	}
	stranger := alice
	stranger.Tenant = "other"
	for name, ask := range map[string]func() error{
		"another tenant": func() error { _, err := b.gate.Trace(t.Context(), stranger, made.WorkflowID, "pay"); return err },
		"no such step":   func() error { _, err := b.gate.Trace(t.Context(), alice, made.WorkflowID, "none"); return err },
	} {
		var refused *workflow.Error
		if err := ask(); !errors.As(err, &refused) || refused.Code != workflow.NotFound {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
}
