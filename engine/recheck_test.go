package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// A change or removal by a later write of ours raises no alarm. A change by another actor, or a
// duplicate, does.
func TestRecheckKnowsLaterWritesOfOurs(t *testing.T) {
	declared, undeclared := connectors.Within(time.Hour), connectors.Bound{}
	for name, c := range map[string]struct {
		recheck connectors.Bound
		then    func(*bench)
		review  bool
		reason  string
	}{
		"nothing happens":                                {declared, func(*bench) {}, false, "the outcome stays"},
		"we removed it":                                  {declared, func(b *bench) { b.do(wish("A-1", 1, intent.Delete)) }, false, "our delete was verified"},
		"we removed it, no recheck declared":             {undeclared, func(b *bench) { b.do(wish("A-1", 1, intent.Delete)) }, false, "found among all that came since"},
		"we changed it":                                  {declared, func(b *bench) { b.do(wish("A-1", 1, intent.Update)) }, false, "our update was verified"},
		"we changed it, another actor removed it":        {declared, func(b *bench) { b.do(wish("A-1", 1, intent.Update)); b.remove("A-1") }, true, "an update removes nothing"},
		"we changed it, it is gone, no recheck declared": {undeclared, func(b *bench) { b.do(wish("A-1", 1, intent.Update)); b.remove("A-1") }, true, "an update removes nothing"},
		"we removed and made it anew":                    {undeclared, func(b *bench) { b.do(wish("A-1", 1, intent.Delete)); b.do(wish("A-1", 2, intent.Create)) }, false, "ours all along"},
		"another actor removed it":                       {declared, func(b *bench) { b.remove("A-1") }, true, "none of our writes did"},
		"another actor removed it, no recheck declared":  {undeclared, func(b *bench) { b.remove("A-1") }, true, "none of our writes did"},
		"we touched another, theirs is gone":             {undeclared, func(b *bench) { b.do(wish("A-2", 1, intent.Create)); b.remove("A-1") }, true, "that was about another record"},
		"ours was not applied": {undeclared, func(b *bench) {
			b.set(orders.Fault{Kind: orders.Refused, Times: 1})
			b.do(wish("A-1", 1, intent.Update))
			b.remove("A-1")
		}, true, "that changed nothing"},
		"duplicated, and changed by us": {undeclared, func(b *bench) {
			b.do(wish("A-1", 1, intent.Update))
			b.seed(asStored("A-1"), order("A-1", intent.Create).Stamp())
		}, true, "no write of ours makes two"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Recheck = c.recheck
				b := newBench(t, o, nil)
				b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.Verified || b.state(out.ID).Due.IsZero() {
					t.Fatalf("%+v, due %s%s", out, b.state(out.ID).Due, b.life(out.ID))
				}
				b.world.Clear()
				c.then(b)
				b.work(3 * time.Hour)
				if got := b.state(out.ID); (got.State == ledger.Review) != c.review {
					t.Errorf("%s: %s%s", got.Phase(), c.reason, b.life(out.ID))
				}
				events, err := b.ledger.Events(t.Context(), "acme", out.ID)
				named := slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Later != "" && e.Later != out.ID })
				if ours := strings.HasPrefix(name, "we removed"); err != nil || named != (ours || name == "we changed it") {
					t.Errorf("the later write is named: %v, %v%s", named, err, b.life(out.ID))
				}
			})
		})
	}
}

// A ledger's clock that was set back does not move, and both writes are sent at the same time.
func TestRecheckKnowsLaterWritesOfOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		step := b.steps()
		b.do(order("A-0", intent.Create))
		step(-time.Hour)
		first := b.do(order("A-1", intent.Create))
		second := b.do(wish("A-1", 1, intent.Delete))
		third := b.do(wish("A-1", 2, intent.Create))
		if at := b.state(first.ID).FirstSend; !at.Equal(b.state(second.ID).FirstSend) || !at.Equal(b.state(third.ID).FirstSend) {
			t.Fatal("the clock did not stop")
		}
		b.remove("A-1")
		b.work(5 * time.Hour)
		if got := b.state(first.ID); got.State != ledger.Settled {
			t.Errorf("what was deleted later: %s%s", got.Phase(), b.life(first.ID))
		}
		if got := b.state(third.ID); got.State != ledger.Review {
			t.Errorf("what was deleted earlier, and is gone: %s%s", got.Phase(), b.life(third.ID))
		}
	})
}

func (b *bench) remove(id string) {
	b.t.Helper()
	for _, r := range b.world.Records(id) {
		if err := b.world.Remove(r.ID); err != nil {
			b.t.Fatal(err)
		}
	}
}

// A write that a stalled send may have duplicated is rechecked twice: soon, and when no process
// can have stalled that long.
func TestPossibleDuplicatesAreReadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{Recheck: time.Minute})
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		sent := b.state(out.ID).LastSend
		for _, want := range []time.Duration{time.Minute, 24 * time.Hour, 0} {
			rec := b.state(out.ID)
			if want == 0 {
				if !rec.Due.IsZero() {
					t.Errorf("due %s after the last recheck", rec.Due)
				}
				break
			}
			if in := rec.Due.Sub(sent); in < want || in > want+time.Second {
				t.Errorf("rechecked %s after the send, want %s", in, want)
			}
			b.work(want + time.Minute)
		}
	})
}

// A recheck that cannot be made sends nothing: a later write may have changed the record since.
// One that fails once is repeated, however late it is due.
func TestRecheckThatCannotBeMadeSendsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		recheck, unreadable time.Duration
		review              bool
		reason              string
	}{
		"at one moment":          {2 * time.Hour, 10 * time.Second, false, "the next read finds nothing against it"},
		"at one moment, days on": {96 * time.Hour, 10 * time.Second, false, "the next read finds nothing against it"},
		"for days":               {2 * time.Hour, 100 * time.Hour, true, "a reviewer is notified, and decides"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Unique.Options()
				o.Recheck = connectors.Within(c.recheck)
				b := newBench(t, o, nil)
				first := wish("A-1", 0, intent.Upsert)
				first.OnMismatch = intent.MismatchRetry
				out := b.do(first)
				if later := b.do(wish("A-1", 1, intent.Upsert)); later.Status != ledger.Verified {
					t.Fatalf("%+v%s", later, b.life(later.ID))
				}
				time.Sleep(c.recheck - time.Minute)
				b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 1 << 20})
				b.work(time.Minute + c.unreadable)
				b.world.Clear()
				b.work(300 * time.Hour)
				got, records := b.state(out.ID), b.world.Records("A-1")
				if got.Sends != 1 || len(records) != 1 || records[0].Fields["amount_cents"] != jsonNumber(1001) {
					t.Errorf("sent %d times, %+v; want the later wish there%s", got.Sends, records, b.life(out.ID))
				}
				if (got.State == ledger.Review) != c.review {
					t.Errorf("%s: %s%s", got.Phase(), c.reason, b.life(out.ID))
				}
			})
		})
	}
}

// An effect that appeared after "not applied" is recognised by its stamp, however many writes
// of ours came later.
func TestRecheckKnowsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{Budget: 1})
		b.set(orders.Fault{Kind: orders.LateCommit, Delay: 5 * time.Minute, Times: 1})
		first := b.do(order("A-1", intent.Create))
		second, third := b.do(wish("A-1", 2, intent.Create)), b.do(wish("A-1", 3, intent.Delete))
		if first.Status != ledger.NotApplied || second.Status != ledger.Verified || third.Status != ledger.Verified {
			t.Fatalf("%+v, %+v, %+v", first, second, third)
		}
		b.work(time.Hour)
		if got := b.state(first.ID); len(b.world.Records("A-1")) != 1 || got.State != ledger.Review {
			t.Errorf("%s%s", got.Phase(), b.life(first.ID))
		}
	})
}

// A verified create that a late send duplicated goes to a reviewer, and both records stay, even
// where the intent asks to undo a mismatch.
func TestADuplicateStaysForTheReviewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.LateCommit, Delay: 5 * time.Minute, Times: 1})
		out := b.do(undoable(order("A-1", intent.Create)))
		if out.Status != ledger.Verified || out.Sends != 2 {
			t.Fatalf("setup: %+v%s", out, b.life(out.ID))
		}
		b.work(100 * time.Hour)
		got, records := b.state(out.ID), b.world.Records("A-1")
		if got.State != ledger.Review || got.Verdict != verify.Duplicated.String() || len(records) != 2 {
			t.Errorf("%s, %q, with %d records%s", got.Phase(), got.Verdict, len(records), b.life(out.ID))
		}
	})
}

// A much later recheck for the destination does not postpone the recheck for a possible
// duplicate.
func TestRechecksDoNotPutEachOtherOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Recheck = connectors.Within(96 * time.Hour)
		b := newBench(t, o, &engine.Options{Recheck: 10 * time.Minute})
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		sent := b.state(out.ID).LastSend
		for _, want := range []time.Duration{10 * time.Minute, 24 * time.Hour, 96 * time.Hour} {
			if in := b.state(out.ID).Due.Sub(sent); in < want || in > want+time.Second {
				t.Errorf("rechecked %s after the send, want %s", in, want)
			}
			b.work(time.Until(sent.Add(want + time.Minute)))
		}
		if rec := b.state(out.ID); !rec.Due.IsZero() || rec.State != ledger.Settled {
			t.Errorf("%s, due %s after the last recheck", rec.Phase(), rec.Due)
		}
	})
}

// A worker that takes over an announced write schedules two rechecks, even where the repeat was
// harmless: the process that announced it may only be stalled.
func TestATakeoverSchedulesRechecks(t *testing.T) {
	for _, class := range orders.Classes() {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, class.Options(), &engine.Options{Recheck: 10 * time.Minute})
				w := order("A-1", intent.Create)
				rec, err := ledger.NewRecord(w)
				if err != nil {
					t.Fatal(err)
				}
				announced := ledger.Event{Kind: ledger.EvAnnounced, SendFor: time.Minute}
				if _, _, err = b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec, Events: []ledger.Event{announced}, Owner: "stops", LeaseFor: time.Minute}); err != nil {
					t.Fatal(err)
				}
				out := b.do(w)
				got := b.state(out.ID)
				if in := got.Due.Sub(got.LastSend); out.Status != ledger.Verified || in < 10*time.Minute {
					t.Fatalf("%s, to be read %s after the send%s", out.Status, in, b.life(out.ID))
				}
				b.work(time.Hour)
				if in := b.state(out.ID).Due.Sub(got.LastSend); in < 24*time.Hour {
					t.Errorf("after the first recheck: %s after the send%s", in, b.life(out.ID))
				}
				b.work(24 * time.Hour)
				if got = b.state(out.ID); !got.Due.IsZero() || got.State != ledger.Settled {
					t.Errorf("after the last: %s, due %s%s", got.Phase(), got.Due, b.life(out.ID))
				}
			})
		})
	}
}

// reads counts the records that a ledger returns in lists and searches.
type reads struct {
	*ledger.Memory
	records atomic.Int64
}

func (r *reads) List(ctx context.Context, f ledger.Filter) ([]ledger.Record, error) {
	found, err := r.Memory.List(ctx, f)
	r.records.Add(int64(len(found)))
	return found, err
}

func (r *reads) Find(ctx context.Context, s ledger.Search) (ledger.SearchResult, error) {
	found, err := r.Memory.Find(ctx, s)
	r.records.Add(int64(len(found.Records)))
	return found, err
}

// The explanation of an alarm is searched by the record's key: other writes of the tenant are
// not read.
func TestAnAlarmReadsTheWritesOfItsRecordAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		l := &reads{Memory: b.ledger}
		b.engine = b.engineOn(l, b.world.Destination(), nil)
		out := b.do(order("A-1", intent.Create))
		b.do(wish("A-1", 1, intent.Update))
		for n := range 20 {
			b.do(order(fmt.Sprint("B-", n), intent.Create))
		}
		b.remove("A-1")
		time.Sleep(time.Hour - time.Minute)
		l.records.Store(0)
		b.work(2 * time.Minute)
		if got, read := b.state(out.ID), l.records.Load(); got.State != ledger.Review || read > 4 {
			t.Errorf("%s after %d records were read; want review, and each of the two writes of the record read for each alarm%s", got.Phase(), read, b.life(out.ID))
		}
	})
}

// slowFind is a ledger with slow searches.
type slowFind struct {
	*ledger.Memory
	took time.Duration
}

func (s slowFind) Find(ctx context.Context, f ledger.Search) (ledger.SearchResult, error) {
	time.Sleep(s.took)
	return s.Memory.Find(ctx, f)
}

// A search through many later writes of a record, of which none explains an alarm, takes longer
// than a lease, and its worker keeps the write.
func TestALeaseIsRenewedWhileLaterWritesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		b.engine = b.engineOn(slowFind{b.ledger, 20 * time.Second}, b.world.Destination(), nil)
		out := b.do(order("A-1", intent.Create))
		for n := range 1001 { // six pages of 200
			rec, err := ledger.NewRecord(wish("A-1", n, intent.Update))
			if err == nil {
				rec, _, err = b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "w", LeaseFor: time.Minute})
			}
			if err == nil {
				_, err = b.ledger.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.remove("A-1")
		before := b.state(out.ID).Fence
		time.Sleep(time.Hour - time.Minute)
		b.work(5 * time.Minute)
		once := before + 1
		if *dispatching {
			once++ // a fence of the dispatch, and one of the work
		}
		if got := b.state(out.ID); got.State != ledger.Review || got.Fence != once {
			t.Errorf("%s after it was taken up %d times; want review after one%s", got.Phase(), got.Fence-before, b.life(out.ID))
		}
	})
}

// A later write whose intent cannot be read explains no alarm: a needless one is better than none.
func TestAWriteThatCannotBeReadExplainsNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		out := b.do(order("A-1", intent.Create))
		time.Sleep(time.Minute)
		rec, err := ledger.NewRecord(wish("A-1", 1, intent.Delete))
		if err != nil {
			t.Fatal(err)
		}
		rec.Intent = []byte(`{"write":"delete","of_another_version":true}`)
		later, _, err := b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "w", LeaseFor: time.Minute, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}})
		if err == nil {
			_, err = b.ledger.Append(t.Context(), rec.ID, later.Fence, ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered},
				ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Effect: true}, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.remove("A-1")
		b.work(2 * time.Hour)
		if got := b.state(out.ID); got.State != ledger.Review {
			t.Errorf("%s: %s%s", got.Phase(), got.Reason, b.life(out.ID))
		}
	})
}
