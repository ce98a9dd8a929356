package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// The caller of a delayed write learns what it waits for, and until when.
func TestOutcomesSayWhatTheyWaitFor(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	due := now.Add(time.Minute)
	rec := func(change func(*ledger.Record)) ledger.Record {
		r := ledger.Record{ID: "wr_1", Kind: "order", Destination: "orders", State: ledger.Queued, Now: now, Due: due}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		rec  ledger.Record
		want engine.Waiting
		says string
	}{
		"login":       {rec(func(r *ledger.Record) { r.Rule = "login" }), engine.WaitsLogin, "accepts our login again"},
		"breaker":     {rec(func(r *ledger.Record) { r.Rule = "breaker" }), engine.WaitsBreaker, "sends to the destination fail"},
		"stopped":     {rec(func(r *ledger.Record) { r.Rule = "stopped" }), engine.WaitsStopped, "an operator stopped sends"},
		"unreachable": {rec(func(r *ledger.Record) { r.State, r.Sends, r.Unsent, r.LastFate = ledger.Checking, 1, 1, "not_sent" }), engine.WaitsDestination, "throttled the send; it is tried again"},
		"login, without guards": {rec(func(r *ledger.Record) {
			r.State, r.Sends, r.Unsent, r.LastFate = ledger.Checking, 1, 1, "login_refused"
		}), engine.WaitsLogin, "accepts our login again"},
		"unreadable before": {rec(func(r *ledger.Record) { r.Rule = "pre-state" }), engine.WaitsDestination, "throttled the send; it is tried again"},
		"crash":             {rec(func(r *ledger.Record) { r.State, r.Owner, r.LeaseUntil = ledger.Sending, "w", now.Add(-time.Second) }), engine.WaitsRecovery, "may have sent it has ended"},
		"overdue":           {rec(func(r *ledger.Record) { r.Due = now.Add(-time.Hour) }), "", "under way"},
		"in work":           {rec(func(r *ledger.Record) { r.State, r.Owner, r.LeaseUntil = ledger.Sending, "w", due }), "", "under way: it is being sent"},
		"queued behind":     {rec(func(r *ledger.Record) { r.QueuedBehind = "wr_0" }), engine.WaitsQueue, "wr_0"},
		"unreadable after": {rec(func(r *ledger.Record) {
			r.State, r.Sends, r.LastFate, r.Verdict, r.Unproven = ledger.Checking, 1, "unknown", "unavailable", 2
		}), engine.WaitsDestination, "could not be reached"},
		"unreadable, being read": {rec(func(r *ledger.Record) {
			r.State, r.Sends, r.LastFate, r.Verdict, r.Unproven = ledger.Checking, 1, "unknown", "unavailable", 2
			r.Owner, r.LeaseUntil = "w", due
		}), engine.WaitsDestination, "could not be reached"},
		"login refused after": {rec(func(r *ledger.Record) {
			r.State, r.Sends, r.LastFate, r.Verdict, r.Unproven, r.Rule = ledger.Checking, 1, "answered", "unavailable", 2, "login"
		}), engine.WaitsLogin, "accepts our login again"},
		"answered, and held": {rec(func(r *ledger.Record) {
			r.State, r.Sends, r.LastFate, r.Rule = ledger.Checking, 1, "answered", "breaker"
		}), "", "under way: it is being verified"},
	} {
		t.Run(name, func(t *testing.T) {
			out, due := engine.OutcomeOf(c.rec), due
			if out.WaitsFor != c.want || !strings.Contains(out.Text, c.says) || out.AskAgain != engine.AgainLater {
				t.Errorf("waits for %q, %q, ask again %s; want %q and %q", out.WaitsFor, out.Text, out.AskAgain, c.want, c.says)
			}
			if c.rec.Due.Before(now) {
				due = now // ask_after is never in the past
			}
			if c.rec.QueuedBehind == "" && !out.AskAfter.Equal(due) || out.QueuedBehind != c.rec.QueuedBehind {
				t.Errorf("ask after %s, behind %q; want %s, %q", out.AskAfter, out.QueuedBehind, due, c.rec.QueuedBehind)
			}
			if c.want != "" && c.rec.QueuedBehind == "" && !strings.Contains(out.ForModel, c.says) {
				t.Errorf("the model reads %q, want %q in it", out.ForModel, c.says)
			}
		})
	}
}

// A write queued behind one in review waits for the reviewer.
func TestOutcomeBehindAReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
		first := b.do(order("A-1", intent.Create))
		out := b.do(call(order("A-1", intent.Update), 2))
		if first.Status != ledger.StatusReview || out.WaitsFor != engine.WaitsReviewer || out.QueuedBehind != first.ID || !strings.Contains(out.Text, "A reviewer must decide") {
			t.Errorf("%s, then %+v", first.Status, out)
		}
		for n := range 2 { // the second is queued behind the first
			third := b.enqueue(call(order("A-1", intent.Update), 3+n))
			got := engine.OutcomeIn(t.Context(), b.ledger, b.state(third))
			if got.WaitsFor != engine.WaitsReviewer || got.QueuedBehind != first.ID || !strings.Contains(got.ForModel, "A reviewer must decide") {
				t.Errorf("read: %+v", got)
			}
		}
	})
}
