package sqlite

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/papers_all.sql
var sqlPapersAll string

//go:embed sql/papers_state.sql
var sqlPapersState string

//go:embed sql/papers_subject.sql
var sqlPapersSubject string

//go:embed sql/papers_trace.sql
var sqlPapersTrace string

//go:embed sql/papers_binder.sql
var sqlPapersBinder string

//go:embed sql/numbered_paper.sql
var sqlNumberedPaper string

//go:embed sql/due_papers.sql
var sqlDuePapers string

// count makes of a query for the numbers of papers one for how many there are.
func count(query string) string { return "SELECT count(*) FROM (" + query + ")" }

// FindPapers implements [ledger.Papers]. The count walks through all that is
// selected, in an index.
func (l *Ledger) FindPapers(ctx context.Context, q ledger.PaperQuery) (found []ledger.Paper, total int, err error) {
	if q, err = q.Checked(); err != nil {
		return nil, 0, err
	}
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		numbers, all, err := l.selected(conn, q)
		if err != nil {
			return err
		}
		total = all
		found, err = l.numberedPapers(conn, numbers, clamp(l.now(), newest))
		return err
	})
	return found, total, err
}

// selected is the numbers of the papers on a page, and how many there are in
// all, by the index that narrows most.
func (l *Ledger) selected(conn *sqlite.Conn, q ledger.PaperQuery) (page []int64, total int, err error) {
	query, by := sqlPapersAll, ""
	switch {
	case q.Binder != "":
		query, by = sqlPapersBinder, q.Binder
	case q.Trace != "":
		query, by = sqlPapersTrace, q.Trace
	case q.Subject != "":
		query, by = sqlPapersSubject, q.Subject
	case len(q.States) > 0:
		return l.inStates(conn, q)
	}
	return l.numbers(conn, query, by, q)
}

// inStates merges the newest of each state.
func (l *Ledger) inStates(conn *sqlite.Conn, q ledger.PaperQuery) (page []int64, total int, err error) {
	one := q
	one.Offset, one.Limit = 0, q.Offset+q.Limit
	for _, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
		numbers, all, err := l.numbers(conn, sqlPapersState, state, one)
		if err != nil {
			return nil, 0, err
		}
		page, total = append(page, numbers...), total+all
	}
	slices.Sort(page)
	slices.Reverse(page)
	return page[min(q.Offset, len(page)):min(q.Offset+q.Limit, len(page))], total, nil
}

// numbers runs a query for a page, and counts what it would find without one.
func (l *Ledger) numbers(conn *sqlite.Conn, query, by string, q ledger.PaperQuery) (page []int64, total int, err error) {
	states, err := json.Marshal(append([]string{}, q.States...))
	if err != nil {
		return nil, 0, err
	}
	run := func(query string, limit, offset int, take func(int64)) error {
		s, err := l.statement(conn, query)
		if err != nil {
			return err
		}
		for i, text := range []string{q.Tenant, q.Kind, by, q.Subject, q.Trace, string(states)} {
			s.BindText(1+i, text)
		}
		s.BindInt64(7, int64(limit))
		s.BindInt64(8, int64(offset))
		return each(l.path, s, func() error { take(s.ColumnInt64(0)); return nil })
	}
	if err := run(count(query), -1, 0, func(n int64) { total = int(n) }); err != nil || total <= q.Offset {
		return nil, total, err
	}
	err = run(query, q.Limit, q.Offset, func(n int64) { page = append(page, n) })
	return page, total, err
}

func (l *Ledger) numberedPapers(conn *sqlite.Conn, numbers []int64, now time.Time) (found []ledger.Paper, err error) {
	s, err := l.statement(conn, sqlNumberedPaper)
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		s.BindInt64(1, n)
		err := each(l.path, s, func() error {
			_, p := scanPaper(s, now)
			found = append(found, p)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// DuePapers implements [ledger.Papers].
func (l *Ledger) DuePapers(ctx context.Context, kind string, limit int) (due []ledger.Paper, now time.Time, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		now = clamp(l.now(), newest)
		s, err := l.statement(conn, sqlDuePapers)
		if err != nil {
			return err
		}
		s.BindText(1, kind)
		bindTime(s, 2, now)
		s.BindInt64(3, int64(ledger.DueLimit(limit)))
		return each(l.path, s, func() error {
			_, p := scanPaper(s, now)
			due = append(due, p)
			return nil
		})
	})
	return due, now, err
}
