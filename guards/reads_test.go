package guards_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// counted is a destination that counts the calls under way at once. Each takes a while, and a
// send is never answered while it hangs.
type counted struct {
	connectors.Connector
	sendings
	took  time.Duration
	hangs bool
}

func (c *counted) call(ctx context.Context, d time.Duration) error {
	c.begin()
	defer c.end()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *counted) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	took := c.took
	if c.hangs {
		took = time.Hour
	}
	if err := c.call(ctx, took); err != nil {
		return connectors.Receipt{}, err
	}
	return c.Connector.Write(ctx, r)
}

func (c *counted) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if err := c.call(ctx, c.took); err != nil {
		return connectors.Observation{}, err
	}
	return c.Connector.Read(ctx, q)
}

// counting registers a destination that counts.
func counting(t *testing.T, reg *connectors.Registry, name string, c *counted) {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	d := world.Destination()
	c.Connector = d.Connector
	d.Connector = c
	if err := reg.Register(name, d); err != nil {
		t.Fatal(err)
	}
}

// onLedger is an engine with guards, on a ledger, and a worker that runs until end.
func onLedger(t *testing.T, l *ledger.Memory, reg *connectors.Registry, set map[string]guards.Settings) (e *engine.Engine, end func()) {
	t.Helper()
	g := guards.New(l, reg, &guards.Options{Destinations: set})
	e = engine.New(l, reg, &engine.Options{Guards: g})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = e.Work(ctx, &engine.WorkOptions{Grace: time.Second}) }) // it returns nil
	synctest.Wait()
	return e, func() {
		cancel()
		wg.Wait()
		e.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func ordered(destination string, n int) intent.WriteIntent {
	id := fmt.Sprint("A-", n)
	return intent.WriteIntent{Tenant: "acme", Workflow: destination, Step: id, Tool: "orders.create", Destination: destination, Kind: orders.Kind,
		Key: intent.Fields{"order_id": id}, Write: intent.Create, Expect: intent.Fields{"currency": "USD"}}
}

// Reads count as calls: a destination that takes two never has a third under way, whichever of
// two processes makes it, and every write is verified.
func TestReadsCount(t *testing.T) {
	for limit := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l, reg, c := ledger.NewMemory(), &connectors.Registry{}, &counted{took: 300 * time.Millisecond}
			counting(t, reg, "orders", c)
			set := map[string]guards.Settings{"orders": {Concurrency: limit + 1}}
			one, endOne := onLedger(t, l, reg, set)
			other, endOther := onLedger(t, l, reg, set)
			var wg sync.WaitGroup
			for n := range 20 {
				wg.Go(func() {
					e := []*engine.Engine{one, other}[n%2]
					if out, err := e.Do(t.Context(), ordered("orders", n)); err != nil || out.Status != ledger.Verified || out.Sends != 1 {
						t.Errorf("%+v, %v", out, err)
					}
				})
			}
			wg.Wait()
			endOne()
			endOther()
			if c.most > limit+1 || len(c.at) < 60 {
				t.Errorf("%d of %d calls were under way at once, want at most %d", c.most, len(c.at), limit+1)
			}
		})
	}
}

// A hanging destination has no more than its calls under way, and the writes of other
// destinations continue.
func TestADestinationThatHangsHoldsUpNoOther(t *testing.T) {
	for name, c := range map[string]struct{ set, most int }{"by default": {0, 32}, "as it is set": {2, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, reg, dead, live := ledger.NewMemory(), &connectors.Registry{}, &counted{hangs: true}, &counted{took: 100 * time.Millisecond}
				counting(t, reg, "dead", dead)
				counting(t, reg, "live", live)
				e, end := onLedger(t, l, reg, map[string]guards.Settings{"dead": {Concurrency: c.set}})
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				waiting, leave := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for n := range 300 {
					ctx := gone
					if n%3 == 0 {
						ctx = waiting
					}
					wg.Go(func() {
						if _, err := e.Do(ctx, ordered("dead", n)); err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(5 * time.Second)
				for n := range 50 {
					began := time.Now()
					out, err := e.Do(t.Context(), ordered("live", n))
					if took := time.Since(began); err != nil || out.Status != ledger.Verified || took > time.Second {
						t.Fatalf("%s after %s, %v", out.Status, took, err)
					}
				}
				out, err := e.Do(gone, ordered("live", 50))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				if got, err := l.Get(t.Context(), "acme", out.ID); err != nil || got.Settlement != ledger.Verified {
					t.Errorf("from the queue: %s, %v; want verified within seconds", got.Phase(), err)
				}
				leave()
				wg.Wait()
				end()
				if dead.most != c.most {
					t.Errorf("%d calls of the one that hangs at once, want %d", dead.most, c.most)
				}
			})
		})
	}
}

// reads requests a read of a write in a state.
func (w *worker) reads(ctx context.Context, s ledger.State) (leave func(engine.Sent), hold *engine.Hold) {
	rec := write(crm)
	rec.State = s
	return w.EnterRead(ctx, rec)
}

// confirmed is a read that verified the effect of a send of unknown fate.
func (w *worker) confirmed(rec ledger.Record) {
	rec.LastFate = ledger.FateUnknown
	w.Observe(engine.Activity{Kind: engine.ActivityShown, Record: rec, Verdict: verify.Verified})
}

// readLogin is a read after a send whose login was refused for a reason, or accepted.
func (w *worker) readLogin(v verify.Verdict, why string) {
	w.Observe(engine.Activity{Kind: engine.ActivityRead, Record: write(crm), Verdict: v, Login: why})
}

// A send is read back before anything else is sent, even by a read that got no slot at first. A
// recheck waits in the queue.
func TestReadsAfterSendsComeFirst(t *testing.T) {
	for name, c := range map[string]struct {
		state ledger.State
		first bool
	}{"read-back": {ledger.Checking, true}, "recheck": {ledger.Settled, false}, "look": {"", false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, guards.Settings{Concurrency: 1})
				defer crew.close()
				w := crew.workers[0]
				sending := passes(t, w, write(crm))
				_, hold := w.reads(t.Context(), c.state)
				if hold == nil || hold.Rule != "busy" {
					t.Fatalf("%+v while a send is under way; want busy", hold)
				}
				sending(answered)
				ctx, cancel := context.WithTimeout(t.Context(), hold.For)
				defer cancel()
				leave, early := w.Enter(ctx, write(crm))
				if (early != nil) != c.first {
					t.Fatalf("%+v; want a send held %t until the read has asked again", early, c.first)
				}
				if leave != nil {
					leave(answered)
				}
				reading, hold := w.reads(t.Context(), c.state)
				if hold != nil {
					t.Fatalf("%+v when a slot is free", hold)
				}
				held(t, w, write(crm), "busy")
				reading(answered)
				passes(t, w, write(crm))(answered)
			})
		})
	}
}

// A read that does not ask again delays sends only for a moment.
func TestAReadThatDoesNotComeBackIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Concurrency: 1})
		defer crew.close()
		w := crew.workers[0]
		sending := passes(t, w, write(crm))
		if _, hold := w.reads(t.Context(), ledger.Checking); hold == nil {
			t.Fatal("it is not held")
		}
		sending(answered)
		held(t, w, write(crm), "busy")
		time.Sleep(3 * time.Second)
		passes(t, w, write(crm))(answered)
	})
}

// Closed guards hold sends; earlier sends are still read back.
func TestClosedGuardsLetReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Concurrency: 1})
		w := crew.workers[0]
		crew.close()
		for range 2 {
			if _, hold := w.reads(t.Context(), ledger.Checking); hold != nil {
				t.Errorf("%+v", hold)
			}
		}
	})
}
