package postgres

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

var (
	_ ledger.Follower  = (*Ledger)(nil)
	_ ledger.Historian = (*Ledger)(nil)
)

// Follow implements [ledger.Follower]. What was committed since somebody looked
// is given its place in the one order of all changes now, in a transaction of its
// own; see the documentation of the package.
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
	if err == nil && got.untold && len(got.changes) < q.Limit {
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

// Latest implements [ledger.Follower].
func (l *Ledger) Latest(ctx context.Context) (string, error) {
	if err := l.number(ctx); err != nil {
		return "", err
	}
	got, err := l.changes(ctx, ledger.Following{}, ledger.Place{})
	return got.last.Cursor(), err
}

// told is some changes, and which ones there are, from the oldest to the last.
type told struct {
	changes []ledger.Change
	oldest  int64
	last    ledger.Place
	at      *int64 // when that of the place happened, nil where it is not there
	untold  bool   // there are some that have no number yet
}

func (l *Ledger) changes(ctx context.Context, q ledger.Following, after ledger.Place) (got told, err error) {
	statement, args := "changes", []any{after.N, int64(q.Limit)}
	if q.Tenant != "" {
		statement, args = "changes of a tenant", append(args, q.Tenant)
	}
	err = l.read(ctx, l.sql[statement], args, func(rows pgx.Rows) error {
		got = told{}
		var s state
		for rows.Next() {
			var c ledger.Change
			var n, ns int64
			err := rows.Scan(append(s.dest(), &got.last.N, &got.last.Mark, &got.oldest, &got.at, &got.untold, &n, &ns, &c.Tenant, (*string)(&c.ID), &c.Seq,
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

// number gives numbers to all changes that have none, a part at a time. Where
// somebody else is at it for long, it is left to them.
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

// number must ask in two statements: the second one sees what was committed
// before the lock was had, the first one does not.
func (t *tx) number(before, last *int64) error {
	if err := t.pgx.QueryRow(t.ctx, t.l.sql["changes_lock"], t.l.args()...).Scan(before); err != nil {
		return err
	}
	return t.pgx.QueryRow(t.ctx, t.l.sql["changes_number"], t.l.args(int64(maxNumbered), *before)...).Scan(last)
}

// History implements [ledger.Historian].
func (l *Ledger) History(ctx context.Context, q ledger.Past) ([]ledger.Span, error) {
	q, err := q.Checked()
	if err == nil {
		err = l.number(ctx)
	}
	if err != nil {
		return nil, err
	}
	var counts []ledger.Counted
	args := []any{q.Tenant, nanos(q.Since), nanos(q.Until), int64(q.Step)}
	err = l.read(ctx, l.sql["history"], args, func(rows pgx.Rows) error {
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

// pruneChanges forgets changes that are too old to be followed, in short
// transactions. Those that nobody has followed yet are given their place first.
func (l *Ledger) pruneChanges(ctx context.Context) (forgotten int, err error) {
	if err := l.number(ctx); err != nil {
		return 0, err
	}
	for ended := false; !ended && forgotten < ledger.MaxChangesPruned; {
		gone := 0
		err := l.within(ctx, func(t *tx) (err error) {
			gone, err = t.forgetChanges(min(maxNumbered, ledger.MaxChangesPruned-forgotten))
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten, ended = forgotten+gone, gone < maxNumbered
	}
	return forgotten, nil
}

// forgetChanges forgets the oldest changes, so many at the most, up to the first
// that may still be wanted. One that lies ahead of the clock comes from before it
// was set right, and must not keep all behind it for ever.
func (t *tx) forgetChanges(most int) (gone int, err error) {
	s, err := t.l.lookIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.trusted(s)
	}
	if err != nil {
		return 0, err
	}
	last := int64(0)
	err = t.l.ask(t.ctx, t.pgx, t.l.sql["changes_old"], []any{int64(most)}, func(rows pgx.Rows) error {
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
	tag, err := t.pgx.Exec(t.ctx, t.l.sql["changes_forget"], t.l.args(last)...)
	return int(tag.RowsAffected()), err
}

// withDoors makes the statements of those who follow and search.
func (s statements) withDoors() {
	changes := s["changes"]
	s["changes"] = strings.ReplaceAll(changes, "{of}", "x.n > $1::bigint")
	s["changes of a tenant"] = strings.ReplaceAll(changes, "{of}", "x.n > $1::bigint AND x.tenant = $3::text")
	word, states, search := s["search_word"], s["search_states"], s["search"]
	for _, part := range []string{"search_word", "search_states", "search"} {
		delete(s, part)
	}
	for _, d := range []struct{ name, direction, backwards, behind string }{
		{" newest", "DESC", "ASC", "<"}, {" oldest", "ASC", "DESC", ">"},
	} {
		for name, walk := range map[string]string{
			"state": states, "workflow": word, "correlation_id": word, "idempotency_key": word, "key_digest": word,
		} {
			said := " AND s." + name + " <> ''"
			if name == "workflow" {
				said = ""
			}
			s["search "+name+d.name] = strings.NewReplacer("{word}", name, "{said}", said,
				"{direction}", d.direction, "{backwards}", d.backwards, "{behind}", d.behind).
				Replace(strings.ReplaceAll(search, "{walk}", strings.TrimSpace(walk)))
		}
	}
}
