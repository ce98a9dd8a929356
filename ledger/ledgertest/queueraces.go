package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/readback-go/readback/ledger"
)

// crowd is a queue with many workers: some reserve, others claim, send and
// settle. It remembers behind whom each was reserved.
type crowd struct {
	*harness
	keyDigest string
	mu        sync.Mutex
	before    map[ledger.ID]ledger.ID
	done      map[ledger.ID]bool
	joined    atomic.Int32
}

// step checks the queue after each change.
func (c *crowd) step() bool {
	wrong, err := queueProblem(context.Background(), c.ledger, "a", c.keyDigest)
	if wrong != "" || err != nil {
		c.Errorf("%s; error %v", wrong, err)
	}
	return wrong == "" && err == nil
}

func (c *crowd) join(res ledger.Reservation) bool {
	rec, fresh, err := c.ledger.Reserve(context.Background(), res)
	if err != nil || !fresh {
		c.Errorf("reserve: fresh %v, error %v", fresh, err)
		return false
	}
	c.mu.Lock()
	c.before[rec.ID] = rec.QueuedBehind
	c.mu.Unlock()
	c.joined.Add(1)
	return c.step()
}

// work claims one write and ends it. It says how many it ended.
func (c *crowd) work(owner string) (int, error) {
	recs, err := c.ledger.Claim(context.Background(), ledger.Claim{Owner: owner, LeaseFor: lease, Limit: 2})
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	if len(recs) > 1 {
		return 0, fmt.Errorf("%v of one line are lent at once", ids(recs))
	}
	for _, r := range recs {
		c.mu.Lock()
		before, known := c.before[r.ID]
		first := !known || before == "" || c.done[before]
		c.mu.Unlock()
		if !first {
			return 0, fmt.Errorf("%s is lent before %s is done", r.ID, before)
		}
		if _, err := c.ledger.Append(context.Background(), r.ID, r.Fence, announced, sent); err != nil {
			return 0, fmt.Errorf("append: %w", err)
		}
		c.mu.Lock()
		c.done[r.ID] = true // from the moment on at which the next one can be lent
		c.mu.Unlock()
		if _, err := c.ledger.Append(context.Background(), r.ID, r.Fence, seen, verified); err != nil {
			return 0, fmt.Errorf("append: %w", err)
		}
		if !c.step() {
			return 0, errors.New("the queue is broken")
		}
	}
	return len(recs), nil
}

var queueRaces = map[string]scenario{
	"one head": {
		"however many reserve on one record while others end theirs, one at a time is at work, and none is forgotten",
		func(h *harness) {
			const joiners, workers, each = 4, 4, 12
			reservations := make([]ledger.Reservation, joiners*each)
			for i := range reservations {
				reservations[i] = h.reservation(about("k", fmt.Sprint("w", i)))
				reservations[i].Owner, reservations[i].LeaseFor = "", 0
				h.made = append(h.made, reservations[i].Record)
			}
			c := &crowd{harness: h, keyDigest: reservations[0].Record.KeyDigest,
				before: map[ledger.ID]ledger.ID{}, done: map[ledger.ID]bool{}}
			var ended atomic.Int32
			together(joiners+workers, func(i int) {
				if i < joiners {
					for k := range each {
						if !c.join(reservations[i*each+k]) {
							return
						}
					}
					return
				}
				for idle := 0; ended.Load() < joiners*each && !h.Failed(); idle++ {
					n, err := c.work(fmt.Sprint("worker ", i))
					if err != nil {
						h.Error(err)
						return
					}
					if ended.Add(int32(n)); n > 0 || c.joined.Load() < joiners*each {
						idle = 0
					}
					if idle > 10_000 {
						h.Errorf("nothing to do, and %d of %d are done: the rest waits for ever", ended.Load(), joiners*each)
						return
					}
				}
			})
			if h.Failed() {
				return
			}
			h.aboutOne(ledger.Filter{KeyDigest: c.keyDigest})
			for id, before := range c.before {
				if before != "" && h.get(ledger.Record{Tenant: "a", ID: id}).FirstSend.Before(h.get(ledger.Record{Tenant: "a", ID: before}).SettledAt) {
					h.Errorf("%s was sent before %s was settled", id, before)
				}
			}
		},
	},
	"all at once": {
		"of any number that reserve one free record at once, one is first and the others form one line",
		func(h *harness) {
			reservations := make([]ledger.Reservation, 24)
			for i := range reservations {
				reservations[i] = h.reservation(about("k", fmt.Sprint("w", i)), announced)
				h.made = append(h.made, reservations[i].Record)
			}
			var first atomic.Int32
			together(len(reservations), func(i int) {
				rec, fresh, err := h.ledger.Reserve(context.Background(), reservations[i])
				if err != nil || !fresh {
					h.Errorf("reserve: fresh %v, error %v", fresh, err)
				}
				if rec.QueuedBehind == "" {
					first.Add(1)
				}
				if (rec.QueuedBehind == "") != (rec.State == ledger.Sending) {
					h.Errorf("%s behind %q", rec.State, rec.QueuedBehind)
				}
			})
			if first.Load() != 1 {
				h.Errorf("%d are first", first.Load())
			}
			h.inOrder(reservations[0].Record.KeyDigest)
			h.aboutOneCount(reservations[0].Record.KeyDigest, len(reservations))
		},
	},
	"several leave at once": {
		"when a write and the ones behind it leave at the same moment, the first that is left is the head",
		func(h *harness) {
			const leaving = 3
			for round := range 12 {
				key := fmt.Sprint("k", round)
				recs := []ledger.Record{h.fresh(about(key, key+" first"), announced)}
				h.append(recs[0], sent)
				for i := range leaving {
					recs = append(recs, h.queuedUp(about(key, fmt.Sprint(key, " ", i))))
				}
				together(leaving, func(i int) {
					if _, err := h.ledger.Append(context.Background(), recs[i].ID, recs[i].Fence, seen, settled(ledger.NotApplied)); err != nil {
						h.Errorf("append: %v", err)
					}
				})
				h.inOrder(recs[0].KeyDigest)
				h.atHead(recs[leaving])
			}
		},
	},
	"one operation, one record": {
		"of workflows that begin one operation on one record at once one does it, and the others do not even wait",
		func(h *harness) {
			reservations := make([]ledger.Reservation, 24)
			for i := range reservations {
				w := about("k", fmt.Sprint("w", i))
				w.IdempotencyKey = "invoice 7"
				reservations[i] = h.reservation(w, announced)
				if i%2 == 0 {
					reservations[i].Owner, reservations[i].Events = "", nil
				}
			}
			var won atomic.Int32
			together(len(reservations), func(i int) {
				_, fresh, err := h.ledger.Reserve(context.Background(), reservations[i])
				if fresh && err == nil {
					won.Add(1)
				}
				if !fresh && !errors.Is(err, ledger.ErrBlocked) {
					h.Errorf("reserve: fresh %v, error %v; want blocked", fresh, err)
				}
			})
			if won.Load() != 1 {
				h.Errorf("%d own the operation", won.Load())
			}
			h.aboutOneCount(reservations[0].Record.KeyDigest, 1)
		},
	},
}

func (h *harness) aboutOneCount(keyDigest string, want int) {
	h.Helper()
	if got := h.list(ledger.Filter{Tenant: "a", KeyDigest: keyDigest}); len(got) != want {
		h.Errorf("%d writes about the record, want %d", len(got), want)
	}
}
