package gate_test

import (
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
)

const (
	agentsTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	alicesTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// A decision about a step records the actor, the time, the rule, the reason and the trace; so do
// the events of its business operation.
func TestDecisionsSayInWhichTrace(t *testing.T) {
	b := newBench(t, nil)
	b.rules.says = gate.RequireApproval
	asking, deciding := engine.WithTraceparent(t.Context(), agentsTrace), engine.WithTraceparent(t.Context(), alicesTrace)
	made, err := b.gate.Create(asking, agent, gate.CreateRequest{WorkflowName: "payout"})
	if err != nil || made.TraceID != engine.TraceID(asking) {
		t.Fatalf("%+v, %v; want the trace id of the call", made, err)
	}
	r := call()
	r.IdempotencyKey = "wire:1"
	if _, err := b.gate.Gate(asking, agent, made.WorkflowID, "pay", r); err != nil {
		t.Fatal(err)
	}
	if held, err := b.gate.Trace(t.Context(), alice, made.WorkflowID, "pay"); err != nil || !held.Waits || held.Decision != gate.RequireApproval {
		t.Errorf("%+v, %v; want it to wait", held, err)
	}
	if _, err := b.gate.Approve(deciding, alice, made.WorkflowID, "pay", gate.Comment{Comment: "checked"}); err != nil {
		t.Fatal(err)
	}
	reports := b.view(made.WorkflowID).Steps[0].Reports
	if len(reports) != 1 || reports[0].By != "alice" || reports[0].Reason != "checked" || reports[0].At.IsZero() || reports[0].Trace != alicesTrace {
		t.Errorf("reports %+v", reports)
	}
	if got, err := b.gate.Trace(t.Context(), alice, made.WorkflowID, "pay"); err != nil || got.Waits || got.Decision != gate.Allow || len(got.Reports) != 1 {
		t.Errorf("%+v, %v; want it approved", got, err)
	}
	op := b.operation(made.WorkflowID, "pay")
	if op.Trace != agentsTrace || op.CorrelationID != engine.TraceID(asking) {
		t.Errorf("the operation has trace %q, correlation %q", op.Trace, op.CorrelationID)
	}
	events, err := b.store.Store.(ledger.Ledger).Events(t.Context(), tenant, op.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		want := ""
		if e.Kind == ledger.EvApproved {
			want = alicesTrace
		}
		if e.Trace != want {
			t.Errorf("%s has trace %q, want %q", e.Kind, e.Trace, want)
		}
		if e.Kind != ledger.EvReserved && (e.Rule == "" || e.Reason == "" || e.By == "") {
			t.Errorf("%s by %q, by rule %q: %q", e.Kind, e.By, e.Rule, e.Reason)
		}
	}
}

// A caller's trace ID is kept, and without any trace there is none.
func TestTheCallersTraceIDCounts(t *testing.T) {
	b := newBench(t, nil)
	made, err := b.gate.Create(engine.WithTraceparent(t.Context(), agentsTrace), agent, gate.CreateRequest{WorkflowName: "payout", TraceID: "run-7"})
	if err != nil || made.TraceID != "run-7" {
		t.Errorf("%+v, %v", made, err)
	}
	if made, err = b.gate.Create(t.Context(), agent, gate.CreateRequest{WorkflowName: "payout"}); err != nil || made.TraceID != "" {
		t.Errorf("%+v, %v", made, err)
	}
}
