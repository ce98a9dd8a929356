package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// TestAnOutcomeSaysWhatWasNotCompared: verified does not cover it, even when the outcome is
// requested later.
func TestAnOutcomeSaysWhatWasNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		w := intent.WriteIntent{Tenant: "acme", Workflow: "wf", Tool: "orders.create", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
			Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"order_id": "A-1", "amount_cents": json.Number("1999"), "currency": "USD"}, Ignore: []string{"/currency"}}
		out, err := e.Do(t.Context(), w)
		want := []string{"/currency"}
		if err != nil || out.Status != ledger.Verified || !slices.Equal(out.NotChecked, want) || !strings.Contains(out.Text, "Not compared: /currency") || !strings.Contains(out.ForModel, "/currency") {
			t.Fatalf("%+v, %v", out, err)
		}
		rec, err := m.Get(t.Context(), "acme", out.ID)
		if later := engine.OutcomeOf(rec); err != nil || !slices.Equal(later.NotChecked, want) {
			t.Errorf("asked for later: %+v, %v", later, err)
		}
		w.Call, w.Key, w.Expect["order_id"], w.Ignore = 1, intent.Fields{"order_id": "A-2"}, "A-2", nil
		if out, err = e.Do(t.Context(), w); err != nil || out.NotChecked != nil || strings.Contains(out.Text, "ompared") {
			t.Errorf("nothing was left out: %+v, %v", out, err)
		}
	})
}
