package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// optimists is how often an append tries without a row lock before it takes one.
const optimists = 3

// Reserve implements [ledger.Ledger]. It fails with [ledger.ErrClock] when the clock is too far
// before the newest entry.
func (l *Ledger) Reserve(ctx context.Context, res ledger.Reservation) (ledger.Record, bool, error) {
	var err error
	if res.Record, err = l.keeping.Digests.OfRecord(res.Record); err != nil {
		return ledger.Record{}, false, err
	}
	a := l.writer.do(ctx, func(now time.Time) (change, error) { return beginning(res, now) })
	var notBegun *notBegunError
	switch {
	case a.applied:
		l.learn(a.row)
		return a.row.rec, true, nil
	case a.err != nil && !errors.As(a.err, &notBegun):
		return ledger.Record{}, false, a.err
	}
	return l.reserveInQueue(ctx, res)
}

// beginning returns the change of a reservation without obstacles.
func beginning(res ledger.Reservation, now time.Time) (change, error) {
	rec, events, err := ledger.Begin(res, "", now)
	if err != nil {
		return change{}, &notBegunError{err}
	}
	return made(rec, events, res.Precheck), nil
}

// notBegunError means that a reservation is not legal, unless it is a repeat.
type notBegunError struct{ err error }

func (e *notBegunError) Error() string { return e.err.Error() }
func (e *notBegunError) Unwrap() error { return e.err }

// learn caches a write that was stored.
func (l *Ledger) learn(r row) {
	l.memory.keep(r)
	if ledger.Wakes(r.rec) {
		l.ring()
	}
}

// reserveInQueue is Reserve for what cannot simply be inserted: a repeat, or a write whose queue
// or business operation was begun before.
func (l *Ledger) reserveInQueue(ctx context.Context, res ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	have, err := l.find(ctx, res.Record.ID)
	switch {
	case err == nil:
		return have.rec, false, ledger.Same(have.rec, res)
	case !errors.Is(err, ledger.ErrNotFound):
		return ledger.Record{}, false, err
	}
	if err := l.admitQueue(ctx, res.Record.KeyDigest); err != nil {
		return ledger.Record{}, false, err
	}
	err = l.within(ctx, func(t *tx) (err error) {
		rec, fresh, err = t.reserve(res)
		return err
	})
	if err != nil {
		return ledger.Record{}, false, err
	}
	return rec, fresh, nil
}

// reserve is Reserve inside a transaction, with any obstacle but the outbox.
func (t *tx) reserve(res ledger.Reservation) (ledger.Record, bool, error) {
	if have, found, err := t.one("find_row", string(res.Record.ID)); err != nil || found {
		have.rec.Now = t.now
		if err == nil {
			err = ledger.Same(have.rec, res)
		}
		return have.rec, false, err
	}
	held := len(res.Events) > 0 && res.Events[0].Kind == ledger.EvHeld
	var last row
	if !held {
		var err error
		if last, err = t.tail(res.Record.KeyDigest); err != nil {
			return ledger.Record{}, false, err
		}
	}
	if err := t.unblocked(res); err != nil {
		return ledger.Record{}, false, err
	}
	if p := res.Precheck; p != nil {
		var since bool
		if err := t.pgx.QueryRow(t.ctx, t.l.sql.Text("newer_of_record"), t.l.args(res.Record.Tenant, res.Record.KeyDigest, p.Newest)...).Scan(&since); err != nil {
			return ledger.Record{}, false, err
		}
		if since || last.n != 0 {
			res.Events, res.Precheck = nil, nil
		}
	}
	t.present()
	rec, events, err := ledger.Begin(res, last.rec.ID, t.now)
	if err != nil {
		return ledger.Record{}, false, fmt.Errorf("%w: %w", errPlain, err)
	}
	r, err := t.store(made(rec, events, res.Precheck))
	if err == nil {
		err = t.expedite(last)
	}
	return r.rec, true, err
}

// unblocked returns an error if another write of the same business operation blocks this one. A
// write that has the operation and blocks no other any more must release it.
func (t *tx) unblocked(res ledger.Reservation) error {
	r := res.Record
	if r.IdempotencyKey == "" || r.Parent != "" {
		return nil
	}
	since := int64(math.MinInt64)
	if res.Window > 0 {
		since = nanos(t.now.Add(-res.Window))
	}
	var holders []string
	err := t.l.ask(t.ctx, t.pgx, t.l.sql.Text("operation"), []any{r.Tenant, r.Tool, operationKeys(r.Tenant, r.Tool, r.IdempotencyKey), since, r.Workflow}, func(rows pgx.Rows) error {
		for rows.Next() {
			var holder bool
			prior, err := scanRow(rows, &holder)
			if err != nil {
				return err
			}
			if ledger.Blocks(prior.rec, res, t.now) {
				prior.rec.Now = t.now
				return ledger.BlockedBy(prior.rec, res)
			}
			if holder {
				holders = append(holders, string(prior.rec.ID))
			}
		}
		return rows.Err()
	})
	if err != nil || len(holders) == 0 {
		return err
	}
	return t.exec("release_operation", holders)
}

// Append implements [ledger.Ledger]. It still works when the clock is before the newest entry, so
// that what was sent can be settled.
func (l *Ledger) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	have, remembered := l.memory.recall(id)
	for range optimists {
		if !remembered {
			var err error
			if have, err = l.find(ctx, id); err != nil {
				return ledger.Record{}, err
			}
		}
		if ledger.Joins(have.rec, events) {
			break
		}
		a := l.writer.do(ctx, func(now time.Time) (change, error) {
			return advance(have, fence, events, l.writer.after(now, have.rec))
		})
		switch {
		case a.applied:
			l.learn(a.row)
			return a.row.rec, nil
		case a.err == nil: // another caller has changed it
		case errors.Is(a.err, errInQueue):
			return l.appendInQueue(ctx, id, fence, events)
		case !remembered || errors.Is(a.err, ledger.ErrUnavailable):
			l.memory.forget(id)
			return ledger.Record{}, a.err
		}
		l.memory.forget(id)
		remembered = false
	}
	return l.appendInQueue(ctx, id, fence, events)
}

// errInQueue means that a change concerns more than one write.
var errInQueue = errors.New("other writes are in the queue that it leaves")

// advance returns the change of a write by events at a time, when it concerns no other write.
func advance(have row, fence int64, events []ledger.Event, now time.Time) (change, error) {
	rec, stamped, err := ledger.Advance(have.rec, fence, events, clamp(now, have.rec))
	if err != nil {
		return change{}, err
	}
	c := goneOn(have, rec, stamped)
	if c.unordered = ledger.Left(have.rec, rec); c.unordered && (have.followed || have.rec.QueuedBehind != "") {
		return change{}, errInQueue
	}
	return c, nil
}

// appendInQueue is Append with the row locked, for changes that concern its queue.
func (l *Ledger) appendInQueue(ctx context.Context, id ledger.ID, fence int64, events []ledger.Event) (rec ledger.Record, err error) {
	err = l.within(ctx, func(t *tx) (err error) {
		rec, err = t.appendTo(id, fence, events)
		return err
	})
	if err != nil {
		l.memory.forget(id)
		return ledger.Record{}, err
	}
	return rec, nil
}

// appendTo is Append inside a transaction.
func (t *tx) appendTo(id ledger.ID, fence int64, events []ledger.Event) (rec ledger.Record, err error) {
	have, found, err := t.one("lock", string(id))
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
	}
	if err == nil {
		rec, err = t.append(have, fence, events)
	}
	return rec, err
}
