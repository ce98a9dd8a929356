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

// Reserve implements [ledger.Ledger]. It fails with [ledger.ErrClock] when the
// clock stands too far before the newest entry.
func (l *Ledger) Reserve(ctx context.Context, res ledger.Reservation) (ledger.Record, bool, error) {
	a := l.writer.do(ctx, func(now time.Time) (change, error) { return beginning(res, now) })
	var notBegun *notBegunError
	switch {
	case a.applied:
		l.learn(a.row)
		return a.row.rec, true, nil
	case a.err != nil && !errors.As(a.err, &notBegun):
		return ledger.Record{}, false, a.err
	}
	return l.reserveInLine(ctx, res)
}

// beginning is the change of a reservation that has nothing in its way.
func beginning(res ledger.Reservation, now time.Time) (change, error) {
	rec, events, err := ledger.Begin(res, "", now)
	if err != nil {
		return change{}, &notBegunError{err}
	}
	return made(rec, events, res.Precheck), nil
}

// notBegunError says that a reservation is not legal, unless it is a repeat.
type notBegunError struct{ err error }

func (e *notBegunError) Error() string { return e.err.Error() }
func (e *notBegunError) Unwrap() error { return e.err }

// learn takes note of a write that was stored.
func (l *Ledger) learn(r row) {
	l.memory.keep(r)
	if ledger.Wakes(r.rec) {
		l.ring()
	}
}

// reserveInLine is Reserve for what cannot simply be put there: a repeat, a
// write of a line or of a business operation that were begun before.
func (l *Ledger) reserveInLine(ctx context.Context, res ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	have, err := l.find(ctx, res.Record.ID)
	switch {
	case err == nil:
		return have.rec, false, ledger.Same(have.rec, res)
	case !errors.Is(err, ledger.ErrNotFound):
		return ledger.Record{}, false, err
	}
	if err := l.admitLine(ctx, res.Record.KeyDigest); err != nil {
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

// reserve is Reserve inside a transaction, for what may have anything in its
// way but the outbox.
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
		if err := t.pgx.QueryRow(t.ctx, t.l.sql["since"], t.l.args(res.Record.Tenant, res.Record.KeyDigest, p.Newest)...).Scan(&since); err != nil {
			return ledger.Record{}, false, err
		}
		if since || last.n != 0 {
			res.Events, res.Precheck = nil, nil
		}
	}
	rec, events, err := ledger.Begin(res, last.rec.ID, t.now)
	if err != nil {
		return ledger.Record{}, false, fmt.Errorf("%w: %w", errPlain, err)
	}
	r, err := t.store(made(rec, events, res.Precheck))
	if err == nil {
		err = t.hurry(last)
	}
	return r.rec, true, err
}

// unblocked looks for another write of the same business operation. One that
// holds it and blocks nobody any more must let it go.
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
	err := t.l.ask(t.ctx, t.pgx, t.l.sql["operation"], []any{r.Tenant, r.Tool, r.IdempotencyKey, since, r.Workflow}, func(rows pgx.Rows) error {
		for rows.Next() {
			var holder bool
			prior, err := scanRow(rows, &holder)
			if err != nil {
				return err
			}
			if ledger.Blocks(prior.rec, res, t.now) {
				prior.rec.Now = t.now
				return &ledger.BlockedError{Prior: prior.rec, Received: res.Record.Digest}
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
	return t.exec("yield", holders)
}

// Append implements [ledger.Ledger]. It goes on when the clock stands before
// the newest entry, so that what was sent can be settled.
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
		a := l.writer.do(ctx, func(now time.Time) (change, error) { return advance(have, fence, events, now) })
		switch {
		case a.applied:
			l.learn(a.row)
			return a.row.rec, nil
		case a.err == nil: // somebody else has changed it
		case errors.Is(a.err, errInLine):
			return l.appendInLine(ctx, id, fence, events)
		case !remembered || errors.Is(a.err, ledger.ErrUnavailable):
			l.memory.forget(id)
			return ledger.Record{}, a.err
		}
		l.memory.forget(id)
		remembered = false
	}
	return l.appendInLine(ctx, id, fence, events)
}

// errInLine says that a change is about more than one write.
var errInLine = errors.New("others stand in the line that it leaves")

// advance is the change of a write by events at a time, when it concerns no
// other write.
func advance(have row, fence int64, events []ledger.Event, now time.Time) (change, error) {
	rec, stamped, err := ledger.Advance(have.rec, fence, events, clamp(now, have.rec))
	if err != nil {
		return change{}, err
	}
	c := goneOn(have, rec, stamped)
	if c.alone = ledger.Left(have.rec, rec); c.alone && (have.followed || have.rec.Behind != "") {
		return change{}, errInLine
	}
	return c, nil
}

// appendInLine is Append with the row locked, for what concerns its line.
func (l *Ledger) appendInLine(ctx context.Context, id ledger.ID, fence int64, events []ledger.Event) (rec ledger.Record, err error) {
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
