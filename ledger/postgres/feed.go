package postgres

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxNumbered is how many changes one transaction numbers or deletes: small adjacent rows,
	// some milliseconds. maxNumberings is how many such transactions one call makes: enough for a
	// week without followers.
	maxNumbered   = 1000
	maxNumberings = 1000
)

// Follow implements [ledger.Feed]. It first assigns numbers to what was committed since the
// last call, in a transaction of its own; see the documentation of the package.
func (l *Ledger) Follow(ctx context.Context, q ledger.Following) ([]ledger.Change, string, error) {
	q, err := q.Checked()
	if err != nil {
		return nil, "", err
	}
	after, err := ledger.PlaceOf(q.After)
	if err != nil {
		return nil, "", err
	}
	got, err := l.changes(ctx, q, after)
	if err == nil && got.unnumbered && len(got.changes) < q.Limit {
		if err = l.number(ctx); err == nil {
			got, err = l.changes(ctx, q, after)
		}
	}
	if err == nil && q.After != "" {
		err = after.Reaches(got.oldest, got.last.N, got.at)
	}
	if err != nil {
		return nil, "", err
	}
	return got.changes, q.Next(got.changes, got.last), nil
}

// Latest implements [ledger.Feed].
func (l *Ledger) Latest(ctx context.Context) (string, error) {
	if err := l.number(ctx); err != nil {
		return "", err
	}
	got, err := l.changes(ctx, ledger.Following{}, ledger.Place{})
	return got.last.Cursor(), err
}

// published is some changes, and the range of existing ones, from the oldest to the last.
type published struct {
	changes    []ledger.Change
	oldest     int64
	last       ledger.Place
	at         *int64 // the time of the place's change, nil where it does not exist
	unnumbered bool   // some have no number yet
}

func (l *Ledger) changes(ctx context.Context, q ledger.Following, after ledger.Place) (got published, err error) {
	statement, args := "changes", []any{after.N, int64(q.Limit)}
	if q.Tenant != "" {
		statement, args = "changes of a tenant", append(args, q.Tenant)
	}
	err = l.read(ctx, l.sql.Text(statement), args, func(rows pgx.Rows) error {
		got = published{}
		var s state
		for rows.Next() {
			var c ledger.Change
			var n, ns int64
			err := rows.Scan(append(s.dest(), &got.last.N, &got.last.Mark, &got.oldest, &got.at, &got.unnumbered, &n, &ns, &c.Tenant, (*string)(&c.ID), &c.Seq,
				(*string)(&c.Kind), (*string)(&c.Settlement), &c.Destination, &c.Sends, &c.Reads, &c.Saved)...)
			if err != nil {
				return err
			}
			if n > 0 {
				c.Cursor, c.At = ledger.Place{N: n, Mark: ns}.Cursor(), at(ns)
				got.changes = append(got.changes, c)
			}
		}
		return cmp.Or(rows.Err(), l.usable(s))
	})
	return got, err
}

// number numbers all changes that have none, in portions. Where another follower does so for
// long, it is left to that one.
func (l *Ledger) number(ctx context.Context) error {
	for range maxNumberings {
		var before, last int64
		err := l.begun(ctx, beginBriefly, func(t *tx) error {
			return t.number(&before, &last)
		})
		if locked(err) {
			return nil
		}
		if err != nil || last-before < maxNumbered {
			return err
		}
	}
	return nil
}

// number must use two statements: the second one sees what was committed before the lock was
// acquired, the first one does not.
func (t *tx) number(before, last *int64) error {
	if err := t.pgx.QueryRow(t.ctx, t.l.sql.Text("lock_feed"), t.l.args()...).Scan(before); err != nil {
		return err
	}
	return t.pgx.QueryRow(t.ctx, t.l.sql.Text("number_changes"), t.l.args(int64(maxNumbered), *before)...).Scan(last)
}

// History implements [ledger.Feed].
func (l *Ledger) History(ctx context.Context, q ledger.Past) ([]ledger.Span, error) {
	q, err := q.Checked()
	if err == nil {
		err = l.number(ctx)
	}
	if err != nil {
		return nil, err
	}
	var counts []ledger.Counted
	args := []any{q.Tenant, nanos(q.Since), nanos(q.Until), int64(q.Step), q.Destination}
	err = l.read(ctx, l.sql.Text("history"), args, func(rows pgx.Rows) error {
		counts = nil
		var s state
		for rows.Next() {
			var c ledger.Counted
			err := rows.Scan(append(s.dest(), &c.Span, (*string)(&c.Kind), (*string)(&c.Settlement), &c.Count, &c.Saved, &c.Sends, &c.Reads)...)
			if err != nil {
				return err
			}
			counts = append(counts, c)
		}
		return cmp.Or(rows.Err(), l.usable(s))
	})
	if err != nil {
		return nil, err
	}
	return q.Spans(counts), nil
}

// pruneChanges deletes changes that are too old to be followed, and what is too old to be kept
// for a sealer. It first numbers changes that were not followed yet.
func (l *Ledger) pruneChanges(ctx context.Context) (int, error) {
	if err := l.number(ctx); err != nil {
		return 0, err
	}
	in := func(forget func(*tx, int) (int, error)) (int, error) {
		return driver.PruneChanges(maxNumbered, func(most int) (deleted int, err error) {
			err = l.within(ctx, func(t *tx) error {
				s, err := l.stateIn(ctx, t.pgx)
				if err == nil {
					err = l.trusted(s)
				}
				if err == nil {
					deleted, err = forget(t, most)
				}
				return err
			})
			return deleted, err
		})
	}
	if _, err := in((*tx).forgetUnsealed); err != nil {
		return 0, err
	}
	return in((*tx).forgetChanges)
}

// forgetChanges deletes the oldest changes, up to the limit and the first that may still be
// wanted. A change with a future time was written before the clock was corrected, and must not
// keep all later ones for ever.
func (t *tx) forgetChanges(most int) (gone int, err error) {
	last := int64(0)
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("old_changes"), []any{int64(most)}, func(rows pgx.Rows) error {
		for wanted := false; rows.Next(); {
			var n, ns int64
			if err := rows.Scan(&n, &ns); err != nil {
				return err
			}
			if wanted = wanted || t.now.Sub(at(ns)) < ledger.ChangesKept && !at(ns).After(t.now.Add(maxClockStep)); !wanted {
				last = n
			}
		}
		return rows.Err()
	})
	if err != nil || last == 0 {
		return 0, err
	}
	tag, err := t.pgx.Exec(t.ctx, t.l.sql.Text("delete_changes"), t.l.args(last)...)
	return int(tag.RowsAffected()), err
}

// addFeed adds the statements of followers.
func addFeed(s statements) {
	changes := s.Text("changes")
	s["changes"] = strings.ReplaceAll(changes, "{of}", "x.n > $1::bigint")
	s["changes of a tenant"] = strings.ReplaceAll(changes, "{of}", "x.n > $1::bigint AND x.tenant = $3::text")
}
