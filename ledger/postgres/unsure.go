package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// In a database that may not know the result of a commit ([dialect].unsure) the ledger finds out.
// A transaction begins with a row of its own, which says that it was applied; where the answer is
// lost, the row of the same name that says the contrary is inserted, and the first of the two
// decides. A change of one write that is a statement of its own needs no such row: the write has
// the events of the change, or is as it was before, or was changed by another caller.

// distinct returns a time that no other attempt of this process has: the database's clock has
// microseconds.
func (w *writer) distinct(now time.Time) time.Time {
	return now.Truncate(time.Microsecond).Add(time.Duration(w.attempts.Add(1) % int64(time.Microsecond)))
}

// after returns the time of a change of a write: one that its last change has would be that of
// every change that the clock of another node delays. Other processes number their attempts alike.
func (w *writer) after(now time.Time, r ledger.Record) time.Time {
	if !w.l.dialect.unsure || now.After(r.Updated) {
		return now
	}
	return w.distinct(r.Updated.Add(time.Microsecond + mathrand.N(time.Millisecond)))
}

// newRecord returns the name of the row of a transaction. It sorts before the names of notes, whose
// lists are read from their prefix on.
func newRecord() string { return "!" + rand.Text() }

// conclude returns nil if the transaction of that record was applied, [errAgain] if it was not and
// never will be, and the error where neither can be found out.
func (l *Ledger) conclude(record string, unsure error) error {
	ctx, cancel := context.WithTimeout(context.Background(), maxAnswer)
	defer cancel()
	for ; ctx.Err() == nil; pause(ctx, maxPause) {
		l.do(ctx, "conclude", record)
		var applied []bool
		err := l.read(ctx, l.sql.Text("concluded"), []any{record}, func(rows pgx.Rows) (err error) {
			applied, err = pgx.CollectRows(rows, pgx.RowTo[bool])
			return err
		})
		switch {
		case err != nil || len(applied) == 0:
		case applied[0]:
			return nil
		default:
			return fmt.Errorf("%w: %s: the commit of a transaction was lost", errAgain, l.name)
		}
	}
	return unsure
}

// settle answers those operations of which an earlier attempt turns out to have been applied, or
// can no longer be, and returns the others.
func (w *writer) settle(ctx context.Context, batch []*operation) (rest []*operation, err error) {
	for i, o := range batch {
		var a *answer
		if len(o.unsure) > 0 {
			if a, err = w.l.outcome(ctx, o); err != nil {
				return append(rest, batch[i:]...), err
			}
		}
		switch {
		case a != nil && a.applied:
			w.operations.Add(1)
			w.l.keepRun(a.row.n, o.change)
			w.l.announce(o.change)
			o.done <- *a
		case a != nil || o.refused:
			o.done <- answer{}
		default:
			rest = append(rest, o)
		}
	}
	return rest, nil
}

// outcome looks for an earlier attempt of an operation in what its write has become. It returns nil
// if the write is as it was before: then the operation may be tried again, because it is applied
// only to that.
func (l *Ledger) outcome(ctx context.Context, o *operation) (*answer, error) {
	attempted := o.unsure[0]
	have, err := l.find(ctx, attempted.rec.ID)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !attempted.fresh && have.rec.Fence == attempted.wasFence && have.rec.Seq == attempted.wasSeq:
		return nil, nil
	}
	events, err := l.Events(ctx, attempted.rec.Tenant, attempted.rec.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range o.unsure {
		if c.isPartOf(have.rec, events) {
			o.change = c
			c.rec.Now = c.rec.Updated
			return &answer{applied: true, row: row{n: have.n, rec: c.rec}}, nil
		}
	}
	return &answer{}, nil
}

// isPartOf reports whether a write has the events of the change: no other change has an event
// with the same place, content and time. A change without events renewed a lease, of which a later
// change leaves no trace: it is not known, and not part of it.
func (c change) isPartOf(have ledger.Record, events []ledger.Event) bool {
	if len(c.events) == 0 || c.fresh && !have.Created.Equal(c.rec.Created) {
		return false
	}
	for _, want := range c.events {
		if !slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Seq == want.Seq && same(e, want) }) {
			return false
		}
	}
	return true
}

func same(a, b ledger.Event) bool {
	one, err := driver.EncodeEvent(nil, a)
	if err != nil {
		return false
	}
	other, err := driver.EncodeEvent(nil, b)
	return err == nil && bytes.Equal(one, other) && bytes.Equal(a.Evidence, b.Evidence) && bytes.Equal(a.Mismatches, b.Mismatches)
}
