package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Nothing is sent after the deadline, even where the ledger or the read of the pre-state took
// until then, and by the ledger's clock: that of the worker may be late.
func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		stall time.Duration // after the reservation
		reads time.Duration
		in    time.Duration // the deadline
		ahead time.Duration // the ledger's clock
	}{
		"a slow ledger": {10 * time.Second, 0, 5 * time.Second, 0},
		"a slow read":   {0, 10 * time.Second, 5 * time.Second, 0},
		"a slow ledger, by a worker whose clock is late": {10 * time.Second, 0, 5 * time.Second, time.Hour},
		"a slow read, by a worker whose clock is late":   {0, 10 * time.Second, 5 * time.Second, time.Hour},
		"a moment, by a worker whose clock is late":      {500 * time.Millisecond, 0, 200 * time.Millisecond, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.steps()(c.ahead)
				b.seed(seeded, "")
				time.Sleep(time.Minute)
				d := b.world.Destination()
				d.Connector = &spy{Connector: d.Connector, read: func() { time.Sleep(c.reads) }, write: func(connectors.Request) { t.Error("sent after the deadline") }}
				e := b.engineOn(&stalling{Ledger: b.ledger, reserve: c.stall}, d, nil)
				w := order("A-1", intent.Update)
				w.Deadline = time.Now().Add(c.ahead + c.in)
				out, err := e.Do(t.Context(), w)
				if err != nil || out.Status != ledger.NotApplied {
					t.Errorf("%+v, %v%s", out, err, b.life(out.ID))
				}
			})
		})
	}
}

// A lease lasts as long as its own destination needs, whatever others do.
func TestLeaseIsThatOfTheDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		var reg connectors.Registry
		world, err := orders.New(orders.Plain.Options())
		if err != nil {
			t.Fatal(err)
		}
		slow := world.Destination()
		for kind, p := range slow.Profiles {
			p.SendTimeout = 10 * time.Minute
			slow.Profiles[kind] = p
		}
		d, leases := b.world.Destination(), make(chan time.Duration, 1)
		id := ledger.IDOf(order("A-1", intent.Create).StructuralKey())
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { leases <- b.state(id).LeaseFor }}
		if err := reg.Register("orders", d); err != nil {
			t.Fatal(err)
		}
		if err := reg.Register("slow", slow); err != nil {
			t.Fatal(err)
		}
		e := engine.New(b.ledger, &reg, nil)
		defer e.Close()
		if _, err := e.Enqueue(t.Context(), order("A-1", intent.Create)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease := <-leases; lease > 2*time.Minute {
			t.Errorf("the lease is %s, that of the slow destination", lease)
		}
	})
}

// stallsAfterRepeat is a ledger whose process stalls after the announcement of a repeat.
type stallsAfterRepeat struct {
	ledger.Ledger
	stall time.Duration
}

func (s *stallsAfterRepeat) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	rec, err := s.Ledger.Append(ctx, id, fence, events...)
	if err == nil && rec.State == ledger.Sending && rec.Sends == 2 {
		time.Sleep(s.stall)
	}
	return rec, err
}

// A key is not repeated where the destination may have forgotten it when the send arrives, even
// where the process stalled after the decision.
func TestKeyIsNotRepeatedAfterItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 10 * time.Minute
		b := newBench(t, orders.Native.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1, Ops: []orders.Op{orders.OpCreate}})
		d := b.world.Destination()
		for kind, p := range d.Profiles {
			p.ReadTimeout = time.Hour // so that the lease is no bound
			p.NativeWindow = map[intent.WriteType]time.Duration{intent.Create: window}
			d.Profiles[kind] = p
		}
		var sent []time.Time
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { sent = append(sent, time.Now()) }}
		e := b.engineOn(&stallsAfterRepeat{Ledger: b.ledger, stall: window}, d, nil)
		out, err := e.Do(t.Context(), order("A-1", intent.Create))
		for i, at := range sent {
			if i > 0 && at.Sub(sent[0]) >= window && b.state(out.ID).Rule == policies.RowNativeKey {
				t.Errorf("sent again under the key after %s: %+v, %v%s", at.Sub(sent[0]), out, err, b.life(out.ID))
			}
		}
		if life := b.life(out.ID); !strings.Contains(life, "the destination may forget the key") {
			t.Errorf("the repeat was not stopped%s", life)
		}
	})
}
