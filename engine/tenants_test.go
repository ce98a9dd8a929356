package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// A destination serves only its tenants: its credentials are theirs. To any other tenant it is
// unknown, by every entry point, and nothing is read or sent.
func TestADestinationServesItsTenants(t *testing.T) {
	theirs := order("A-1", intent.Update)
	theirs.Tenant, theirs.Require = "umbrella", intent.Fields{"amount_cents": jsonNumber(1)}
	for name, ask := range map[string]func(*bench, *engine.Engine) error{
		"do":      func(b *bench, e *engine.Engine) error { _, err := e.Do(b.t.Context(), theirs); return err },
		"enqueue": func(b *bench, e *engine.Engine) error { _, err := e.Enqueue(b.t.Context(), theirs); return err },
		"check":   func(_ *bench, e *engine.Engine) error { return e.Check(theirs) },
		"look": func(b *bench, e *engine.Engine) error {
			_, err := e.ReadBack(b.t.Context(), theirs, engine.ReadBackCase{})
			return err
		},
		"profile": func(_ *bench, e *engine.Engine) error { _, err := e.Profile(theirs); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.seed(seeded, "")
				var reg connectors.Registry
				d := b.world.Destination()
				d.Tenants = []string{"acme"}
				if err := errors.Join(reg.Register("orders", d), reg.Register("open", b.world.Destination())); err != nil {
					t.Fatal(err)
				}
				e := engine.New(b.ledger, &reg, nil)
				defer e.Close()
				err := ask(b, e)
				if !errors.Is(err, connectors.ErrUnknownDestination) || !strings.Contains(err.Error(), "registered: open") || strings.Contains(err.Error(), "registered: open, ") {
					t.Errorf("%v; want an unknown destination, and those alone that serve the tenant", err)
				}
				if asked := len(b.ops()); asked > 0 {
					t.Errorf("the destination was asked %d times", asked)
				}
				if out, err := e.Do(t.Context(), order("A-2", intent.Create)); err != nil || out.Status != ledger.Verified {
					t.Errorf("its own tenant: %+v, %v", out, err)
				}
			})
		})
	}
	t.Run("a write that was recorded before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Plain.Options(), nil)
			w := order("A-1", intent.Create)
			w.Tenant = "umbrella"
			id, err := b.engine.Enqueue(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			b.engine.Close()
			var reg connectors.Registry
			d := b.world.Destination()
			d.Tenants = []string{"acme"}
			if err := reg.Register("orders", d); err != nil {
				t.Fatal(err)
			}
			b.engine = engine.New(b.ledger, &reg, nil)
			defer b.engine.Close()
			b.work(time.Hour)
			rec, err := b.ledger.Get(t.Context(), "umbrella", id)
			if err != nil || rec.State != ledger.Queued || len(b.ops()) > 0 {
				t.Errorf("%s, %v, and the destination was asked %d times; want it to wait", rec.Phase(), err, len(b.ops()))
			}
		})
	})
}
