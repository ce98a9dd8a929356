package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Enqueue accepts an intent for later and returns its id: whoever runs
// [Engine.Work] on this ledger carries it out, [Engine.Wait] and
// [Engine.Subscribe] tell its outcome. A repeat of one logical write gets the
// same id. When it returns nil the write is in the ledger.
//
// It is refused with [ledger.ErrFull] while more than Options.MaxQueued writes
// of its tenant wait for its destination; the count is about a second old and
// includes what this engine accepted since, so that several engines together
// may exceed it a little. A ledger that cannot be surveyed is never full. The
// other errors are those of [Engine.Do].
func (e *Engine) Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error) {
	asked := w
	w, rec, err := e.accept(ctx, w)
	if err != nil {
		return "", e.turnedAway(ctx, asked, err)
	}
	l, s := e.stretch(e.lifeFor(ctx), &rec, stageNew)
	defer s.end()
	err = e.enqueue(ctx, w, rec, l)
	if s.done(err) != nil {
		return "", err
	}
	return rec.ID, nil
}

// enqueue reserves a write for later.
func (e *Engine) enqueue(ctx context.Context, w intent.WriteIntent, rec ledger.Record, l life) error {
	if err := e.room(ctx, rec); err != nil {
		if _, missing := e.ledger.Get(ctx, rec.Tenant, rec.ID); missing == nil {
			return e.sameAgain(ctx, rec)
		}
		return err
	}
	t := &task{e: e, life: l, intent: w}
	rec.Now = time.Now()
	t.adopt(rec, rec.Now)
	events := t.turnedDown()
	for i := range events {
		events[i].By = e.opts.Owner
	}
	reserved, fresh, err := e.reserve(ctx, l, ledger.Reservation{Record: rec, Events: events, Window: e.opts.Window})
	if err != nil || !fresh {
		e.queues.giveBack(party{rec.Tenant, rec.Destination})
	}
	if err != nil {
		return e.refusedReservation(rec, err)
	}
	l.stretch.adopted(reserved)
	if !fresh {
		e.repeated(rec)
	}
	return nil
}

// sameAgain counts a repeat, or refuses one that asks for something else.
func (e *Engine) sameAgain(ctx context.Context, rec ledger.Record) error {
	err := e.same(ctx, rec)
	if err == nil {
		e.repeated(rec)
	}
	return err
}

// same refuses a repeat that asks for something else.
func (e *Engine) same(ctx context.Context, rec ledger.Record) error {
	have, err := e.ledger.Get(ctx, rec.Tenant, rec.ID)
	if err != nil {
		return err
	}
	return ledger.Same(have, ledger.Reservation{Record: rec})
}

// queues is how many writes wait, by tenant and destination, as of a moment.
type queues struct {
	mu      sync.Mutex
	at      time.Time
	waiting map[party]int
}

type party struct{ tenant, destination string }

// giveBack returns the room of a write that did not come to wait.
func (q *queues) giveBack(p party) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.waiting[p]; n > 0 {
		q.waiting[p] = n - 1
	}
}

// room refuses a write for which no room is left in the queue.
func (e *Engine) room(ctx context.Context, rec ledger.Record) error {
	surveyor, ok := e.ledger.(ledger.Surveyor)
	if !ok {
		return nil
	}
	q := &e.queues
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil || time.Since(q.at) > surveyFresh {
		s, err := surveyor.Survey(ctx)
		if err != nil {
			return e.unrecorded(rec, err)
		}
		q.at, q.waiting = time.Now(), make(map[party]int)
		for _, one := range s.Queues {
			if one.State == ledger.Queued {
				q.waiting[party{one.Tenant, one.Destination}] += one.Count
			}
		}
	}
	p := party{rec.Tenant, rec.Destination}
	if n := q.waiting[p]; n >= e.opts.MaxQueued {
		return fmt.Errorf("%w: %d writes of tenant %q wait for destination %q, at most %d may", ledger.ErrFull, n, p.tenant, p.destination, e.opts.MaxQueued)
	}
	q.waiting[p]++
	return nil
}

// Subscribe gives the outcome of each of the writes as soon as it is done as
// [Engine.Wait] has it. Where a recheck is pending then ([Outcome.RecheckUntil]) it
// gives the outcome again when that has changed or become final. It ends with the
// last final outcome, with ctx, or with the engine. A write that cannot have one (ledger.ErrNotFound,
// [ledger.ErrRefused]) is given with its error; while the ledger cannot be used
// it is asked again. Unlike Wait it only watches, and carries nothing on.
func (e *Engine) Subscribe(ctx context.Context, tenant string, ids ...ledger.ID) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		open := slices.Compact(slices.Sorted(slices.Values(ids)))
		given := make(map[ledger.ID]Status) // those of which a recheck is pending
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

// lost reports whether an error of the ledger says that there will be no
// outcome.
func lost(err error) bool {
	return errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrRefused) || errors.Is(err, ledger.ErrCorrupt)
}
