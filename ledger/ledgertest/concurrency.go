package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/readback-go/readback/ledger"
)

// callers is how many goroutines press at once.
const callers = 64

// together runs f in many goroutines at once and waits for all of them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// oneWins runs f n times at once and returns which one succeeded. All others must be refused as
// stale.
func (h *harness) oneWins(n int, f func(i int) error) (winner int) {
	h.Helper()
	var won, lost atomic.Int32
	together(n, func(i int) {
		switch err := f(i); {
		case err == nil:
			if won.Add(1) == 1 {
				winner = i
			}
		case errors.Is(err, ledger.ErrStale):
			lost.Add(1)
		default:
			h.Errorf("caller %d: %v", i, err)
		}
	})
	if won.Load() != 1 || int(lost.Load()) != n-1 {
		h.Fatalf("of %d callers %d won and %d lost", n, won.Load(), lost.Load())
	}
	return winner
}

var concurrency = map[string]scenario{
	"one key": {
		"of any number of concurrent submissions of one write, one sends",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), announced)
			var fresh atomic.Int32
			together(callers, func(i int) {
				mine := res
				mine.Owner = fmt.Sprint("worker ", i)
				rec, won, err := h.ledger.Reserve(context.Background(), mine)
				if err != nil {
					h.Errorf("reserve: %v", err)
				}
				if won {
					fresh.Add(1)
				}
				if won != (rec.Owner == mine.Owner) {
					h.Errorf("fresh %v for %q, owner is %q", won, mine.Owner, rec.Owner)
				}
			})
			if n := fresh.Load(); n != 1 {
				h.Errorf("%d callers own the write", n)
			}
			h.made = append(h.made, res.Record)
		},
	},
	"one operation": {
		"of any number of workflows that begin one operation, one does it",
		func(h *harness) {
			var fresh, blocked atomic.Int32
			reservations := make([]ledger.Reservation, callers)
			for i := range reservations {
				reservations[i] = h.reservation(named("a", fmt.Sprint("w", i), "invoice 7"), announced)
			}
			together(callers, func(i int) {
				_, won, err := h.ledger.Reserve(context.Background(), reservations[i])
				switch {
				case won:
					fresh.Add(1)
				case errors.Is(err, ledger.ErrBlocked):
					blocked.Add(1)
				default:
					h.Errorf("reserve: %v", err)
				}
			})
			if fresh.Load() != 1 || blocked.Load() != callers-1 {
				h.Errorf("%d own the operation, %d are blocked", fresh.Load(), blocked.Load())
			}
		},
	},
	"one worker each": {
		"no record is lent to two workers",
		func(h *harness) {
			const records = 100
			for i := range records {
				h.append(h.fresh(wish("a", fmt.Sprint("w", i))), deferred(0))
			}
			var mu sync.Mutex
			lent := map[ledger.ID]string{}
			together(16, func(i int) {
				owner := fmt.Sprint("worker ", i)
				for {
					recs, err := h.ledger.Claim(context.Background(), ledger.Claim{Owner: owner, LeaseFor: lease, Limit: 3})
					if err != nil {
						h.Errorf("claim: %v", err)
					}
					if len(recs) == 0 {
						return
					}
					mu.Lock()
					for _, r := range recs {
						if other, ok := lent[r.ID]; ok {
							h.Errorf("%s: lent to %s and %s", r.ID, other, owner)
						}
						lent[r.ID] = owner
					}
					mu.Unlock()
				}
			})
			if len(lent) != records {
				h.Errorf("%d of %d records were lent", len(lent), records)
			}
		},
	},
	"many lives": {
		"callers that have nothing to do with each other do not disturb each other, nor does one that is refused",
		func(h *harness) {
			recs := make([]ledger.Record, callers)
			for i := range recs {
				recs[i] = h.fresh(wish("a", fmt.Sprint("w", i)), announced)
			}
			together(callers, func(i int) {
				if i%4 == 0 {
					if _, err := h.ledger.Append(context.Background(), recs[i].ID, recs[i].Fence, sent, seen, verified, announced); !errors.Is(err, ledger.ErrIllegalMove) {
						h.Errorf("append: error %v, want an illegal move", err)
					}
					return
				}
				if _, err := h.ledger.Append(context.Background(), recs[i].ID, recs[i].Fence, sent, seen, verified); err != nil {
					h.Errorf("append: %v", err)
				}
			})
			for i, rec := range recs {
				want := ledger.Settled
				if i%4 == 0 {
					want = ledger.Sending
				}
				if got := h.get(rec).State; got != want {
					h.Errorf("write %d: %s, want %s", i, got, want)
				}
			}
		},
	},
	"evidence from all sides": {
		"no late event is lost, and each has a number of its own",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			together(callers, func(i int) {
				e := ledger.Event{Kind: ledger.EvLate, By: fmt.Sprint("worker ", i)}
				if _, err := h.ledger.Append(context.Background(), rec.ID, 0, e); err != nil {
					h.Errorf("append: %v", err)
				}
			})
			by := map[string]bool{}
			for _, e := range h.events(rec)[2:] {
				by[e.By] = true
			}
			if len(by) != callers || h.get(rec).Seq != callers+2 {
				h.Errorf("%d of %d late events, seq %d", len(by), callers, h.get(rec).Seq)
			}
		},
	},
	"readers": {
		"a read during writes returns a record that follows from its events",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.append(rec, sent)
			together(8, func(i int) {
				for range 20 {
					if i%2 == 0 {
						if _, err := h.ledger.Append(context.Background(), rec.ID, rec.Fence, missing); err != nil {
							h.Errorf("append: %v", err)
						}
						continue
					}
					events, err := h.ledger.Events(context.Background(), rec.Tenant, rec.ID)
					if err != nil {
						h.Errorf("events: %v", err)
					}
					if _, err := Replay(rec, events); err != nil {
						h.Errorf("replay: %v", err)
					}
				}
			})
			if got := h.get(rec).Reads; got != 80 {
				h.Errorf("%d reads, want 80", got)
			}
		},
	},
}
