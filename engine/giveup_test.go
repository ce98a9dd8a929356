package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// A caller that gets "in progress" may leave, and its process may end: the write must be in the
// ledger by then.
func TestInProgressOnlyForRecordedWrites(t *testing.T) {
	for name, class := range map[string]orders.Class{
		"announced with the reservation": orders.Unique,
		"after a read of the pre-state":  orders.Plain,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, class.Options(), nil)
				ended, cancel := context.WithCancel(context.Background())
				cancel()
				out, err := b.engine.Do(ended, order("A-1", intent.Create))
				b.engine.Close()
				if err != nil { // it may also have been done by then
					t.Fatalf("outcome %+v, %v; want in progress", out, err)
				}
				rec, err := b.ledger.Get(context.Background(), "acme", out.ID)
				if err != nil {
					t.Fatalf("reported as in progress, and not in the ledger: %v", err)
				}
				if got := engine.OutcomeOf(rec); got.ID != out.ID || !got.Replayed {
					t.Errorf("outcome of the record %+v", got)
				}
			})
		})
	}
}
