package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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

func (b *bench) enqueue(w intent.WriteIntent) ledger.ID {
	b.t.Helper()
	id, err := b.engine.Enqueue(b.t.Context(), w)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func TestEnqueuedWritesAreForWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		id := b.enqueue(order("A-1", intent.Create))
		time.Sleep(time.Minute)
		if got := b.state(id); got.State != ledger.Queued || got.Owner != "" || len(b.world.Calls()) != 0 {
			t.Fatalf("%s, held by %q, %d calls; want it queued and nothing else", got.Phase(), got.Owner, len(b.world.Calls()))
		}
		if again := b.enqueue(order("A-1", intent.Create)); again != id {
			t.Errorf("a repeat is %s, want %s", again, id)
		}
		b.work(10 * time.Second)
		if got := b.state(id); got.Settlement != ledger.Verified || got.Sends != 1 {
			t.Errorf("%s%s", got.Phase(), b.life(id))
		}
	})
}

func TestEnqueueRefusals(t *testing.T) {
	invalid, elsewhere, late, risky, other := order("A-1", intent.Create), order("A-1", intent.Create), order("A-2", intent.Create), order("A-3", intent.Create), order("A-0", intent.Create)
	invalid.Key, elsewhere.Destination = nil, "elsewhere"
	risky.Risk = intent.RiskApprove
	other.Payload = intent.Fields{"note": "another wish"}
	for name, c := range map[string]struct {
		w      intent.WriteIntent
		want   error
		state  string
		reason string
	}{
		"invalid":        {invalid, intent.ErrInvalid, "", "nothing recorded"},
		"elsewhere":      {elsewhere, connectors.ErrUnknownDestination, "", "nothing recorded"},
		"another digest": {other, ledger.ErrDigestMismatch, "", "one logical write"},
		"late":           {late, nil, "settled (not_applied)", "nothing will be sent"},
		"risky":          {risky, nil, "held", "a reviewer must approve"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.enqueue(order("A-0", intent.Create))
				if name == "late" {
					c.w.Deadline = time.Now().Add(-time.Second)
				}
				id, err := b.engine.Enqueue(t.Context(), c.w)
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v: %s", err, c.want, c.reason)
				}
				if err != nil {
					if n := b.ledger.Commits(); n != 1 {
						t.Errorf("%d commits: %s", n, c.reason)
					}
					return
				}
				b.work(time.Minute)
				if got := b.state(id); got.Phase() != c.state || got.Sends != 0 {
					t.Errorf("%s after %d sends, want %s: %s", got.Phase(), got.Sends, c.state, c.reason)
				}
			})
		})
	}
}

// A full queue refuses with its numbers. Other queues accept writes, and so does it when a worker
// has emptied it.
func TestFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{MaxQueued: 3})
		for n := range 3 {
			b.enqueue(order(fmt.Sprint("A-", n), intent.Create))
		}
		before := b.ledger.Commits()
		_, err := b.engine.Enqueue(t.Context(), order("A-3", intent.Create))
		if !errors.Is(err, ledger.ErrFull) || !strings.Contains(err.Error(), "3 writes") || !strings.Contains(err.Error(), `"orders"`) || b.ledger.Commits() != before {
			t.Errorf("%v after %d commits; want it full, with its numbers, and nothing recorded", err, b.ledger.Commits()-before)
		}
		if id, err := b.engine.Enqueue(t.Context(), order("A-1", intent.Create)); err != nil || id != ledger.IDOf(order("A-1", intent.Create).StructuralKey()) {
			t.Errorf("a repeat of what is there: %s, %v", id, err)
		}
		theirs := order("A-9", intent.Create)
		theirs.Tenant = "other"
		if _, err := b.engine.Enqueue(t.Context(), theirs); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		b.work(time.Minute)
		b.enqueue(order("A-3", intent.Create))
	})
}

// largeOrder is a create of 10 KB.
func largeOrder(id string) intent.WriteIntent {
	w := order(id, intent.Create)
	w.Expect["currency"] = strings.Repeat("E", 10_000)
	return w
}

// The intents of a tenant's open writes are bounded in bytes, by every entry point. Other
// tenants may write, and so may this one when they are settled.
func TestOpenBytesAreBounded(t *testing.T) {
	for name, accept := range map[string]func(*engine.Engine, context.Context, intent.WriteIntent) error{
		"enqueued": func(e *engine.Engine, ctx context.Context, w intent.WriteIntent) error {
			_, err := e.Enqueue(ctx, w)
			return err
		},
		"sent": func(e *engine.Engine, ctx context.Context, w intent.WriteIntent) error {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond) // the caller does not wait
			defer cancel()
			_, err := e.Do(ctx, w)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				d := b.world.Destination()
				d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { time.Sleep(10 * time.Second) }}
				e := b.engineOn(b.ledger, d, &engine.Options{MaxQueuedBytes: 25_000})
				for n := range 2 {
					if err := accept(e, t.Context(), largeOrder(fmt.Sprint("A-", n))); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Second) // of the bubble: the ledger is counted anew
				before := b.ledger.Commits()
				err := accept(e, t.Context(), largeOrder("A-2"))
				if !errors.Is(err, ledger.ErrFull) || !strings.Contains(err.Error(), "queue.bytes") || b.ledger.Commits() != before {
					t.Errorf("%v after %d commits; want it full, with the setting, and nothing recorded", err, b.ledger.Commits()-before)
				}
				if err := accept(e, t.Context(), largeOrder("A-1")); err != nil {
					t.Errorf("a repeat of what is there: %v", err)
				}
				theirs := largeOrder("A-9")
				theirs.Tenant = "other"
				if err := accept(e, t.Context(), theirs); err != nil {
					t.Errorf("another tenant: %v", err)
				}
				ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
				defer end()
				if err := runWorker(ctx, e, nil); err != nil {
					t.Fatal(err)
				}
				if err := accept(e, t.Context(), largeOrder("A-2")); err != nil {
					t.Errorf("after all was settled: %v", err)
				}
			})
		})
	}
}

// A tenant that has used all its bytes cannot keep readback from sending notices of its writes,
// nor of those of other tenants queued behind them.
func TestAFullTenantIsNotifiedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg connectors.Registry
		b := newBench(t, orders.Plain.Options(), nil)
		for _, name := range []string{"orders", engine.OwnDestinations + "ops"} {
			if err := reg.Register(name, b.world.Destination()); err != nil {
				t.Fatal(err)
			}
		}
		e := engine.New(b.ledger, &reg, &engine.Options{MaxQueuedBytes: 15_000})
		defer e.Close()
		if _, err := e.Enqueue(t.Context(), largeOrder("A-1")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Enqueue(t.Context(), largeOrder("A-2")); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v; want it full", err)
		}
		notice := largeOrder("N-1")
		notice.Destination, notice.Tool = engine.OwnDestinations+"ops", engine.OwnTools+"notify"
		if _, err := e.Enqueue(t.Context(), notice); err != nil {
			t.Errorf("the notice: %v", err)
		}
	})
}

// uncounted is a ledger that cannot count waiting writes.
type uncounted struct{ *ledger.Memory }

func (uncounted) QueueStats(context.Context) (ledger.QueueStats, error) {
	return ledger.QueueStats{}, errDown
}

// A ledger that was never counted accepts writes all the same: it refuses by itself what it
// cannot store. The bound counts the writes that this engine accepted.
func TestAnUncountedLedgerTakesWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.engine = b.engineOn(uncounted{b.ledger}, b.world.Destination(), &engine.Options{MaxQueued: 2})
		for _, id := range []string{"A-1", "A-2"} {
			if out := b.do(order(id, intent.Create)); out.Status != ledger.Verified {
				t.Errorf("%+v", out)
			}
		}
		b.enqueue(order("A-3", intent.Create))
		b.enqueue(order("A-4", intent.Create))
		if _, err := b.engine.Enqueue(t.Context(), order("A-5", intent.Create)); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v; want it full with two", err)
		}
	})
}

// A repeat of a waiting write uses no capacity of others.
func TestRepeatsUseNoCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{MaxQueued: 2})
		for range 5 {
			b.enqueue(order("A-1", intent.Create))
		}
		b.enqueue(order("A-2", intent.Create))
		if _, err := b.engine.Enqueue(t.Context(), order("A-3", intent.Create)); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v; want it full with two", err)
		}
	})
}

// A repeat of a waiting write frees no capacity either, nor does a refused write: not for a caller
// that does not wait, whose write is enqueued.
func TestRepeatsFreeNoCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.engine = b.engineOn(b.ledger, b.world.Destination(), &engine.Options{MaxQueuedBytes: 25_000, Guards: closedGate{}})
		b.working()
		for n := range 10 {
			_, err := b.engine.Do(b.unwaiting(), largeOrder(fmt.Sprint("A-", n)))
			if full := n >= 2; errors.Is(err, ledger.ErrFull) != full || !full && err != nil {
				t.Errorf("write %d: %v; want two recorded, and all others refused", n, err)
			}
			if _, err := b.engine.Do(b.unwaiting(), largeOrder("A-0")); err != nil {
				t.Errorf("a repeat after write %d: %v", n, err)
			}
		}
	})
}

func TestTooManyCallersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), &engine.Options{MaxInFlight: 2})
		var wg sync.WaitGroup
		for n := range 2 {
			wg.Go(func() { b.do(order(fmt.Sprint("A-", n), intent.Create)) })
		}
		synctest.Wait()
		before := b.ledger.Commits()
		_, err := b.engine.Do(t.Context(), order("A-2", intent.Create))
		if !errors.Is(err, ledger.ErrFull) || !strings.Contains(err.Error(), "2") || b.ledger.Commits() != before {
			t.Errorf("%v; want it full, and nothing recorded", err)
		}
		wg.Wait()
		if out := b.do(order("A-2", intent.Create)); out.Status != ledger.Verified {
			t.Errorf("%+v", out)
		}
	})
}

// A caller that does not wait leaves its write in progress: it counts until the work on it
// stops.
func TestCallersThatDoNotWaitAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		d := b.world.Destination()
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { time.Sleep(10 * time.Second) }}
		e := b.engineOn(b.ledger, d, &engine.Options{MaxInFlight: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for n := range 2 {
			if _, err := e.Do(ctx, order(fmt.Sprint("A-", n), intent.Create)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Do(ctx, order("A-2", intent.Create)); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v; want it full", err)
		}
		time.Sleep(11 * time.Second)
		if out, err := e.Do(t.Context(), order("A-2", intent.Create)); err != nil || out.Status != ledger.Verified {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// A subscriber gets each write once, when it is done, and each unknown write.
func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		ids := []ledger.ID{"wr_none"}
		for n := range 4 {
			w := order(fmt.Sprint("A-", n), intent.Create)
			if n == 3 {
				w.Risk = intent.RiskApprove
			}
			ids = append(ids, b.enqueue(w), b.enqueue(w))
		}
		go b.work(time.Hour)
		texts := make(map[ledger.ID]string)
		for out, err := range b.engine.Subscribe(t.Context(), "acme", ids...) {
			if texts[out.ID] != "" {
				t.Errorf("%s is returned twice", out.ID)
			}
			texts[out.ID] = string(out.Status)
			if err != nil {
				texts[out.ID] = err.Error()
			}
		}
		got := slices.Sorted(maps.Values(texts))
		if want := []string{"held", "no such write: wr_none", "verified", "verified", "verified"}; !slices.Equal(got, want) {
			t.Errorf("returned %q, want %q", got, want)
		}
	})
}

func TestSubscriberThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		id := b.enqueue(order("A-1", intent.Create))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for out, err := range b.engine.Subscribe(ctx, "acme", id) {
			t.Errorf("outcome %+v, %v; no worker has it", out, err)
		}
		if ctx.Err() == nil {
			t.Error("ended before its context")
		}
	})
}

// A write that came through an entry point without risk rules is held all the same, before it
// is sent. An outbox entry that can never be served is refused.
func TestQueuedWritesAreReadBeforeTheyAreSent(t *testing.T) {
	risky, raised, unfit := order("A-1", intent.Create), order("A-2", intent.Create), order("A-3", intent.Create)
	risky.Risk = intent.RiskApprove
	unfit.Key["shop"] = "x"
	raised.Tool = "orders.large"
	raise := []policies.RiskRule{{Tool: "*.large", Class: intent.RiskApprove}}
	for name, c := range map[string]struct {
		w      intent.WriteIntent
		state  string
		reason string
	}{
		"risky":  {risky, "held", "no reviewer approved"},
		"raised": {raised, "held", "no reviewer approved"},
		"unfit":  {unfit, "settled (not_applied)", "its destination would only refuse it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), &engine.Options{Risks: raise})
				rec, err := ledger.NewRecord(c.w)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec}); err != nil {
					t.Fatal(err)
				}
				b.work(time.Minute)
				if got := b.state(rec.ID); got.Phase() != c.state || len(b.world.Calls()) != 0 {
					t.Fatalf("%s after %d calls, want %s: %s%s", got.Phase(), len(b.world.Calls()), c.state, c.reason, b.life(rec.ID))
				}
				if c.state != "held" {
					return
				}
				out, err := b.engine.Resolve(t.Context(), "acme", rec.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "fine"})
				if err != nil || out.Status != ledger.Verified {
					t.Errorf("approved: %+v, %v%s", out, err, b.life(rec.ID))
				}
			})
		})
	}
}
