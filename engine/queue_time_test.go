package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// TestTimesCountFromTheHeadOfTheQueue: the permitted age of a pre-state read counts from the moment
// at which the write became first in its queue. A write that waited long could otherwise
// believe a replica that does not show the previous write yet, find its own state there, and
// not be sent at all.
func TestTimesCountFromTheHeadOfTheQueue(t *testing.T) {
	for skip := range 2 { // either of the two replicas can come first
		t.Run(fmt.Sprint("replica ", skip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Lags, o.Settle, o.StampUpdates = []time.Duration{0, orders.DefaultLag}, connectors.Within(orders.DefaultLag), true
				b := newBench(t, o, nil)
				first, back, again := order("A-1", intent.Create), order("A-1", intent.Update), order("A-1", intent.Update)
				back.Expect["amount_cents"], back.Call, again.Call = jsonNumber(7), 1, 2
				b.do(first)
				time.Sleep(time.Minute)
				for range skip {
					if _, err := b.world.Connector().Read(t.Context(), connectors.Query{Intent: first}); err != nil {
						t.Fatal(err)
					}
				}
				b.set(orders.Fault{Kind: orders.DroppedBefore, Ops: []orders.Op{orders.OpUpdate}, Times: 1})
				var wg sync.WaitGroup
				wg.Go(func() { b.do(back) })
				synctest.Wait()
				out, err := b.engine.Do(context.Background(), again)
				wg.Wait()
				if err != nil || out.Status != ledger.Verified || out.Sends != 1 {
					t.Errorf("outcome %+v, error %v%s", out, err, b.life(out.ID))
				}
				if got := b.world.Records("A-1"); len(got) != 1 || got[0].AmountCents() != 1999 {
					t.Errorf("the record is %+v, want what was asked last%s", got, b.life(out.ID))
				}
			})
		})
	}
}

// TestReadOlderThanThePreState: a replica that lags behind the pre-state shows the state that
// the previous write left. That is not an effect of ours that another actor reverted when the
// next read shows the pre-state again.
func TestReadOlderThanThePreState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Settle, o.StampUpdates = connectors.Within(orders.DefaultLag), true
		b := newBench(t, o, nil)
		one, other := order("A-1", intent.Update), order("A-1", intent.Update)
		one.Call, other.Call = 1, 2
		one.Expect["amount_cents"], other.Expect["amount_cents"] = jsonNumber(7), jsonNumber(8)
		b.do(order("A-1", intent.Create))
		time.Sleep(time.Minute)
		b.do(one)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Ops: []orders.Op{orders.OpUpdate}, Times: 1})
		b.set(orders.Fault{Kind: orders.LaggingRead, Skip: 1, Times: 1})
		if out := b.do(other); out.Status != ledger.Verified || out.Sends != 2 {
			t.Errorf("outcome %+v%s", out, b.life(out.ID))
		}
	})
}

// TestLeaseOfAWorker: a worker's leases last as long as its own destinations need and no
// longer: the writes of a dead worker wait for their end.
func TestLeaseOfAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.SendTimeout, o.ReadTimeout = time.Second, 2*time.Second
		b := newBench(t, o, &engine.Options{Patience: 3 * time.Second, Slack: 4 * time.Second})
		rec, err := ledger.NewRecord(order("A-1", intent.Create))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		rec, err = b.ledger.Get(t.Context(), rec.Tenant, rec.ID)
		if err != nil || rec.Settlement != ledger.Verified || rec.LeaseFor != 10*time.Second {
			t.Errorf("%s under a lease of %s, error %v; want settled under one of 10 s%s", rec.Phase(), rec.LeaseFor, err, b.life(rec.ID))
		}
	})
}
