package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// steps gives the ledger a clock that can step. Where it steps back it does not move.
func (b *bench) steps() (step func(by time.Duration)) {
	var mu sync.Mutex
	var offset time.Duration
	var latest time.Time
	b.ledger.SetClock(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now().Add(offset); now.After(latest) {
			latest = now
		}
		return latest
	})
	return func(by time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		offset += by
	}
}

// A ledger's clock that steps forward by the horizon makes no absence conclusive: the first
// send may still arrive.
func TestAClockStepProvesNoAbsence(t *testing.T) {
	for name, restarts := range map[string]bool{"one process": false, "a process that has just begun": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				step := b.steps()
				b.set(orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 20 * time.Second, Times: 1})
				if _, err := b.engine.Enqueue(t.Context(), order("A-1", intent.Create)); err != nil {
					t.Fatal(err)
				}
				if _, err := b.engine.Resume(t.Context()); err != nil { // it sends, and reads for a while
					t.Fatal(err)
				}
				step(time.Hour)
				e := b.engine
				if restarts {
					e = b.engineOn(b.ledger, b.world.Destination(), nil)
				}
				for range 20 {
					if _, err := e.Resume(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(5 * time.Second)
				}
				out := b.do(order("A-1", intent.Create))
				if made := len(b.effects()); made != 1 || out.Status != ledger.Verified {
					t.Errorf("%s, and %d records were made%s", out.Status, made, b.life(out.ID))
				}
			})
		})
	}
}

// Where each process ends before it has counted the horizon, a reviewer decides in
// the end.
func TestProcessesThatEndTooSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Ops: []orders.Op{orders.OpCreate}, Times: 1})
		if _, err := b.engine.Enqueue(t.Context(), order("A-1", intent.Create)); err != nil {
			t.Fatal(err)
		}
		id := ledger.IDOf(order("A-1", intent.Create).StructuralKey())
		for range 30 {
			e := b.engineOn(b.ledger, b.world.Destination(), nil)
			if _, err := e.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.Close()
			if got := b.state(id); got.State == ledger.Review {
				if got.Sends != 1 || time.Since(got.LastSend) < 24*time.Hour {
					t.Errorf("a reviewer decides %s after send %d%s", time.Since(got.LastSend), got.Sends, b.life(id))
				}
				return
			}
			time.Sleep(time.Hour)
		}
		t.Errorf("it never ends%s", b.life(id))
	})
}

// A ledger's clock that stopped prolongs no destination's memory of a key.
func TestAStoppedClockExtendsNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Native.Options()
		o.Window = 10 * time.Minute
		b := newBench(t, o, nil)
		step := b.steps()
		b.do(order("A-2", intent.Create)) // this process reads the ledger's clock
		d := b.world.Destination()
		m := &mortal{Ledger: b.ledger, Connector: d.Connector, settled: func(ledger.Record) {}}
		m.doom(2, "before")
		d.Connector = m
		if _, err := b.engineOn(m, d, nil).Do(t.Context(), order("A-1", intent.Create)); err == nil {
			t.Fatal("the process did not die")
		}
		step(-12 * time.Minute)
		for range 20 * 60 {
			if _, err := b.engine.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		id := ledger.IDOf(order("A-1", intent.Create).StructuralKey())
		events, err := b.ledger.Events(t.Context(), "acme", id)
		if err != nil || b.state(id).LastSend.IsZero() {
			t.Fatalf("%v%s", err, b.life(id))
		}
		for _, e := range events {
			if e.Rule == policies.RowNativeKey {
				t.Errorf("the key was repeated after its window%s", b.life(id))
			}
		}
	})
}
