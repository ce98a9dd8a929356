package gate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// A step whose acknowledgement timed out, with a real engine that reads a destination.
func TestReconciledWithoutDoingItAgain(t *testing.T) {
	for name, did := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { reconcile(t, did) })
		})
	}
}

func reconcile(t *testing.T, did bool) {
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	m := ledger.NewMemory()
	e := engine.New(m, &reg, nil)
	defer e.Close()
	b := benchOn(t, m, func(o *gate.Options) { o.Reader = e })
	wf := b.begin()
	fields := intent.Fields{"order_id": "A-1", "amount_cents": 1999, "currency": "USD"}
	r := asking{StepType: "connector_call", IdempotencyKey: "order:A-1", ToolContext: &gate.ToolContext{ToolName: "orders.create"},
		Intent: raw(map[string]any{"destination": "orders", "kind": orders.Kind, "key": map[string]any{"order_id": "A-1"}, "write": "create", "expect": fields, "payload": map[string]any{"note": "Thanks"}})}
	if got := b.ask(wf, "order", r); !got.LeaseGranted {
		t.Fatalf("first gate: %+v, %+v", got.Lease, got.RetryContext.Verification)
	}
	if did {
		seen, err := intent.Normalize(fields)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := world.Seed(seen, ""); err != nil { // the caller's own call
			t.Fatal(err)
		}
	}
	time.Sleep(61 * time.Second) // the caller is dead
	got := b.ask(wf, "order", r)
	v := got.RetryContext.Verification
	if got.LeaseGranted || v == nil {
		t.Fatalf("right after the lease: %+v, %+v", got.Lease, v)
	}
	want := map[bool]string{true: "present", false: "unknown"}[did]
	same(t, "the effect", v.Effect, want)
	if did {
		same(t, "what was not compared", v.NotChecked, []string{"/note"})
		b.complete(wf, "order", gate.CompleteRequest{IdempotencyKey: "order:A-1"})
		rec := b.operation(wf, "order")
		same(t, "the operation", []any{rec.Settlement, rec.Ref}, []any{ledger.Verified, v.RecordRef})
		again := b.ask(wf, "order", r).RetryContext.Verification
		same(t, "and later", again.NotChecked, []string{"/note"})
	} else {
		time.Sleep(time.Until(*v.AskAfter))
		got = b.ask(wf, "order", r)
		same(t, "when nothing can land any more", []any{got.LeaseGranted, got.Fence, got.RetryContext.Verification.Effect}, []any{true, int64(2), "absent"})
	}
	if bad := b.refused(wf, "other", asking{StepType: "tool_call", Intent: replaced(r.Intent, `"orders"`, `"nowhere"`)}); bad.Field == "" {
		t.Errorf("an unknown destination: %v", bad)
	}
}
