package ledgertest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

func (h *harness) history(q ledger.Past) []ledger.Span {
	h.Helper()
	spans, err := h.ledger.History(context.Background(), q)
	if err != nil {
		h.Fatalf("history: %v", err)
	}
	return spans
}

// recounted is the history of a time, made of the published changes.
func (h *harness) recounted(q ledger.Past) []ledger.Span {
	h.Helper()
	var counts []ledger.Counted
	for _, c := range h.followed(ledger.Following{}) {
		if of, in := q.Counted(c); in {
			counts = append(counts, of)
		}
	}
	return q.Spans(counts)
}

var histories = map[string]scenario{
	"counted": {
		"a plot shows what became of the writes of one tenant, by the time at which it came",
		func(h *harness) {
			first := h.append(h.fresh(wish("a", "w1"), announced), ledger.Event{Kind: ledger.EvSent}, seen, verified)
			begin := first.SettledAt
			h.append(h.fresh(wish("a", "w2"), announced), sent, missing, settled(ledger.NotApplied))
			h.append(h.fresh(wish("b", "w3"), announced), sent, seen, verified)
			h.fresh(wish("a", "w4"), held)
			h.sleep(2 * time.Hour)
			h.append(h.fresh(wish("a", "w5"), announced), sent, missing, escalated)
			h.append(h.fresh(wish("a", "w6"), announced), sent, missing, announced, sent, seen, verified)
			q := ledger.Past{Tenant: "a", Since: begin, Until: begin.Add(3 * time.Hour), Step: time.Hour}
			want := []ledger.Span{
				{From: begin, Settled: map[ledger.Status]int{ledger.Verified: 1, ledger.NotApplied: 1}, Held: 1, Saved: 1, Sends: 2, Reads: 2},
				{From: begin.Add(2 * time.Hour), Settled: map[ledger.Status]int{ledger.Verified: 1}, Review: 1, Sends: 2, Reads: 2},
			}
			if diff := cmp.Diff(want, h.history(q)); diff != "" {
				h.Errorf("history (-want +got):\n%s", diff)
			}
			q.Destination = first.Destination
			if diff := cmp.Diff(want, h.history(q)); diff != "" {
				h.Errorf("history of the destination (-want +got):\n%s", diff)
			}
			q.Destination = "another"
			if got := h.history(q); len(got) != 0 {
				h.Errorf("of another destination: %v", got)
			}
			q.Tenant, q.Destination = "unused", ""
			if got := h.history(q); len(got) != 0 {
				h.Errorf("of an unused tenant: %v", got)
			}
		},
	},
	"edges": {
		"what happened at the first moment counts, what happened at the last does not, and each once",
		func(h *harness) {
			var times []time.Time
			for i := range 6 {
				rec := h.append(h.fresh(wish("a", fmt.Sprint("w", i)), announced), sent, seen, verified)
				times = append(times, rec.SettledAt)
				h.sleep(7 * time.Minute)
			}
			for _, step := range []time.Duration{time.Minute, 7 * time.Minute, 10 * time.Minute, 100 * time.Hour} {
				for i, since := range times {
					for _, until := range times[i+1:] {
						q := ledger.Past{Tenant: "a", Since: since, Until: until, Step: step}
						got, sum := h.history(q), 0
						for _, s := range got {
							sum += s.Settled[ledger.Verified]
							if s.From.Before(since) || !s.From.Before(until) {
								h.Errorf("a span from %s in %+v", s.From, q)
							}
						}
						if diff := cmp.Diff(h.recounted(q), got); diff != "" || sum == 0 {
							h.Errorf("%+v: %d counted (-want +got):\n%s", q, sum, diff)
						}
					}
				}
			}
		},
	},
	"refused": {
		"a history of no tenant, of no time, or of more spans than are drawn is not counted",
		func(h *harness) {
			now := time.Now()
			whole := ledger.Past{Tenant: "a", Since: now.Add(-1000 * time.Second), Until: now, Step: time.Second}
			for reason, change := range map[string]func(*ledger.Past){
				"no tenant": func(q *ledger.Past) { q.Tenant = "" }, "no step": func(q *ledger.Past) { q.Step = 0 },
				"a step back": func(q *ledger.Past) { q.Step = -time.Second }, "no since": func(q *ledger.Past) { q.Since = time.Time{} },
				"no until": func(q *ledger.Past) { q.Until = time.Time{} }, "the wrong way": func(q *ledger.Past) { q.Since, q.Until = q.Until, q.Since },
				"too many spans": func(q *ledger.Past) { q.Since = q.Since.Add(-1) }, "far too many": func(q *ledger.Past) { q.Step = 1 },
			} {
				q := whole
				change(&q)
				if got, err := h.ledger.History(context.Background(), q); err == nil {
					h.Errorf("%s: %v", reason, got)
				}
			}
			if got := h.history(whole); len(got) != 0 {
				h.Errorf("of nothing: %v", got)
			}
		},
	},
	"pruned": {
		"it goes back a week, whatever was forgotten",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, seen, verified)
			h.sleep(ledger.ChangesKept - time.Minute)
			h.prune(0)
			h.prune(0)
			h.lost(rec)
			q := ledger.Past{Tenant: "a", Since: rec.SettledAt, Until: rec.SettledAt.Add(time.Hour), Step: time.Hour}
			if got := h.history(q); len(got) != 1 || got[0].Settled[ledger.Verified] != 1 {
				h.Errorf("history %v", got)
			}
		},
	},
}
