package workflow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/workflow"
)

func TestFirstGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		before := b.store.filed.Load()
		got := b.ask(wf, "transfer", asking{StepType: "tool_call", IdempotencyKey: "wire:invoice-7721", StepInput: raw(map[string]any{"amount": 1})})
		same(t, "commits of one gate", b.store.filed.Load()-before, int64(1))
		now := time.Now()
		if got.Lease == nil || got.LeaseID == "" {
			t.Fatal("the first gate got no lease")
		}
		want := workflow.GateResponse{
			Decision: workflow.Allow, StepID: "transfer", DecisionID: "dec_" + wf + "_transfer", Reason: "the rules say allow",
			PolicyIDs: []string{"p1"}, PoliciesMatched: []workflow.PolicyMatch{{PolicyID: "p1", PolicyName: "first", Action: "allow"}},
			DecisionSource: "fresh",
			RetryContext: workflow.RetryContext{GateCount: 1, PriorCompletionStatus: workflow.PriorNone, FirstAttemptAt: now, LastAttemptAt: now,
				LastDecision: workflow.Allow, IdempotencyKey: "wire:invoice-7721"},
			Lease: &workflow.Lease{LeaseGranted: true, LeaseID: got.LeaseID, LeaseHolder: "agent-1", LeaseExpiresAt: now.Add(time.Minute), Fence: 1},
		}
		same(t, "the answer", got, want)
	})
}
