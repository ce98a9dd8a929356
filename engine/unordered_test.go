package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// A mailbox is no record: an append to it does not wait for earlier ones, even when one is in
// review, and even when it came through an outbox, which knows no profiles.
func TestUnorderedWritesDoNotWait(t *testing.T) {
	for name, queued := range map[string]bool{"asked for": false, "from an outbox": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Faults = []orders.Fault{{Kind: orders.DroppedField, Field: "currency", Chance: 1, Times: 1}}
				b := newBench(t, o, nil)
				d := b.world.Destination()
				for kind, p := range d.Profiles {
					p.FreshKeys = true
					d.Profiles[kind] = p
				}
				b.engine = b.engineOn(b.ledger, d, nil)
				ids := make([]ledger.ID, 2)
				for n := range ids {
					w := order("inbox", intent.Create)
					w.Step = fmt.Sprint("step ", n)
					ids[n] = ledger.IDOf(w.StructuralKey())
					if queued {
						rec, err := ledger.NewRecord(w)
						if err != nil {
							t.Fatal(err)
						}
						if _, _, err := b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec}); err != nil {
							t.Fatal(err)
						}
						continue
					}
					b.do(w)
				}
				b.work(time.Minute)
				first, second := b.state(ids[0]), b.state(ids[1])
				if first.State != ledger.Review || second.Sends != 1 || second.QueuedBehind != "" {
					t.Errorf("the first is %s, the second %s after %d sends, behind %q", first.Phase(), second.Phase(), second.Sends, second.QueuedBehind)
				}
			})
		})
	}
}
