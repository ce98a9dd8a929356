package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Enqueue accepts an intent for later and returns its id. An engine that runs [Engine.Work] on
// this ledger carries it out; [Engine.Wait] and [Engine.Subscribe] return its outcome. A repeat
// of one logical write gets the same id. When Enqueue returns nil the write is in the ledger.
//
// It is refused with [ledger.ErrFull] while more than Options.MaxQueued writes of its tenant
// wait for its destination. The count is about a second old and includes what this engine
// accepted since, so that several engines together may exceed it a little. A ledger that cannot
// count is never full. The other errors are those of [Engine.Do].
func (e *Engine) Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error) {
	t, err := e.accept(ctx, w)
	if err != nil {
		return "", e.rejected(ctx, w, err)
	}
	rec := t.rec
	var s *workSpan
	t.lifetime, s = e.startSpan(e.lifetimeFor(ctx), &t.rec, stageNew)
	defer s.end()
	fresh, err := e.enqueueWithin(ctx, t)
	if s.done(err) != nil {
		return "", err
	}
	if !fresh {
		e.observe(Activity{Kind: ActivityRepeated, Record: rec})
	}
	return rec.ID, nil
}

// enqueueWithin is enqueue within the tenant's bounds on waiting and open writes.
func (e *Engine) enqueueWithin(ctx context.Context, t *task) (fresh bool, err error) {
	rec := t.rec
	if err := e.admit(rec, 1); err != nil {
		have, missing := e.ledger.Get(ctx, rec.Tenant, rec.ID)
		if missing == nil {
			return false, ledger.Same(have, ledger.Reservation{Record: rec})
		}
		return false, err
	}
	_, fresh, err = e.enqueue(ctx, t)
	if err != nil || !fresh {
		e.queues.giveBack(rec, 1)
	}
	return fresh, err
}

// enqueue reserves a write for later, and reports whether it is new. The caller has taken its
// place.
func (e *Engine) enqueue(ctx context.Context, t *task) (reserved ledger.Record, fresh bool, err error) {
	rec := t.rec
	rec.Now = time.Now()
	t.adopt(rec, rec.Now)
	if t.restore, err = e.restored(); err != nil {
		return rec, false, e.unrecorded(rec, err)
	}
	events := t.refused()
	for i := range events {
		events[i].By = e.opts.Owner
	}
	reserved, fresh, err = e.reserve(ctx, t.lifetime, ledger.Reservation{Record: rec, Events: events, Window: e.opts.Window})
	if err != nil {
		return rec, false, e.refusedReservation(rec, err)
	}
	if fresh {
		t.adopt(reserved, rec.Now)
		t.countEnded(phase{})
	}
	t.lifetime.span.adopted(reserved)
	return reserved, fresh, nil
}

// sameRequest refuses a request that differs from the record of the same write.
func sameRequest(have, rec ledger.Record) error {
	have.StructuralKey, have.Tenant = rec.StructuralKey, rec.Tenant
	return ledger.Same(have, ledger.Reservation{Record: rec})
}

// queues counts the writes that waited at a moment, and those that this engine accepted since.
type queues struct {
	mu       sync.Mutex
	counting bool // a caller queries the ledger now
	fresh    time.Time
	waiting  map[party]int    // writes that wait
	open     map[string]int64 // bytes of the intents that are not settled, by tenant
}

type party struct{ tenant, destination string }

// giveBack returns the place of a write that was not recorded, or that is settled.
func (q *queues) giveBack(rec ledger.Record, waits int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil { // the ledger counts nothing
		return
	}
	p := party{rec.Tenant, rec.Destination}
	q.waiting[p] = max(q.waiting[p]-waits, 0)
	q.open[rec.Tenant] = max(q.open[rec.Tenant]-int64(len(rec.Intent)), 0)
}

// queued counts a write as waiting whose caller was to send it and has left.
func (q *queues) queued(rec ledger.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting != nil {
		q.waiting[party{rec.Tenant, rec.Destination}]++
	}
}

// admit takes the place of a write, or refuses it; waits is 1 for a write that waits, and 0 for
// one that its caller sends. One caller at a time queries the ledger's count. The others use
// the previous count, and wait only for the first one.
func (e *Engine) admit(rec ledger.Record, waits int) error {
	if e.opts.MaxQueued == math.MaxInt && e.opts.MaxQueuedBytes == math.MaxInt64 {
		return nil
	}
	q := &e.queues
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.counting && !time.Now().Before(q.fresh) {
		e.count()
	}
	p, size := party{rec.Tenant, rec.Destination}, int64(len(rec.Intent))
	switch n, bytes := q.waiting[p], q.open[rec.Tenant]; {
	case n >= e.opts.MaxQueued:
		return fmt.Errorf("%w: %d writes of tenant %q wait for destination %q, at most %d may", ledger.ErrFull, n, p.tenant, p.destination, e.opts.MaxQueued)
	case bytes+size > e.opts.MaxQueuedBytes && foreignNames(rec.Destination, rec.Tool) == nil: // only the number of readback's own notices of a tenant is bounded
		return fmt.Errorf("%w: the intents of the open writes of tenant %q have %d bytes, at most %d may be open (queue.bytes)", ledger.ErrFull, p.tenant, bytes, e.opts.MaxQueuedBytes)
	}
	q.waiting[p] += waits
	q.open[rec.Tenant] += size
	return nil
}

// count asks the ledger how many writes wait. It is called with the lock, and releases it
// during the query unless nothing has been counted yet. A failed query keeps the previous
// count, or that of this engine alone: an unusable ledger refuses the write itself.
func (e *Engine) count() {
	q := &e.queues
	q.counting = true
	defer func() { q.counting = false }()
	began := time.Now()
	first := q.waiting == nil
	if first {
		q.waiting, q.open = make(map[party]int), make(map[string]int64)
	} else {
		q.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(e.ctx, ledgerTimeout) // it serves more than one caller
	s, err := e.ledger.QueueStats(ctx)
	cancel()
	if !first {
		q.mu.Lock()
	}
	if err != nil {
		q.fresh = time.Now().Add(max(statsFresh, time.Since(began)))
		e.opts.Logger.Warn("the ledger could not count the writes that wait; the bounds of the queue go by the last count", "error", err)
		return
	}
	q.fresh = time.Now().Add(max(statsFresh, statsShare*time.Since(began)))
	q.waiting, q.open = make(map[party]int), make(map[string]int64)
	for _, one := range s.Queues {
		if one.State == ledger.Queued {
			q.waiting[party{one.Tenant, one.Destination}] += one.Count
		}
		if one.State != ledger.Settled {
			q.open[one.Tenant] += one.Bytes
		}
	}
}

// Subscribe yields the outcome of each write as soon as the write is done, as defined by
// [Engine.Wait]. Where a recheck is pending then ([Outcome.RecheckUntil]) it yields the outcome
// again when that has changed or become final. It ends with the last final outcome, with ctx,
// or with the engine. A write that cannot have an outcome (ledger.ErrNotFound,
// [ledger.ErrRefused]) is yielded with its error. While the ledger is unusable, Subscribe
// retries. Unlike Wait it only watches, and continues nothing.
func (e *Engine) Subscribe(ctx context.Context, tenant string, ids ...ledger.ID) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		open := slices.Compact(slices.Sorted(slices.Values(ids)))
		given := make(map[ledger.ID]ledger.Status) // those with a pending recheck
		for pace := newFollowPace(); len(open) > 0; {
			var left []ledger.ID
			for _, id := range open {
				rec, err := e.ledger.Get(ctx, tenant, id)
				switch {
				case ctx.Err() != nil:
					return
				case lost(err):
					if !yield(Outcome{ID: id}, err) {
						return
					}
				case err != nil, !done(rec):
					left = append(left, id)
				case final(rec):
					if !yield(outcomeOf(rec, true), nil) {
						return
					}
				default:
					left = append(left, id)
					out := outcomeOf(rec, true)
					if given[id] == out.Status {
						continue
					}
					if given[id] = out.Status; !yield(out, nil) {
						return
					}
					pace.Reset()
				}
			}
			if len(left) < len(open) {
				pace.Reset()
			}
			if open = left; len(open) > 0 && !sleep(ctx, e.ctx, pace.NextBackOff()) {
				return
			}
		}
	}
}

// lost reports whether a ledger error means that there will be no outcome.
func lost(err error) bool {
	return errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrRefused) || errors.Is(err, ledger.ErrCorrupt)
}
