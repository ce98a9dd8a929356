package verifytest

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// meddler injects a fault around each send.
type meddler struct {
	connectors.Connector
	before func(r *connectors.Request)
	after  func(r connectors.Request, receipt connectors.Receipt)
}

func (m *meddler) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if m.before != nil {
		m.before(&r)
	}
	receipt, err := m.Connector.Write(ctx, r)
	if m.after != nil && err == nil {
		m.after(r, receipt)
	}
	return receipt, err
}

// through are wrong states that arise while the engine writes, one for each state, and how.
var through = map[State]struct {
	write  intent.WriteType
	first  func(t *testing.T, w *orders.World)
	meddle func(t *testing.T, w *orders.World) *meddler
	reason string
}{
	"": {intent.Update, seeded, nothing, "nothing goes wrong: it must be verified"},
	Duplicate: {intent.Create, nil, func(t *testing.T, w *orders.World) *meddler {
		return &meddler{after: func(r connectors.Request, _ connectors.Receipt) { put(t, w, together(r.Intent), r.Stamp) }}
	}, "a proxy sent it twice"},
	WrongValue: {intent.Create, nil, func(t *testing.T, w *orders.World) *meddler {
		return &meddler{after: func(_ connectors.Request, a connectors.Receipt) {
			edit(t, w, a.Ref, intent.Fields{"amount_cents": json.Number("1998")})
		}}
	}, "the amount is another"},
	DroppedField: {intent.Create, nil, func(_ *testing.T, _ *orders.World) *meddler {
		return &meddler{before: func(r *connectors.Request) { r.Intent = without(r.Intent, "currency") }}
	}, "a field gets lost on the way"},
	Foreign: {intent.Create, func(t *testing.T, w *orders.World) {
		put(t, w, intent.Fields{"order_id": "A-1", "amount_cents": json.Number("1999"), "currency": "eur"}, "rb-another")
	}, nothing, "another tenant has just such an order"},
	OldVersion: {intent.Update, func(t *testing.T, w *orders.World) {
		seeded(t, w)
		if err := w.Set(orders.Fault{Kind: orders.PhantomSuccess}); err != nil {
			t.Fatal(err)
		}
	}, nothing, "every answer is yes, and nothing is ever stored"},
	Swapped: {intent.Create, func(t *testing.T, w *orders.World) {
		put(t, w, intent.Fields{"order_id": "A-2", "amount_cents": json.Number("1999"), "currency": "eur"}, "rb-two")
	}, func(_ *testing.T, _ *orders.World) *meddler {
		return &meddler{before: func(r *connectors.Request) {
			r.Intent = saying(r.Intent, "amount_cents", json.Number("5"))
		}}
	}, "two orders got each other's amounts"},
	WrongRecord: {intent.Create, nil, func(_ *testing.T, _ *orders.World) *meddler {
		return &meddler{before: func(r *connectors.Request) {
			r.Intent = copyOf(r.Intent)
			r.Intent.Key["order_id"] = "A-2"
		}}
	}, "it was made under another key"},
	Collateral: {intent.Update, seeded, func(_ *testing.T, _ *orders.World) *meddler {
		return &meddler{before: func(r *connectors.Request) { r.Intent = saying(r.Intent, "note", "wiped") }}
	}, "a field changed that the intent does not mention"},
}

func nothing(*testing.T, *orders.World) *meddler { return &meddler{} }

func seeded(t *testing.T, w *orders.World) {
	put(t, w, intent.Fields{"order_id": "A-1", "amount_cents": json.Number("5"), "note": "keep"}, "")
}

func put(t *testing.T, w *orders.World, fields intent.Fields, stamp string) {
	t.Helper()
	if _, err := w.Seed(fields, stamp); err != nil && !w.Options().Unique {
		t.Fatal(err)
	}
}

func edit(t *testing.T, w *orders.World, id string, fields intent.Fields) {
	t.Helper()
	if _, err := w.Edit(id, fields); err != nil {
		t.Fatal(err)
	}
}

// TestThroughTheEngine: the states reach the engine's outcome as they reach the judgement, and
// none of them ends as verified.
func TestThroughTheEngine(t *testing.T) {
	for state, c := range through {
		for _, class := range orders.Classes() {
			if state == Duplicate && class == orders.Unique {
				continue // no second record can be: TestAudit says so
			}
			t.Run(string(state)+"/"+string(class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, err := orders.New(class.Options())
					if err != nil {
						t.Fatal(err)
					}
					if c.first != nil {
						c.first(t, w)
						<-time.After(calm)
					}
					m := c.meddle(t, w)
					out := carryOut(t, w, m, c.write)
					if verified := out.Status == ledger.Verified; verified != (state == "") {
						t.Errorf("the outcome is %q (%s): %s", out.Status, out.Text, c.reason)
					}
				})
			})
		}
	}
}

func carryOut(t *testing.T, w *orders.World, m *meddler, write intent.WriteType) engine.Outcome {
	t.Helper()
	d := w.Destination()
	m.Connector, d.Connector = d.Connector, m
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), calm)
	defer cancel()
	out, err := e.Do(ctx, intent.WriteIntent{
		Tenant: "acme", Workflow: "wf", Tool: "orders", Destination: "orders", Kind: orders.Kind, Write: write,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "eur"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
