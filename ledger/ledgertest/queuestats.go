package ledgertest

import (
	"context"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

func (h *harness) queueStats() ledger.QueueStats {
	h.Helper()
	s, err := h.ledger.QueueStats(context.Background())
	if err != nil {
		h.Fatalf("stats: %v", err)
	}
	return s
}

// counted compares the queues of the stats, but for their times.
func (h *harness) counted(want ...ledger.Queue) ledger.QueueStats {
	h.Helper()
	s := h.queueStats()
	if diff := cmp.Diff(want, s.Queues, cmpopts.IgnoreFields(ledger.Queue{}, "OldestDue", "OldestCreated", "Bytes")); diff != "" {
		h.Fatalf("queues (-want +got):\n%s", diff)
	}
	return s
}

var statistics = map[string]scenario{
	"empty": {
		"a ledger without work has no queues, and still returns the time",
		func(h *harness) {
			h.done("w1")
			if s := h.counted(); s.Now.IsZero() || s.Outbox != 0 || !s.Oldest.IsZero() || s.Refused != nil || s.Damaged != nil {
				h.Errorf("stats %+v", s)
			}
		},
	},
	"counts": {
		"what waits, what is in hand and what was left behind are three things",
		func(h *harness) {
			first := h.append(h.fresh(wish("a", "w1")), deferred(0))
			h.append(h.fresh(wish("a", "w2")), deferred(time.Minute))
			h.fresh(wish("a", "w3"), announced)
			line := wish("a", "w4")
			line.Key = wish("a", "w1").Key
			h.fresh(line)
			h.fresh(wish("b", "w5"), announced)
			h.append(h.fresh(wish("a", "w6"), announced), sent, escalated)
			far := wish("a", "w7")
			far.Destination = "bank"
			h.fresh(far, held)
			s := h.counted(
				ledger.Queue{Tenant: "a", Destination: "bank", State: ledger.Held, Count: 1},
				ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Queued, Count: 3, Due: 1, Waiting: 1},
				ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Review, Count: 1},
				ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Sending, Count: 1, Leased: 1},
				ledger.Queue{Tenant: "b", Destination: "shop", State: ledger.Sending, Count: 1, Leased: 1},
			)
			if q := s.Queues[1]; !q.OldestDue.Equal(first.Due) || !q.OldestCreated.Equal(first.Created) {
				h.Errorf("oldest due %s, created %s; want %s and %s", q.OldestDue, q.OldestCreated, first.Due, first.Created)
			}
			if q := s.Queues[3]; !q.OldestDue.IsZero() {
				h.Errorf("oldest due %s of what is in hand", q.OldestDue)
			}
		},
	},
	"bytes": {
		"the intents of open writes count with their size, and those of settled ones do not",
		func(h *harness) {
			h.done("w1")
			var want int64
			for _, workflow := range []string{"w2", "w3"} { // the second waits behind the first
				w := wish("a", workflow)
				w.Key = wish("a", "w2").Key
				w.Expect = intent.Fields{"state": strings.Repeat("é", 50_000)} // bytes, not characters
				rec := h.fresh(w)
				want += int64(len(rec.Intent))
			}
			h.fresh(wish("b", "w4"), held)
			var all int64
			for _, q := range h.queueStats().Queues {
				switch q.Tenant {
				case "a":
					all += q.Bytes
				case "b":
					if q.Bytes < 100 || q.Bytes > 1000 {
						h.Errorf("a held write has %d bytes", q.Bytes)
					}
				}
			}
			if all != want || want < 200_000 {
				h.Errorf("%d bytes are open, want %d", all, want)
			}
		},
	},
	"orphans": {
		"the work of a worker that died is recognised",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(2 * lease)
			s := h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Sending, Count: 1, Orphaned: 1})
			if got := s.Queues[0].OldestDue; !got.Equal(rec.Due) {
				h.Errorf("oldest due %s, want %s", got, rec.Due)
			}
			h.taken(rec, ledger.Claim{})
			h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Sending, Count: 1, Leased: 1})
		},
	},
	"handed over": {
		"what another scheduler has, and no worker, counts as due",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(2 * lease)
			rec = h.taken(rec, ledger.Claim{Owner: ledger.Dispatched})
			s := h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Sending, Count: 1, Due: 1})
			if got := s.Queues[0].OldestDue; !got.Equal(rec.Due) {
				h.Errorf("oldest due %s, want %s", got, rec.Due)
			}
			h.sleep(2 * lease)
			h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Sending, Count: 1, Due: 1})
			h.taken(rec, ledger.Claim{})
			h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Sending, Count: 1, Leased: 1})
		},
	},
	"rechecks": {
		"a settled write counts as long as it needs a read",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, seen,
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: time.Hour})
			h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Settled, Count: 1})
			h.sleep(2 * time.Hour)
			h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Settled, Count: 1, Due: 1})
			h.append(h.taken(rec, ledger.Claim{}), ledger.Event{Kind: ledger.EvRechecked})
			h.counted()
		},
	},
}

var waking = map[string]scenario{
	"woken": {
		"who listens hears of work",
		func(h *harness) {
			ctx, end := context.WithTimeout(context.Background(), time.Minute)
			defer end()
			woken := h.ledger.Woken(ctx)
			h.append(h.fresh(wish("a", "w1")), deferred(0))
			select {
			case <-woken:
			case <-ctx.Done():
				h.Error("no worker was woken")
			}
		},
	},
}
