package engine_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/dispatchtest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// dispatching runs every test of this package whose worker is not its subject with a worker that
// hands its work over to a scheduler.
var dispatching = flag.Bool("engine.dispatch", false, "workers hand their work over to a scheduler")

// runWorker is [engine.Engine.Work], by itself or through a scheduler.
func runWorker(ctx context.Context, e *engine.Engine, o *engine.WorkOptions) error {
	if !*dispatching {
		return e.Work(ctx, o)
	}
	var s dispatchtest.Scheduler
	return s.Writes(ctx, e, o)
}

// Two processes hand their work over to schedulers that lose starts, double them and fail. Every
// write has one effect, and its recheck is made.
func TestDispatchedWorkIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writes = 60
		o := orders.Plain.Options()
		o.Recheck = connectors.Within(48 * time.Hour)
		b := newBench(t, o, nil)
		b.set(orders.Fault{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Times: writes / 2})
		var ids []ledger.ID
		for n := range writes {
			ids = append(ids, b.enqueue(order(fmt.Sprint("A-", n), intent.Create)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 72*time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		for _, e := range []*engine.Engine{b.engine, b.newEngine(nil)} {
			s := dispatchtest.Scheduler{Faults: true}
			wg.Go(func() { _ = s.Writes(ctx, e, &engine.WorkOptions{Idle: time.Minute}) }) // it returns nil
		}
		wg.Wait()
		for n, id := range ids {
			if got, records := b.state(id), b.world.Records(fmt.Sprint("A-", n)); got.Settlement != ledger.Verified || !got.Due.IsZero() || got.Sends != 1 || len(records) != 1 {
				t.Errorf("%s after %d sends, due %s, with %d records%s", got.Phase(), got.Sends, got.Due, len(records), b.life(id))
			}
		}
	})
}

func TestWorkOn(t *testing.T) {
	later := func(_ *bench, _ ledger.ID, in time.Duration, again bool) bool { return again && in > time.Minute }
	never := func(_ *bench, _ ledger.ID, in time.Duration, again bool) bool { return !again && in == 0 }
	for name, c := range map[string]struct {
		given func(b *bench) ledger.ID
		want  func(b *bench, id ledger.ID, in time.Duration, again bool) bool
		end   ledger.Status
	}{
		"due":     {func(b *bench) ledger.ID { return b.enqueue(order("A-1", intent.Create)) }, later, ledger.Verified},
		"settled": {func(b *bench) ledger.ID { return b.do(order("A-1", intent.Create)).ID }, later, ledger.Verified},
		"rechecked": {func(b *bench) ledger.ID {
			id := b.do(order("A-1", intent.Create)).ID
			time.Sleep(2 * time.Hour)
			return id
		}, never, ledger.Verified},
		"worked on elsewhere": {func(b *bench) ledger.ID {
			id := b.enqueue(order("A-1", intent.Create))
			if _, err := b.ledger.Claim(b.t.Context(), ledger.Claim{Owner: "another", LeaseFor: time.Hour, Tenant: "acme", ID: id}); err != nil {
				b.t.Fatal(err)
			}
			return id
		}, func(_ *bench, _ ledger.ID, in time.Duration, again bool) bool { return again && in == time.Hour }, ledger.InProgress},
		"queued": {func(b *bench) ledger.ID {
			b.enqueue(order("A-1", intent.Create))
			return b.enqueue(wish("A-1", 1, intent.Update))
		}, never, ledger.InProgress},
		"held": {func(b *bench) ledger.ID {
			w := order("A-1", intent.Create)
			w.Risk = intent.RiskApprove
			return b.asked(w).ID
		}, later, ledger.StatusHeld},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Recheck = connectors.Within(time.Hour)
				b := newBench(t, o, nil)
				id := c.given(b)
				in, again, err := b.engine.WorkOn(t.Context(), "acme", id)
				if err != nil || !c.want(b, id, in, again) || b.state(id).Status() != c.end {
					t.Errorf("again %t in %s, %v; %s%s", again, in, err, b.state(id).Phase(), b.life(id))
				}
			})
		})
	}
	b := newBench(t, orders.Plain.Options(), nil)
	if in, again, err := b.engine.WorkOn(t.Context(), "acme", "wr_gone"); in != 0 || again || err != nil {
		t.Errorf("a write that was pruned: again %t in %s, %v", again, in, err)
	}
	b.engine.Close()
	if _, _, err := b.engine.WorkOn(t.Context(), "acme", b.enqueue(order("A-1", intent.Create))); err == nil {
		t.Error("a closed engine reported no error, and its scheduler would not try again")
	}
}

// A scheduler that accepts a write and does nothing delays no other worker, and gets it again after
// half a minute.
func TestADispatchedWriteIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		act func(b *bench, id ledger.ID)
		end ledger.Status
	}{
		"for a caller": {func(b *bench, _ ledger.ID) { b.do(order("A-1", intent.Create)) }, ledger.Verified},
		"for a worker": {func(b *bench, id ledger.ID) {
			if _, _, err := b.engine.WorkOn(b.t.Context(), "acme", id); err != nil {
				b.t.Error(err)
			}
		}, ledger.Verified},
		"for nothing": {func(*bench, ledger.ID) {}, ledger.InProgress},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), &engine.Options{Owner: "dispatched"})
				id := b.enqueue(order("A-1", intent.Create))
				ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
				defer cancel()
				dispatched := make(chan ledger.ID, 10)
				done := make(chan error)
				go func() {
					done <- b.engine.Work(ctx, &engine.WorkOptions{Dispatch: func(_ context.Context, rec ledger.Record) error {
						dispatched <- rec.ID
						return nil
					}})
				}()
				if got := <-dispatched; got != id {
					t.Fatalf("%s was handed over, want %s", got, id)
				}
				began := time.Now()
				c.act(b, id)
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %s", took)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				events, err := b.ledger.Events(t.Context(), "acme", id)
				for _, e := range events {
					if err != nil || e.By == "dispatched" { // its leases would not count
						t.Errorf("%s by an engine that has the name of handed over work, %v", e.Kind, err)
					}
				}
				if got := b.state(id); got.Status() != c.end || (len(dispatched) == 1) != (c.end == ledger.InProgress) {
					t.Errorf("%s, handed over again %d times%s", got.Phase(), len(dispatched), b.life(id))
				}
			})
		})
	}
}
