package engine_test

import (
	"context"
	"fmt"
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
)

// wish returns one of several writes about one record: the n-th sets n cents.
func wish(id string, n int, write intent.WriteType) intent.WriteIntent {
	w := order(id, write)
	w.Workflow = fmt.Sprint("wf-", n)
	if write != intent.Delete {
		w.Expect = intent.Fields{"amount_cents": jsonNumber(1000 + n), "currency": "USD"}
	}
	return w
}

// Writes about one record are made one after another in the order of arrival, whatever is lost
// on the way and whichever worker makes them.
func TestWritesAboutOneRecordAreDoneInOrder(t *testing.T) {
	for _, kind := range []orders.FaultKind{"", orders.LostAnswer, orders.DroppedBefore, orders.LateCommit, orders.Unreachable} {
		t.Run("fault "+string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				if kind != "" {
					b.set(orders.Fault{Kind: kind, Times: 1, Delay: 20 * time.Second, Ops: []orders.Op{orders.OpUpsert, orders.OpCreate, orders.OpUpdate}})
				}
				const writes = 6
				var wg sync.WaitGroup
				for n := range writes {
					e := b.newEngine(nil)
					wg.Go(func() {
						out, err := e.Do(t.Context(), wish("A-1", n, intent.Upsert))
						if err != nil || out.Status != ledger.Verified {
							t.Errorf("write %d: %+v, %v%s", n, out, err, b.life(out.ID))
						}
					})
					time.Sleep(time.Millisecond)
				}
				wg.Wait()
				var seen []string
				for _, e := range b.world.Effects() {
					if e.After != nil {
						seen = append(seen, fmt.Sprint(e.After.Fields["amount_cents"]))
					}
				}
				seen = slices.Compact(seen) // a second arrival before the next send does no harm
				if got, want := strings.Join(seen, " "), "1000 1001 1002 1003 1004 1005"; got != want {
					t.Errorf("the record was %s, want %s", got, want)
				}
			})
		})
	}
}

// A write queued behind another one continues soon after that one is done.
func TestHeadOfTheQueueIsSentSoon(t *testing.T) {
	for name, same := range map[string]bool{"same process": true, "another process": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				d := b.world.Destination()
				d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { time.Sleep(1900 * time.Millisecond) }}
				b.engine = b.engineOn(b.ledger, d, nil)
				second := b.engine
				if !same {
					second = b.engineOn(b.ledger, d, nil)
				}
				var ended [2]time.Time
				var wg sync.WaitGroup
				for n, e := range []*engine.Engine{b.engine, second} {
					wg.Go(func() {
						if out, err := e.Do(t.Context(), wish("A-1", n, intent.Upsert)); err != nil || out.Status != ledger.Verified {
							t.Errorf("write %d: %+v, %v%s", n, out, err, b.life(out.ID))
						}
						ended[n] = time.Now()
					})
					time.Sleep(10 * time.Millisecond)
				}
				wg.Wait()
				first := b.state(ledger.IDOf(wish("A-1", 0, "upsert").StructuralKey()))
				next := b.state(ledger.IDOf(wish("A-1", 1, "upsert").StructuralKey()))
				most := 500 * time.Millisecond
				if same {
					most = 0
				}
				if waited := next.FirstSend.Sub(first.SettledAt); waited < 0 || waited > most {
					t.Errorf("sent %s after it became the head, want at most %s%s", waited, most, b.life(next.ID))
				}
			})
		})
	}
}

// While a write is in review, the writes queued behind it wait and report the reason.
func TestBehindAReviewIsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stuck := undecidable(t)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := b.engine.Do(ctx, wish("A-1", 1, intent.Upsert))
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != ledger.InProgress || out.Sends != 0 || time.Since(began) > time.Second {
			t.Fatalf("%+v after %s; want in progress at once%s", out, time.Since(began), b.life(out.ID))
		}
		for what, text := range map[string]string{"the sentence": out.Text, "the advice": out.ForModel} {
			if !strings.Contains(text, string(stuck.ID)) {
				t.Errorf("%s does not name the write before it: %s", what, text)
			}
		}
		if out.AskAgain != engine.AgainLater || !out.AskAfter.After(time.Now()) {
			t.Errorf("ask again %q %s", out.AskAgain, out.AskAfter)
		}
		b.work(3 * time.Hour)
		if got := b.state(out.ID); got.Sends != 0 {
			t.Fatalf("overtook the write in review%s", b.life(out.ID))
		}
		if _, err := b.engine.Resolve(t.Context(), "acme", stuck.ID, engine.Decision{Word: engine.WordAccept, By: "ada", Reason: "fine"}); err != nil {
			t.Fatal(err)
		}
		if out := b.do(wish("A-1", 1, intent.Upsert)); out.Status != ledger.Verified {
			t.Errorf("after the reviewer: %+v%s", out, b.life(out.ID))
		}
	})
}

// The undo of a write takes its place, though others are queued behind it.
func TestUndoingInALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
		b.set(orders.Fault{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpDelete}, Times: 1})
		first := wish("A-1", 0, intent.Create)
		first.Reversibility, first.OnMismatch = intent.Compensable, intent.MismatchCompensate
		var wg sync.WaitGroup
		wg.Go(func() {
			if out := b.do(first); out.Status != ledger.Compensated {
				t.Errorf("first: %+v%s", out, b.life(out.ID))
			}
		})
		time.Sleep(time.Microsecond)
		out := b.do(wish("A-1", 1, intent.Create))
		wg.Wait()
		if there := b.world.Records("A-1"); out.Status != ledger.Verified || len(there) != 1 || there[0].AmountCents() != 1001 {
			t.Errorf("second: %+v with %+v%s", out, there, b.life(out.ID))
		}
	})
}

// A held write has no place in the queue until it is approved. It is then the last, and the
// reviewer is notified.
func TestApprovedIntoABusyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		asks := wish("A-1", 1, intent.Upsert)
		asks.Risk = intent.RiskApprove
		held := b.do(asks)
		before := b.ahead("A-1")
		began := time.Now()
		out, err := b.engine.Resolve(t.Context(), "acme", held.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "fine"})
		if err != nil || out.Status != ledger.InProgress || !strings.Contains(out.Text, string(before)) || time.Since(began) > time.Second {
			t.Fatalf("%+v, %v; want in progress behind %s at once%s", out, err, before, b.life(out.ID))
		}
		if got := b.state(out.ID); got.Owner != "" || got.Sends != 0 {
			t.Errorf("it is held by %q after %d sends", got.Owner, got.Sends)
		}
		b.work(time.Minute)
		if there := b.world.Records("A-1"); b.state(out.ID).Settlement != ledger.Verified || len(there) != 1 || there[0].AmountCents() != 1001 {
			t.Errorf("%s, %+v%s", b.state(out.ID).Phase(), there, b.life(out.ID))
		}
	})
}

// Hundreds of queued callers do not keep the ledger busy.
func TestWaitingInTheQueueIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		first := b.ahead("A-1")
		if lent, err := b.ledger.Claim(t.Context(), ledger.Claim{Owner: "other", LeaseFor: time.Hour, Tenant: "acme", ID: first}); err != nil || len(lent) != 1 {
			t.Fatalf("%v, %v", lent, err)
		}
		gets := &counting{Ledger: b.ledger}
		e := b.engineOn(gets, b.world.Destination(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := e.Do(ctx, wish("A-1", 1, intent.Upsert))
		if err != nil || out.Status != ledger.InProgress {
			t.Fatalf("%+v, %v", out, err)
		}
		if gets.n > 300 {
			t.Errorf("asked %d times in a minute", gets.n)
		}
	})
}

type counting struct {
	ledger.Ledger
	mu sync.Mutex
	n  int
}

func (c *counting) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Ledger.Get(ctx, tenant, id)
}

// A queued caller continues the write before it, when that is due and its callers have left: no
// worker is needed for that.
func TestQueuedCallersWorkOnTheHead(t *testing.T) {
	for _, others := range []int{1, 3} {
		t.Run(fmt.Sprint(others, " before it"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Unique.Options()
				o.Lags, o.Settle = []time.Duration{30 * time.Second}, connectors.Within(30*time.Second)
				b := newBench(t, o, nil)
				for n := range others {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					out, err := b.engine.Do(ctx, wish("A-1", n, intent.Upsert))
					cancel()
					if err != nil || out.Status != ledger.InProgress {
						t.Fatalf("%+v, %v", out, err)
					}
				}
				if out := b.do(wish("A-1", others, intent.Upsert)); out.Status != ledger.Verified {
					t.Errorf("%+v%s", out, b.life(out.ID))
				}
			})
		})
	}
}
