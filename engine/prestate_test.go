package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// slowReserve is a ledger with slow reservations.
type slowReserve struct {
	ledger.Ledger
	takes time.Duration
}

func (s *slowReserve) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	time.Sleep(s.takes)
	return s.Ledger.Reserve(ctx, r)
}

// A pre-state that was read before another write of the same record settled is not the state
// before this write: it is read again when the write is first in its queue.
func TestPreStateIsReadInTheWritesOwnPlace(t *testing.T) {
	set := func(cents int) intent.Fields {
		return intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(cents), "currency": "USD"}
	}
	for name, c := range map[string]struct {
		write  intent.WriteType // of both
		seed   intent.Fields
		slow   int // the value of the write with the slow ledger
		other  int // the value of the other one meanwhile
		want   ledger.Status
		sends  int // of the slow one
		left   intent.Fields
		reason string
	}{
		"pair of creates": {intent.Create, nil, 1, 2, ledger.NotApplied, 0, set(2), "the other write has made the record: nothing may be created beside it"},
		"vacuous update":  {intent.Update, set(1), 1, 2, ledger.Verified, 1, set(1), "what was as declared before the other write is not any more"},
		"update":          {intent.Update, set(1), 3, 2, ledger.Verified, 1, set(3), "it comes after the other one"},
		"vacuous upsert":  {intent.Upsert, set(1), 1, 2, ledger.Verified, 1, set(1), "likewise"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				if c.seed != nil {
					b.seed(c.seed, "")
				}
				time.Sleep(time.Minute)
				slow := b.engineOn(&slowReserve{Ledger: b.ledger, takes: 30 * time.Second}, b.world.Destination(), nil)
				w, other := wish("A-1", 1, c.write), wish("A-1", 2, c.write)
				w.Expect["amount_cents"], other.Expect["amount_cents"] = jsonNumber(c.slow), jsonNumber(c.other)
				var out engine.Outcome
				var wg sync.WaitGroup
				wg.Go(func() {
					var err error
					if out, err = slow.Do(t.Context(), w); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(10 * time.Second)
				if done := b.do(other); done.Status != ledger.Verified || done.Sends != 1 {
					t.Fatalf("the other one: %+v%s", done, b.life(done.ID))
				}
				wg.Wait()
				if diff := cmp.Diff(c.left, b.fieldsNow()); out.Status != c.want || out.Sends != c.sends || diff != "" {
					t.Errorf("%s after %d sends, want %s after %d: %s (-want +got)\n%s%s", out.Status, out.Sends, c.want, c.sends, c.reason, diff, b.life(out.ID))
				}
			})
		})
	}
}

// An undo whose reservation is slow must not restore a value that is older than a verified
// write.
func TestSlowUndoingLosesNoOtherWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.seed(seeded, "")
		time.Sleep(time.Minute)
		done := b.do(compensable(order("A-1", intent.Update)))
		slow := b.engineOn(&slowReserve{Ledger: b.ledger, takes: 30 * time.Second}, b.world.Destination(), nil)
		var undone engine.Outcome
		var wg sync.WaitGroup
		wg.Go(func() {
			var err error
			if undone, err = slow.Undo(t.Context(), "acme", done.ID, unwanted); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Second)
		other := b.do(wish("A-1", 7, intent.Update))
		wg.Wait()
		if other.Status != ledger.Verified || undone.Status != ledger.StatusReview || fmt.Sprint(b.fieldsNow()["amount_cents"]) != "1007" {
			t.Errorf("%s, undone %s, the record is %v; want the later write kept%s%s", other.Status, undone.Status, b.fieldsNow(), b.life(done.ID), b.life(undone.Undoing))
		}
	})
}

// A worker reads the pre-state of a queued write while the write is the head of its queue:
// later writes are queued behind it.
func TestWorkerReadsThePreStateInTheWritesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.seed(seeded, "")
		time.Sleep(time.Minute)
		d := b.world.Destination()
		d.Connector = &spy{Connector: d.Connector, read: func() { time.Sleep(5 * time.Second) }}
		worker := b.engineOn(b.ledger, d, nil)
		first, err := worker.Enqueue(t.Context(), wish("A-1", 1, intent.Update))
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go func() { _ = runWorker(ctx, worker, nil) }() // it ends with the test
		time.Sleep(time.Second)
		out := b.do(wish("A-1", 2, intent.Update))
		if rec := b.state(out.ID); out.Status != ledger.Verified || rec.FirstSend.Before(b.state(first).SettledAt) {
			t.Errorf("%s, sent at %s before the first was settled at %s%s%s", out.Status, rec.FirstSend, b.state(first).SettledAt, b.life(first), b.life(out.ID))
		}
		end()
	})
}

// The rule for pre-states costs the usual path nothing: two commits, one send, and reads as
// before.
func TestPreStateInPlaceCostsNoCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.seed(seeded, "")
		time.Sleep(time.Minute)
		for n := range 3 {
			before := b.ledger.Commits()
			if out := b.do(wish("A-1", n, intent.Update)); out.Status != ledger.Verified || out.Sends != 1 {
				t.Fatalf("%+v%s", out, b.life(out.ID))
			}
			if commits := b.ledger.Commits() - before; commits != 2 {
				t.Errorf("update %d: %d commits, want 2", n, commits)
			}
		}
	})
}

// While a write waits because no send was taken up, other actors change the record. What was read before
// is no pre-state any more: it is read again, what the write requires must still hold, and a reviewer decides
// about what it would undo of another actor's change.
func TestPreStateIsReadAgainAfterASendThatWasNotTakenUp(t *testing.T) {
	amount := func(n int) intent.Fields { return intent.Fields{"amount_cents": jsonNumber(n)} }
	for _, kind := range []fault.Kind{fault.Throttled, fault.Unreachable} {
		for name, c := range map[string]struct {
			write   intent.WriteType
			there   bool // whether a record is there before
			require intent.Fields
			by      intent.Fields // what another actor sets meanwhile; nil: nothing
			want    string        // the phase
			left    string        // the amount
		}{
			"update, nothing changes":       {intent.Update, true, amount(1), nil, "settled (verified)", "2"},
			"update, another field":         {intent.Update, true, amount(1), intent.Fields{"currency": "EUR"}, "settled (verified)", "2"},
			"update, what it requires":      {intent.Update, true, amount(1), amount(7), "settled (not_applied)", "7"},
			"update, what it sets":          {intent.Update, true, nil, amount(7), "review", "7"},
			"update, to what it sets":       {intent.Update, true, nil, amount(2), "settled (verified)", "2"},
			"delete, nothing changes":       {intent.Delete, true, nil, nil, "settled (verified)", "<nil>"},
			"delete, any field":             {intent.Delete, true, nil, intent.Fields{"currency": "EUR"}, "review", "1"},
			"upsert, nothing comes":         {intent.Upsert, false, nil, nil, "settled (verified)", "2"},
			"upsert, what it sets":          {intent.Upsert, true, nil, amount(7), "review", "7"},
			"upsert, a record of another's": {intent.Upsert, false, nil, amount(7), "review", "7"},
		} {
			t.Run(fmt.Sprint(kind, ", ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, orders.Plain.Options(), nil)
					if c.there {
						b.seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(1), "currency": "USD"}, "")
					}
					time.Sleep(time.Minute)
					b.set(orders.Fault{Kind: kind, Times: 1, Delay: 10 * time.Minute})
					w := wish("A-1", 1, c.write)
					if w.Require = c.require; c.write != intent.Delete {
						w.Expect = intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(2)}
					}
					id := b.enqueue(w)
					// Not handed over: such work is not put back when its scheduler ends, and sends again itself.
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					if err := b.engine.Work(ctx, nil); err != nil {
						t.Fatal(err)
					}
					if rec := b.state(id); rec.Sends != 1 || rec.Unsent != 1 {
						t.Fatalf("%d sends, %d of them not taken up, want one%s", rec.Sends, rec.Unsent, b.life(id))
					}
					switch {
					case c.by != nil && c.there:
						b.edit(c.by)
					case c.by != nil:
						b.seed(intent.Fields{"order_id": "A-1", "amount_cents": c.by["amount_cents"]}, "")
					}
					b.work(time.Hour)
					if rec := b.state(id); rec.Phase() != c.want || fmt.Sprint(b.fieldsNow()["amount_cents"]) != c.left {
						t.Errorf("%s, the record is %v; want %s and %s%s", rec.Phase(), b.fieldsNow(), c.want, c.left, b.life(id))
					}
				})
			})
		}
	}
}

// A read that may lag is no new pre-state: what changed since the one before the first send is compared with
// that, also where a later read shows the requirement as met again.
func TestAnInconclusiveReadIsNoNewPreState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Lagging.Options()
		o.Lags, o.Settle = []time.Duration{time.Millisecond}, connectors.Within(2*time.Hour)
		b := newBench(t, o, nil)
		b.seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(1), "currency": "USD"}, "")
		time.Sleep(time.Minute)
		b.set(orders.Fault{Kind: fault.Throttled, Times: 1, Delay: 10 * time.Minute})
		w := wish("A-1", 1, intent.Update)
		w.Expect, w.Require = intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(2)}, intent.Fields{"currency": "USD"}
		id := b.enqueue(w)
		b.work(time.Millisecond)
		b.edit(intent.Fields{"currency": "EUR", "amount_cents": jsonNumber(7)})
		b.work(11 * time.Minute)
		if rec := b.state(id); rec.Sends != 1 || rec.Rule != "pre-state" || rec.State != ledger.Checking {
			t.Fatalf("%s after %d sends, rule %q; want that it waits for a reliable pre-state%s", rec.Phase(), rec.Sends, rec.Rule, b.life(id))
		}
		b.edit(intent.Fields{"currency": "USD"})
		b.work(3 * time.Hour)
		if rec := b.state(id); rec.State != ledger.Review || fmt.Sprint(b.fieldsNow()["amount_cents"]) != "7" {
			t.Errorf("%s, the record is %v; want review and 7%s", rec.Phase(), b.fieldsNow(), b.life(id))
		}
	})
}

// What another actor made true while no send was taken up is not undone: it is not this write's.
func TestWhatAnotherActorMadeTrueIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(1)}, "")
		time.Sleep(time.Minute)
		b.set(orders.Fault{Kind: fault.Throttled, Times: 1, Delay: 10 * time.Minute})
		w := compensable(wish("A-1", 1, intent.Update))
		w.Expect = intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(2)}
		id := b.enqueue(w)
		b.work(time.Millisecond)
		b.edit(intent.Fields{"amount_cents": jsonNumber(2)})
		b.work(time.Hour)
		rec := b.state(id)
		if rec.Settlement != ledger.Verified || rec.Sends != 1 || rec.Unsent != 1 {
			t.Fatalf("%s after %d sends%s", rec.Phase(), rec.Sends, b.life(id))
		}
		if text := engine.OutcomeOf(rec).Text; !strings.Contains(text, "was as requested already; no send was taken up") {
			t.Errorf("the outcome is %q; want that it was so already", text)
		}
		out := b.undo(id, unwanted)
		if out.Status != ledger.Verified || fmt.Sprint(b.fieldsNow()["amount_cents"]) != "2" {
			t.Errorf("%s, the record is %v; want verified and 2: there is nothing to undo%s", out.Status, b.fieldsNow(), b.life(id))
		}
	})
}

// A create that waits because no send was taken up is read before again: another actor may have made the
// record meanwhile, and the destination would make a second one.
func TestACreateIsReadBeforeAgainAfterASendThatWasNotTakenUp(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Throttled, fault.Unreachable} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.set(orders.Fault{Kind: kind, Times: 1, Delay: 10 * time.Minute})
				id := b.enqueue(wish("A-1", 1, intent.Create))
				b.work(time.Millisecond)
				if rec := b.state(id); rec.Sends != 1 || rec.Unsent != 1 {
					t.Fatalf("%d sends, %d of them not taken up, want one%s", rec.Sends, rec.Unsent, b.life(id))
				}
				b.seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(7)}, "")
				b.work(time.Hour)
				if rec := b.state(id); rec.State != ledger.Review || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%s, %d records; want review and one%s", rec.Phase(), len(b.world.Records("A-1")), b.life(id))
				}
				if err := b.world.Remove(b.world.Records("A-1")[0].ID); err != nil {
					t.Fatal(err)
				}
				b.resolve(id, engine.Decision{Word: engine.WordRetry, By: "ada", Reason: "the other one is deleted"})
				b.work(time.Hour)
				if rec := b.state(id); rec.Settlement != ledger.Verified || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%s, %d records; want verified and one%s", rec.Phase(), len(b.world.Records("A-1")), b.life(id))
				}
			})
		})
	}
}
