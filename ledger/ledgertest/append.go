package ledgertest

import (
	"context"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

var appending = map[string]scenario{
	"a life": {
		"the end state of the record is what was promised, not only the answer",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(time.Second)
			rec = h.append(rec, sent, missing)
			h.sleep(time.Second)
			rec = h.append(rec, seen, verified)
			h.same(rec, h.get(rec))
			if rec.State != ledger.Settled || rec.Settlement != ledger.Verified || rec.Reads != 2 || rec.Sends != 1 ||
				rec.Ref != "17" || rec.Owner != "" || rec.SettledAt.IsZero() || !rec.SettledAt.After(rec.Created) {
				h.Errorf("got %+v", rec)
			}
			var kinds []ledger.EventKind
			for _, e := range h.events(rec) {
				kinds = append(kinds, e.Kind)
			}
			want := []ledger.EventKind{ledger.EvReserved, ledger.EvAnnounced, ledger.EvSent, ledger.EvRead, ledger.EvRead, ledger.EvSettled}
			if diff := cmp.Diff(want, kinds); diff != "" {
				h.Errorf("events (-want +got):\n%s", diff)
			}
		},
	},
	"stamps": {
		"number, time and fence of an event are the ledger's, whatever the caller wrote there",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			forged := sent
			forged.Seq, forged.Fence, forged.At = 99, 99, time.Unix(99, 0)
			rec = h.append(rec, forged, seen)
			for i, e := range h.events(rec) {
				if e.Seq != int64(i)+1 || e.Fence != rec.Fence || e.At.Before(rec.Created) || e.At.After(rec.Now) {
					h.Errorf("event %d: seq %d, fence %d, at %s", i+1, e.Seq, e.Fence, e.At)
				}
			}
		},
	},
	"renewed": {
		"a lease that is renewed shows the ledger's clock as it is now: the caller counts time by it",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(time.Minute)
			if now := h.append(rec).Now; now.Sub(rec.Now) < time.Minute-time.Second {
				h.Errorf("a minute later the clock shows %s, before that %s", now, rec.Now)
			}
		},
	},
	"stale fence": {
		"a worker that lost its lease changes nothing",
		func(h *harness) {
			old := h.fresh(wish("a", "w1"), announced)
			h.sleep(lease + time.Minute)
			rec := h.taken(old, ledger.Claim{})
			h.refused(ledger.ErrFenced, rec, old.Fence, sent)
			h.refused(ledger.ErrFenced, rec, old.Fence)
			h.refused(ledger.ErrFenced, rec, rec.Fence+1, sent)
			h.refused(ledger.ErrFenced, rec, 0, sent)
			h.append(rec, ledger.Event{Kind: ledger.EvRecovered})
		},
	},
	"lease over, no takeover": {
		"a slow worker may finish while no other has taken over",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(2 * lease)
			h.append(rec, sent)
			h.nothing(ledger.Claim{})
		},
	},
	"illegal": {
		"an event that is not legal changes nothing",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, sent)
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, ledger.Event{Kind: "invented"})
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, verified)
			h.append(rec, announced)
		},
	},
	"last one illegal": {
		"a batch is applied whole or not at all",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, announced, sent, seen, verified, announced)
			h.append(rec, announced, sent, seen, verified)
		},
	},
	"unknown": {
		"a write that is not there is named as such",
		func(h *harness) {
			if _, err := h.ledger.Append(context.Background(), ledger.IDOf("0"), 1, sent); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("error %v, want not found", err)
			}
		},
	},
	"unknown fate stays": {
		"a later definite failure does not make an earlier send certain",
		func(h *harness) {
			again := announced
			rec := h.append(h.fresh(wish("a", "w1"), announced), ledger.Event{Kind: ledger.EvSent},
				missing, again, ledger.Event{Kind: ledger.EvSent, Fate: "refused"})
			if !rec.Unknown || rec.Answered || rec.Sends != 2 || rec.LastFate != "refused" {
				h.Errorf("unknown %v, answered %v, sends %d, last fate %q", rec.Unknown, rec.Answered, rec.Sends, rec.LastFate)
			}
		},
	},
	"cancelled": {
		"a caller that gave up before it began hears so, and has changed nothing",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"))
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := h.ledger.Append(ctx, rec.ID, rec.Fence, announced); !errors.Is(err, context.Canceled) {
				h.Errorf("error %v, want cancelled", err)
			}
			h.same(rec, h.get(rec))
		},
	},
}

// ownChange are the fields that a late event itself changes.
var ownChange = []string{"Seq", "Updated"}

var late = map[string]scenario{
	"kept": {
		"what a fenced-out worker learned is evidence, and decides nothing",
		func(h *harness) {
			old := h.fresh(wish("a", "w1"), announced)
			h.sleep(lease + time.Minute)
			rec := h.append(h.taken(old, ledger.Claim{}), ledger.Event{Kind: ledger.EvRecovered}, missing)
			ev := ledger.Event{
				Kind: ledger.EvLate, By: "one", Fate: ledger.FateAnswered, Ref: "99", Verdict: "verified",
				Reason: "answered 201", Evidence: []byte(`{"id": "99"}`),
			}
			after, err := h.ledger.Append(context.Background(), old.ID, old.Fence, ev)
			if err != nil {
				h.Fatal(err)
			}
			h.same(rec, after, ownChange...)
			h.same(after, h.get(rec))
			events := h.events(rec)
			got := events[len(events)-1]
			want := ev
			want.Seq, want.Fence = rec.Seq+1, old.Fence
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Event{}, "At")); diff != "" {
				h.Errorf("late event (-want +got):\n%s", diff)
			}
			h.append(rec, seen, verified) // the holder is not disturbed
		},
	},
	"extends nothing": {
		"a past holder does not keep the record from the next one",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(lease - time.Minute)
			h.append(rec, ledger.Event{Kind: ledger.EvLate})
			h.sleep(2 * time.Minute)
			h.taken(rec, ledger.Claim{})
		},
	},
	"settled": {
		"evidence is kept after the end as well",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, seen, verified)
			after := h.append(rec, ledger.Event{Kind: ledger.EvLate, Fate: "refused"})
			h.same(rec, after, ownChange...)
		},
	},
	"only alone": {
		"a late event is no way past the fence for others",
		func(h *harness) {
			old := h.fresh(wish("a", "w1"), announced)
			h.sleep(lease + time.Minute)
			rec := h.taken(old, ledger.Claim{})
			h.refused(ledger.ErrFenced, rec, old.Fence, ledger.Event{Kind: ledger.EvLate}, sent)
			h.refused(ledger.ErrFenced, rec, old.Fence, sent, ledger.Event{Kind: ledger.EvLate})
			h.refused(ledger.ErrFenced, rec, old.Fence, ledger.Event{Kind: ledger.EvLate}, ledger.Event{Kind: ledger.EvLate})
		},
	},
}
