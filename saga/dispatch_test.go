package saga_test

import (
	"context"
	"flag"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/dispatchtest"
	"github.com/readback-go/readback/internal/fakes/orders"
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
