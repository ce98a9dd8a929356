package saga_test

import (
	"context"
	"flag"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/dispatchtest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// dispatching runs every test of this package with workers that hand their sagas over to a
// scheduler.
var dispatching = flag.Bool("saga.dispatch", false, "workers hand their sagas over to a scheduler")

// runWorker is [saga.Runner.Work], by itself or through a scheduler.
func runWorker(ctx context.Context, r *saga.Runner) error {
	if !*dispatching {
		return r.Work(ctx)
	}
	var s dispatchtest.Scheduler
	return s.Sagas(ctx, r)
}

// Sagas that two processes hand over to schedulers which lose, double and fail are done or undone
// like others.
func TestDispatchedSagas(t *testing.T) {
	for name, o := range ordeals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				for _, f := range o.faults {
					b.set(f)
				}
				b.begin(four())
				ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
				defer stop()
				var wg sync.WaitGroup
				for range 2 {
					s, r := dispatchtest.Scheduler{Faults: true}, saga.New(b.ledger, b.newEngine(nil), &saga.Options{Idle: 10 * time.Second})
					wg.Go(func() { _ = s.Sagas(ctx, r) }) // it returns nil
				}
				wg.Wait()
				s := b.get()
				if s.State != o.state {
					t.Errorf("want %s\n%s", o.state, picture(s))
				}
				b.there(o.there)
				b.orderly(s)
			})
		})
	}
}

func TestWorkOnASagaThatIsGone(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	if in, again, err := b.runner.WorkOn(t.Context(), "acme", "saga-gone"); in != 0 || again || err != nil {
		t.Errorf("again %t in %s, %v", again, in, err)
	}
}

// A cancelled saga withdraws a write that was handed over and not taken up: it is not sent.
func TestCancelWithdrawsWhatWasHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), &engine.Options{Guards: new(stopped)})
		b.begin(four())
		b.run(time.Second)
		ctx, stop := context.WithTimeout(t.Context(), 45*time.Minute)
		defer stop()
		handed := make(chan ledger.Record, 1)
		go func() {
			_ = b.newEngine(nil).Work(ctx, &engine.WorkOptions{Dispatch: func(_ context.Context, rec ledger.Record) error {
				handed <- rec // then the scheduler is unreachable
				stop()
				return nil
			}})
		}()
		if rec := <-handed; rec.Step != "contact" || rec.Sends > 0 || !rec.LeaseUntil.After(rec.Now) {
			t.Fatalf("%s of step %s after %d sends, leased until %s", rec.Phase(), rec.Step, rec.Sends, rec.LeaseUntil)
		}
		synctest.Wait()
		if err := b.cancel("ada"); err != nil {
			t.Fatal(err)
		}
		b.runner = saga.New(b.ledger, b.newEngine(nil), nil)
		b.want(b.run(time.Hour), saga.Undone, ledger.NotApplied, "", "", "")
		if n := b.world.Changes("C-1"); n != 0 {
			t.Errorf("%d effects of a withdrawn write", n)
		}
	})
}

// A step that the ledger has as unsent may have been sent in a time of which it lacks the history: a
// saga that goes back reads first, and does not say that nothing was sent.
func TestCancelAfterARestoreReadsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), &engine.Options{Guards: new(stopped)})
		b.begin(four())
		b.run(time.Second)
		recs, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"})
		if err != nil || len(recs) != 1 || recs[0].Sends > 0 {
			t.Fatalf("%+v, %v; want one unsent write", recs, err)
		}
		w, err := b.engine.Opened(recs[0])
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		maps.Copy(w.Expect, w.Key)
		if _, err := b.world.Seed(w.Expect, w.Stamp()); err != nil { // sent in the missing time
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := ledger.RecordRestore(t.Context(), b.ledger, time.Now().Add(-90*time.Minute), "ann", "the disk failed"); err != nil {
			t.Fatal(err)
		}
		if err := b.cancel("ada"); err != nil {
			t.Fatal(err)
		}
		b.runner = saga.New(b.ledger, b.newEngine(nil), nil)
		b.want(b.run(time.Hour), saga.Review, ledger.Verified, "", "", "")
		b.there("C")
	})
}

// A saga that was restored as it was before may have begun its next step: it does not say that it is
// undone, and undoes no step on which that one depends.
func TestCancelOfARestoredSaga(t *testing.T) {
	for name, c := range map[string]struct {
		restored bool
		state    saga.State
		contact  ledger.Status
		there    string
	}{
		"restored":     {true, saga.Review, ledger.Verified, "C"},
		"not restored": {false, saga.Undone, ledger.Compensated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				plan := four()
				plan.Steps[1].Grace = 2 * time.Hour
				b.begin(plan)
				b.run(time.Minute)
				b.there("C")
				if c.restored {
					if _, err := ledger.RecordRestore(t.Context(), b.ledger, time.Now().Add(-time.Second), "ann", "the disk failed"); err != nil {
						t.Fatal(err)
					}
				}
				if err := b.cancel("ada"); err != nil {
					t.Fatal(err)
				}
				b.want(b.run(time.Hour), c.state, c.contact)
				b.there(c.there)
			})
		})
	}
}

// stopped are guards that permit no send.
type stopped struct{ engine.Guards }

func (*stopped) Enter(context.Context, ledger.Record) (func(engine.Sent), *engine.Hold) {
	return nil, &engine.Hold{Rule: "stopped", Reason: "an operator stopped sends", For: time.Minute}
}

func (*stopped) Paused() []string { return nil }
