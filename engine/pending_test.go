package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// A verified outcome states until when a recheck can still contradict it, and no longer does
// after the last recheck.
func TestAnOutcomeSaysUntilWhenARecheckIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		until := b.state(out.ID).LastSend.Add(24 * time.Hour)
		for range 2 { // after the first of two rechecks it is the same
			for _, text := range []string{out.Text, out.ForModel} {
				if out.Status != ledger.Verified || !out.RecheckUntil.Equal(until) || !strings.Contains(text, "until "+until.Format(time.RFC3339)) {
					t.Fatalf("%s until %s, %q; want verified, and a recheck pending until %s", out.Status, out.RecheckUntil, text, until)
				}
			}
			b.work(time.Hour)
			out = engine.OutcomeOf(b.state(out.ID))
		}
		b.work(24 * time.Hour)
		out = engine.OutcomeOf(b.state(out.ID))
		if !out.RecheckUntil.IsZero() || strings.Contains(out.Text+out.ForModel, "pending") {
			t.Errorf("until %s, %q after the last recheck; want nothing pending%s", out.RecheckUntil, out.Text, b.life(out.ID))
		}
	})
}

// A recheck that was not made in time is overdue, and a record that others changed since is not
// called "as declared".
func TestAnOutcomeDoesNotContradictItsRechecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		out := b.do(order("A-1", intent.Create))
		b.edit(intent.Fields{"currency": "EUR"})
		time.Sleep(2 * time.Hour)
		out = engine.OutcomeOf(b.state(out.ID))
		if strings.Contains(out.Text+out.ForModel, "pending") || !strings.Contains(out.Text, "to be checked again by "+out.RecheckUntil.Format(time.RFC3339)) {
			t.Errorf("not rechecked: %q, %q", out.Text, out.ForModel)
		}
		b.work(time.Minute)
		out = engine.OutcomeOf(b.state(out.ID))
		if out.Status != ledger.Verified || !strings.HasSuffix(out.Text, "was as requested. A later read found it changed: the record was as requested, and was changed since (1 field differs from what was expected: /currency).") ||
			!strings.Contains(out.ForModel, "the record was changed since") {
			t.Errorf("others changed it: %s, %q, %q%s", out.Status, out.Text, out.ForModel, b.life(out.ID))
		}
	})
}

// rolledBack is a verified write whose effect the destination reverts after ten minutes, and
// that is rechecked after an hour.
func rolledBack(t *testing.T) (*bench, engine.Outcome) {
	o := orders.Unique.Options()
	o.Recheck = connectors.Within(time.Hour)
	b := newBench(t, o, nil)
	b.set(orders.Fault{Kind: orders.Rollback, Delay: 10 * time.Minute, Times: 1})
	out := b.do(order("A-1", intent.Create))
	if out.Status != ledger.Verified {
		t.Fatalf("%+v%s", out, b.life(out.ID))
	}
	return b, out
}

// A recheck whose read fails is repeated within seconds: an effect that it would have found
// missing must not be called verified for minutes more.
func TestAFailedRecheckIsMadeAgainAtThePaceOfFirstReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := rolledBack(t)
		b.work(30 * time.Minute)
		b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 5})
		b.work(30*time.Minute + 10*time.Second)                                   // the worker asks every five seconds
		if got := b.state(out.ID); got.State != ledger.Review || got.Reads != 8 { // the last asks twice: the list does not have it
			t.Errorf("%s after %d reads, due %s; want review after five reads that failed and one that did not%s", got.Phase(), got.Reads, got.Due, b.life(out.ID))
		}
	})
}

// A caller that must act on the final outcome waits for the recheck too.
func TestWaitFinalWaitsForTheRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := rolledBack(t)
		if now, err := b.engine.Wait(t.Context(), "acme", out.ID, true); err != nil || now.Status != ledger.Verified {
			t.Errorf("%+v, %v; Wait returns what is settled", now, err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if now, err := b.engine.WaitFinal(short, "acme", out.ID, true); err != nil || now.Status != ledger.Verified || now.RecheckUntil.IsZero() {
			t.Errorf("%+v, %v; want the outcome so far, and until when a recheck is pending", now, err)
		}
		if last, err := b.engine.WaitFinal(t.Context(), "acme", out.ID, true); err != nil || last.Status != ledger.StatusReview {
			t.Errorf("%+v, %v; want the review that the recheck led to%s", last, err, b.life(out.ID))
		}
	})
}

// A subscriber gets an outcome with a pending recheck, and then the final one.
func TestSubscribersHearOfAFlip(t *testing.T) {
	for _, rollback := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := orders.Unique.Options()
			o.Recheck = connectors.Within(time.Hour)
			b := newBench(t, o, nil)
			want := []ledger.Status{ledger.Verified, ledger.Verified}
			if rollback {
				b.set(orders.Fault{Kind: orders.Rollback, Delay: 10 * time.Minute, Times: 1})
				want[1] = ledger.StatusReview
			}
			id := b.enqueue(order("A-1", intent.Create))
			go b.work(2 * time.Hour)
			var statuses []ledger.Status
			for out, err := range b.engine.Subscribe(t.Context(), "acme", id) {
				if err != nil || out.RecheckUntil.IsZero() != (len(statuses) == 1) {
					t.Errorf("%+v, %v as number %d", out, err, len(statuses)+1)
				}
				statuses = append(statuses, out.Status)
			}
			if !slices.Equal(statuses, want) {
				t.Errorf("statuses %q, want %q", statuses, want)
			}
		})
	}
}

// In a backlog minutes pass between two reads of a write. Two failed reads are no reason for a
// review.
func TestTwoFailedReadsInABacklogAreNoReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), &engine.Options{Patience: time.Nanosecond}) // one read each time
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		id := b.enqueue(order("A-1", intent.Create))
		for reads := range 3 {
			if reads == 2 {
				b.world.Clear()
			}
			_, err := b.engine.Resume(t.Context())
			if got := b.state(id); err != nil || got.Reads != reads+1 || got.State == ledger.Review {
				t.Fatalf("%v, %s after %d reads%s", err, got.Phase(), got.Reads, b.life(id))
			}
			time.Sleep(10 * time.Minute)
		}
		if got := b.state(id); got.Settlement != ledger.Verified {
			t.Errorf("%s; want verified by the first read that works%s", got.Phase(), b.life(id))
		}
	})
}
