package engine_test

import (
	"context"
	"errors"
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
)

var unwanted = engine.Undoing{By: "saga wf-1", Reason: "the trip was cancelled"}

func (b *bench) undo(id ledger.ID, u engine.Undoing) engine.Outcome {
	b.t.Helper()
	out, err := b.engine.Undo(b.t.Context(), "acme", id, u)
	if err != nil {
		b.t.Fatalf("Undo: %v%s", err, b.life(id))
	}
	return out
}

func compensable(w intent.WriteIntent) intent.WriteIntent {
	w.Reversibility = intent.Compensable
	return w
}

func (b *bench) edit(fields intent.Fields) {
	b.t.Helper()
	if _, err := b.world.Edit(b.world.Records("A-1")[0].ID, fields); err != nil {
		b.t.Fatal(err)
	}
}

// fieldsNow returns the fields of the one record, without those that the destination sets by
// itself; nil when there is none.
func (b *bench) fieldsNow() intent.Fields {
	b.t.Helper()
	live := b.world.Records("A-1")
	if len(live) > 1 {
		b.t.Fatalf("%d records", len(live))
	}
	if len(live) == 0 {
		return nil
	}
	fields := intent.Fields{}
	for name, v := range live[0].Fields {
		if name != "updated_at" && name != "status" {
			fields[name] = v
		}
	}
	return fields
}

var seeded = intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR", "note": "theirs"}

func TestUndo(t *testing.T) {
	written := func(write intent.WriteType) intent.Fields {
		if write == intent.Create {
			return intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(1999), "currency": "USD"}
		}
		return intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(1999), "currency": "USD", "note": "theirs"}
	}
	with := func(f intent.Fields, name string, v any) intent.Fields { f[name] = v; return f }
	for name, c := range map[string]struct {
		write  intent.WriteType
		then   func(b *bench)
		want   ledger.Status
		left   intent.Fields
		reason string
	}{
		"a create":                       {intent.Create, nil, ledger.Compensated, nil, "it is deleted"},
		"an update":                      {intent.Update, nil, ledger.Compensated, seeded, "it is brought back"},
		"an upsert of what was there":    {intent.Upsert, nil, ledger.Compensated, seeded, "it is brought back"},
		"a delete":                       {intent.Delete, nil, ledger.Compensated, seeded, "it is made again"},
		"a created record, changed":      {intent.Create, func(b *bench) { b.edit(intent.Fields{"currency": "CHF"}) }, ledger.StatusReview, with(written(intent.Create), "currency", "CHF"), "their change would be lost"},
		"a created record, added to":     {intent.Create, func(b *bench) { b.edit(intent.Fields{"note": "call them"}) }, ledger.StatusReview, with(written(intent.Create), "note", "call them"), "what they added would be lost"},
		"a created record, removed":      {intent.Create, func(b *bench) { b.remove("A-1") }, ledger.StatusReview, nil, "a reviewer is notified that another actor did it"},
		"an updated record, changed":     {intent.Update, func(b *bench) { b.edit(intent.Fields{"currency": "CHF"}) }, ledger.StatusReview, with(written(intent.Update), "currency", "CHF"), "their change would be overwritten"},
		"an updated record, and another": {intent.Update, func(b *bench) { b.edit(intent.Fields{"note": "new"}) }, ledger.Compensated, intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR", "note": "new"}, "what we did not set is theirs"},
		"a deleted record, made again":   {intent.Delete, func(b *bench) { b.seed(seeded, "") }, ledger.StatusReview, seeded, "there would be two"},
		"rechecked after their change": {intent.Update, func(b *bench) {
			b.edit(intent.Fields{"note": "new"})
			b.worked(4 * time.Hour)
		}, ledger.Compensated, intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR", "note": "new"}, "what a later read saw is none of our doing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Recheck = connectors.Within(2 * time.Hour)
				b := newBench(t, o, nil)
				if c.write != intent.Create {
					b.seed(seeded, "")
				}
				time.Sleep(time.Minute)
				done := b.do(compensable(order("A-1", c.write)))
				if done.Status != ledger.Verified {
					t.Fatalf("%+v%s", done, b.life(done.ID))
				}
				time.Sleep(time.Hour)
				if c.then != nil {
					c.then(b)
				}
				out := b.undo(done.ID, unwanted)
				if diff := cmp.Diff(c.left, b.fieldsNow()); out.Status != c.want || diff != "" {
					t.Fatalf("%s, %s: %s%s%s", out.Status, c.reason, diff, b.life(done.ID), b.life(out.Undoing))
				}
				child := b.state(out.Undoing)
				if child.Parent != done.ID || child.StructuralKey == b.state(done.ID).StructuralKey || child.RequestedBy == "saga" {
					t.Errorf("undone by %+v", child)
				}
				calls := len(b.world.Calls())
				if again := b.undo(done.ID, unwanted); again.Status != out.Status || len(b.world.Calls()) != calls {
					t.Errorf("asked again: %s with %d calls", again.Status, len(b.world.Calls())-calls)
				}
				b.worked(6 * time.Hour)
				if rec := b.state(done.ID); rec.Status() != c.want {
					t.Errorf("hours later it is %s%s", rec.Phase(), b.life(done.ID))
				}
			})
		})
	}
}

// The reviewer of a failed undo sees which field blocks it, on the write and on its undo.
func TestAFailedUndoingNamesTheField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		done := b.do(compensable(order("A-1", intent.Create)))
		b.edit(intent.Fields{"currency": "CHF"})
		out := b.undo(done.ID, unwanted)
		const want = "does not hold: /currency"
		for what, text := range map[string]string{"the write": out.Text, "its undoing": engine.OutcomeOf(b.state(out.Undoing)).Text} {
			if out.Status != ledger.StatusReview || !strings.Contains(text, want) || strings.Contains(text, "CHF") {
				t.Errorf("%s: %s, %q; want %q, and no text of the destination", what, out.Status, text, want)
			}
		}
	})
}

func TestUndoIsRefused(t *testing.T) {
	other := order("A-2", intent.Delete)
	for name, c := range map[string]struct {
		begin  func(b *bench) ledger.ID
		u      engine.Undoing
		err    error
		reason string
	}{
		"nobody":         {func(b *bench) ledger.ID { return b.do(compensable(order("A-1", intent.Create))).ID }, engine.Undoing{Reason: "x"}, nil, "an undo needs a name"},
		"no reason":      {func(b *bench) ledger.ID { return b.do(compensable(order("A-1", intent.Create))).ID }, engine.Undoing{By: "ada"}, nil, "and a reason"},
		"not to be":      {func(b *bench) ledger.ID { return b.do(order("A-1", intent.Create)).ID }, unwanted, engine.ErrNotWaiting, "it is a pivot"},
		"not there":      {func(*bench) ledger.ID { return "wr_none" }, unwanted, ledger.ErrNotFound, "there is no such write"},
		"another record": {func(b *bench) ledger.ID { return b.do(compensable(order("A-1", intent.Create))).ID }, engine.Undoing{By: "ada", Reason: "x", Intent: &other}, intent.ErrInvalid, "it would undo something else"},
		"held": {func(b *bench) ledger.ID {
			w := compensable(order("A-1", intent.Create))
			w.Risk = intent.RiskApprove
			return b.do(w).ID
		}, unwanted, engine.ErrNotWaiting, "nothing was sent"},
		"not applied": {func(b *bench) ledger.ID {
			b.set(orders.Fault{Kind: orders.Refused, Times: 1})
			return b.do(compensable(order("A-1", intent.Create))).ID
		}, unwanted, engine.ErrNotWaiting, "nothing was written"},
		"what a step does itself": {func(b *bench) ledger.ID { return b.delegated(ledger.Event{Kind: ledger.EvDelegated}).ID }, unwanted, engine.ErrNotWaiting, "the engine does not know what it did"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				id := c.begin(b)
				before, _ := b.ledger.Get(t.Context(), "acme", id)
				out, err := b.engine.Undo(t.Context(), "acme", id, c.u)
				if err == nil || c.err != nil && !errors.Is(err, c.err) {
					t.Fatalf("%+v, %v, want %v: %s", out, err, c.err, c.reason)
				}
				after, _ := b.ledger.Get(t.Context(), "acme", id)
				after.Now = before.Now
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("refused, and yet %s", diff)
				}
			})
		})
	}
}

// A state that existed before the write is not ours to undo.
func TestNothingOfOursIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.seed(asStored("A-1"), "")
		time.Sleep(time.Minute)
		done := b.do(compensable(order("A-1", intent.Upsert)))
		out := b.undo(done.ID, unwanted)
		if out.Status != ledger.Verified || out.Sends != 0 || len(b.world.Records("A-1")) != 1 || b.state(done.ID).Child != "" {
			t.Errorf("%+v%s", out, b.life(done.ID))
		}
	})
}

// A caller's own undo is under the same conditions.
func TestUndoAsStated(t *testing.T) {
	cancel := order("A-1", intent.Update)
	cancel.Expect = intent.Fields{"currency": "VOID"}
	for name, changed := range map[string]bool{"as we left it": false, "changed since": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				done := b.do(compensable(order("A-1", intent.Create)))
				want, left := ledger.Compensated, "VOID"
				if changed {
					b.edit(intent.Fields{"amount_cents": jsonNumber(7)})
					want, left = ledger.StatusReview, "USD"
				}
				how := cancel
				out := b.undo(done.ID, engine.Undoing{By: "ada", Reason: "x", Intent: &how})
				if got := b.fieldsNow()["currency"]; out.Status != want || got != left {
					t.Errorf("%s with %v%s%s", out.Status, got, b.life(done.ID), b.life(out.Undoing))
				}
				if again := b.undo(done.ID, engine.Undoing{By: "ada", Reason: "x", Intent: &how}); again.Status != want {
					t.Errorf("again: %s", again.Status)
				}
				how.Expect = intent.Fields{"currency": "GONE"}
				var mismatch *ledger.DigestMismatchError
				if out, err := b.engine.Undo(t.Context(), "acme", done.ID, engine.Undoing{By: "ada", Reason: "x", Intent: &how}); !errors.As(err, &mismatch) {
					t.Errorf("another way: %+v, %v", out, err)
				}
			})
		})
	}
}

func TestManyUndoingsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		done := b.do(compensable(order("A-1", intent.Create)))
		time.Sleep(time.Hour)
		engines := []*engine.Engine{b.engine, b.newEngine(nil), b.newEngine(nil)}
		var wg sync.WaitGroup
		for n := range 24 {
			wg.Go(func() {
				out, err := engines[n%len(engines)].Undo(t.Context(), "acme", done.ID, unwanted)
				if err != nil || out.Status != ledger.Compensated {
					t.Errorf("%+v, %v", out, err)
				}
			})
		}
		wg.Wait()
		deletes := strings.Count(strings.Join(opNames(b.ops()), " "), "delete")
		events, err := b.ledger.Events(t.Context(), "acme", done.ID)
		begun := 0
		for _, e := range events {
			if e.Kind == ledger.EvCompensating {
				begun++
			}
		}
		if err != nil || deletes != 1 || begun != 1 || b.fieldsNow() != nil {
			t.Errorf("%d deletes, begun %d times, %v%s", deletes, begun, err, b.life(done.ID))
		}
	})
}

func opNames(ops []orders.Op) (names []string) {
	for _, op := range ops {
		names = append(names, string(op))
	}
	return names
}

// A settled write has left its queue. Its undo takes its own place there, so that neither
// overtakes the other.
func TestUndoWaitsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.seed(seeded, "")
		time.Sleep(time.Minute)
		done := b.do(compensable(order("A-1", intent.Update)))
		next := call(order("A-1", intent.Update), 1)
		next.Expect = intent.Fields{"amount_cents": jsonNumber(1999), "currency": "CHF"}
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 20})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if out, err := b.engine.Do(ctx, next); err != nil || out.Status != ledger.InProgress {
			t.Fatalf("%+v, %v: want it open", out, err)
		}
		out := b.undo(done.ID, unwanted)
		child := b.state(out.Undoing)
		if out.Status != ledger.StatusReview || child.Settlement != ledger.NotApplied || b.fieldsNow()["currency"] != "CHF" {
			t.Errorf("%s: the later write was overtaken, %v%s%s", out.Status, b.fieldsNow(), b.life(done.ID), b.life(child.ID))
		}
		events, err := b.ledger.Events(t.Context(), "acme", child.ID)
		if err != nil || events[0].QueuedBehind == "" {
			t.Errorf("the undoing did not wait in the queue: %v%s", err, b.life(child.ID))
		}
	})
}

// A late arrival after the undo is found by the recheck, and is not attributed to the undo.
func TestLateDuplicateOfAnUndoneWriteIsDetected(t *testing.T) {
	for name, stamps := range map[string]bool{"with stamps": true, "without stamps": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Stamps = stamps
				b := newBench(t, o, nil)
				b.set(orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 3 * time.Hour, Times: 1})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				done, err := b.engine.Do(ctx, compensable(order("A-1", intent.Create)))
				if err != nil || done.Status != ledger.Verified || done.Sends != 2 {
					t.Fatalf("%+v, %v%s", done, err, b.life(done.ID))
				}
				if out := b.undo(done.ID, unwanted); out.Status != ledger.Compensated {
					t.Fatalf("%+v%s", out, b.life(done.ID))
				}
				b.worked(100 * time.Hour)
				if got := b.state(done.ID); got.State != ledger.Review || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%s%s", got.Phase(), b.life(done.ID))
				}
			})
		})
	}
}

// A destination that duplicates records by itself does so even when they are undone meanwhile: the
// recheck is made all the same.
func TestADestinationsDuplicateOfAnUndoneWriteIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Recheck = connectors.Within(2 * time.Hour)
		b := newBench(t, o, nil)
		b.set(orders.Fault{Kind: orders.DuplicateByOthers, Ops: []orders.Op{orders.OpCreate}, Delay: 90 * time.Minute, Times: 1})
		done := b.do(compensable(order("A-1", intent.Create)))
		time.Sleep(time.Hour)
		if out := b.undo(done.ID, unwanted); out.Status != ledger.Compensated {
			t.Fatalf("%+v%s", out, b.life(done.ID))
		}
		b.worked(100 * time.Hour)
		if got := b.state(done.ID); got.State != ledger.Review || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%s with %d records%s", got.Phase(), len(b.world.Records("A-1")), b.life(done.ID))
		}
	})
}
