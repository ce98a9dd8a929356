package sqlite

import (
	"context"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// Changed implements [ledger.Feed] for the changes of this process. Changes of other
// processes are found by the next read.
func (l *Ledger) Changed(ctx context.Context) <-chan struct{} { return l.writer.subscribers.Woken(ctx) }

// Follow implements [ledger.Feed]. Only one connection of all processes writes at a time, so
// the order of the numbers is that in which they became durable.
func (l *Ledger) Follow(ctx context.Context, q ledger.Following) (changes []ledger.Change, next string, err error) {
	q, err = q.Checked()
	if err != nil {
		return nil, "", err
	}
	after, err := ledger.PlaceOf(q.After)
	if err != nil {
		return nil, "", err
	}
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		have, err := l.extent(conn, after.N)
		if err == nil && q.After != "" {
			err = after.Reaches(have.oldest, have.last.N, have.at)
		}
		if err == nil {
			changes, err = l.changes(conn, q, after.N)
		}
		next = q.Next(changes, have.last)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return changes, next, nil
}

// Latest implements [ledger.Feed].
func (l *Ledger) Latest(ctx context.Context) (cursor string, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		have, err := l.extent(conn, 0)
		cursor = have.last.Cursor()
		return err
	})
	return cursor, err
}

// extent is the range of existing changes, from the oldest to the last, and the time of the
// change of a number, nil where it does not exist.
type extent struct {
	oldest int64
	last   ledger.Place
	at     *int64
}

func (l *Ledger) extent(conn *sqlite.Conn, of int64) (have extent, err error) {
	if _, err := l.clock(conn); err != nil {
		return have, err
	}
	s, err := l.statement(conn, "change_numbers")
	if err != nil {
		return have, err
	}
	s.BindInt64(1, of)
	err = each(l.path, s, func() error {
		have.oldest, have.last = max(s.ColumnInt64(0), 1), ledger.Place{N: s.ColumnInt64(1), Mark: s.ColumnInt64(3)}
		if !s.ColumnIsNull(2) {
			at := s.ColumnInt64(2)
			have.at = &at
		}
		return nil
	})
	return have, err
}

func (l *Ledger) changes(conn *sqlite.Conn, q ledger.Following, after int64) (changes []ledger.Change, err error) {
	query := "changes"
	if q.Tenant != "" {
		query = "changes_of_tenant"
	}
	s, err := l.statement(conn, query)
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, after)
	s.BindInt64(2, int64(q.Limit))
	if q.Tenant != "" {
		s.BindText(3, q.Tenant)
	}
	err = each(l.path, s, func() error {
		changes = append(changes, ledger.Change{
			Cursor: ledger.Place{N: s.ColumnInt64(0), Mark: s.ColumnInt64(1)}.Cursor(),
			At:     time.Unix(0, s.ColumnInt64(1)).UTC(), Tenant: s.ColumnText(2), ID: ledger.ID(s.ColumnText(3)),
			Seq: s.ColumnInt64(4), Kind: ledger.EventKind(s.ColumnText(5)), Settlement: ledger.Status(s.ColumnText(6)),
			Destination: s.ColumnText(7), Sends: s.ColumnInt(8), Reads: s.ColumnInt(9), Saved: s.ColumnBool(10),
		})
		return nil
	})
	return changes, err
}

// publish keeps what events changed about a write for followers.
func (t *tx) publish(before, after ledger.Record, events []ledger.Event) error {
	for _, c := range ledger.ChangesOf(before, after, events) {
		s := t.change
		bindTime(s, 1, c.At)
		s.BindText(2, c.Tenant)
		s.BindText(3, string(c.ID))
		s.BindInt64(4, c.Seq)
		s.BindText(5, string(c.Kind))
		s.BindText(6, string(c.Settlement))
		s.BindText(7, c.Destination)
		s.BindInt64(8, int64(c.Sends))
		s.BindInt64(9, int64(c.Reads))
		s.BindBool(10, c.Saved)
		if err := exec(t.path, s); err != nil {
			return err
		}
		t.publishes = true
	}
	return nil
}

// History implements [ledger.Feed].
func (l *Ledger) History(ctx context.Context, q ledger.Past) ([]ledger.Span, error) {
	q, err := q.Checked()
	if err != nil {
		return nil, err
	}
	var counts []ledger.Counted
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		from, err := l.firstSince(conn, q.Since)
		if err != nil {
			return err
		}
		s, err := l.statement(conn, "history")
		if err != nil {
			return err
		}
		s.BindText(1, q.Tenant)
		bindTime(s, 2, q.Since)
		bindTime(s, 3, q.Until)
		s.BindInt64(4, int64(q.Step))
		s.BindInt64(5, from)
		s.BindText(6, q.Destination)
		return each(l.path, s, func() error {
			counts = append(counts, ledger.Counted{
				Span: s.ColumnInt64(0), Kind: ledger.EventKind(s.ColumnText(1)), Settlement: ledger.Status(s.ColumnText(2)),
				Count: s.ColumnInt(3), Saved: s.ColumnInt(4), Sends: s.ColumnInt(5), Reads: s.ColumnInt(6),
			})
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return q.Spans(counts), nil
}

// firstSince returns the number of the first change at or after a time. Time does not run
// backwards in a ledger, so a binary search finds it. If the clock was set back nevertheless, a
// history may begin too late.
func (l *Ledger) firstSince(conn *sqlite.Conn, since time.Time) (int64, error) {
	have, err := l.extent(conn, 0)
	if err != nil {
		return 0, err
	}
	s, err := l.statement(conn, "change_at")
	if err != nil {
		return 0, err
	}
	from, behind := have.oldest, have.last.N+1
	for from < behind && err == nil {
		middle, at := from+(behind-from)/2, int64(0)
		s.BindInt64(1, middle)
		err = each(l.path, s, func() error { at = s.ColumnInt64(0); return nil })
		if at < nanos(since) {
			from = middle + 1
		} else {
			behind = middle
		}
	}
	return from, err
}
