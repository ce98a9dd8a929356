package orders_test

import (
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/fakes/orders/orderstest"
	"github.com/readback-go/readback/internal/verifytest"
)

// TestAudit: no wrong state of any class is called verified, and no right one
// is refused.
func TestAudit(t *testing.T) {
	for _, class := range orders.Classes() {
		rich := class.Options()
		rich.Versions, rich.StampUpdates, rich.Bulk = true, true, true
		stampless := class.Options()
		stampless.Stamps = false
		for name, o := range map[string]orders.Options{"bare": class.Options(), "rich": rich, "stampless": stampless} {
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				h := verifytest.Harness{Suite: connectortest.Harness{
					Open:     func(t *testing.T) *connectortest.Fixture { return seedable(t, newWorld(t, o)) },
					Writes:   allWrites,
					Variants: orderstest.Variants(),
					Lacks:    orderstest.Lacks(o),
				}, Legitimate: legitimate}
				verifytest.Audit(t, h)
			})
		}
	}
}

// legitimate: what the destination adds by itself is no difference.
var legitimate = []verifytest.Difference{{
	Name:   "changed-again",
	Reason: "updated_at is the destination's own and newer after each of its changes",
	Write:  intent.Update,
	After: func(f *connectortest.Fixture, w intent.WriteIntent) {
		_ = f.Alter(w.Key, intent.Fields{"note": w.Expect["note"]}) // the audit reads the result
	},
}}

// seedable is the suite's fixture with what the audit seeds.
func seedable(t *testing.T, w *orders.World) *connectortest.Fixture {
	f := fixture(t, w, w.Connector())
	f.Put = func(fields intent.Fields, stamp string) error {
		_, err := w.Seed(fields, stamp)
		return err
	}
	f.Alter = func(key, fields intent.Fields) error {
		_, err := w.Edit(w.Records(key["order_id"].(string))[0].ID, fields)
		return err
	}
	return f
}
