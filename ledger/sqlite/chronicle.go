package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

//go:embed sql/unsealed_run.sql
var sqlUnsealedRun string

//go:embed sql/unsealed.sql
var sqlUnsealed string

//go:embed sql/unsealed_writes.sql
var sqlUnsealedWrites string

//go:embed sql/sealed.sql
var sqlSealed string

//go:embed sql/run_events.sql
var sqlRunEvents string

var _ ledger.Chronicler = (*Ledger)(nil)

// chronicleFrom is the version of the oldest program that remembers what is not
// sealed, and knows what has still to be found.
const chronicleFrom = 6

// run executes what is rarely run.
func (t *tx) run(query string, args ...any) error {
	return explain(t.path, sqlitex.Execute(t.conn, query, &sqlitex.ExecOptions{Args: args}))
}

// leaveRun leaves the row that says which events of a write are not sealed.
func (t *tx) leaveRun(n int64, events []ledger.Event) error {
	if !t.chronicle || len(events) == 0 || n > t.found.writes {
		return nil
	}
	t.ticket++
	s := t.unsealedRun
	s.BindInt64(1, t.ticket)
	s.BindInt64(2, n)
	s.BindInt64(3, events[0].Seq)
	s.BindInt64(4, events[len(events)-1].Seq)
	s.BindNull(5)
	return exec(t.path, s)
}

// leaveMark leaves the row of a mark, if there is one.
func (t *tx) leaveMark(m *ledger.Mark, err error) error {
	if !t.chronicle || m == nil || err != nil {
		return err
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	t.ticket++
	s := t.unsealedRun
	s.BindInt64(1, t.ticket)
	s.BindNull(2)
	s.BindInt64(3, 0)
	s.BindInt64(4, 0)
	s.BindText(5, text)
	return exec(t.path, s)
}

// leaveFiled leaves the mark of a paper that was filed.
func (t *tx) leaveFiled(n int64, p ledger.Paper) error {
	if !t.chronicle || n > t.found.papers {
		return nil
	}
	return t.leaveMark(p.Filed())
}

// unsealedWrites are the numbers of those with events that are not sealed. All
// says that there are too many: then it is waited for whoever seals.
func (t *tx) unsealedWrites() (numbers map[int64]bool, all bool, err error) {
	if !t.chronicle {
		return nil, false, nil
	}
	numbers = make(map[int64]bool)
	rows := 0
	t.unsealedOnes.BindInt64(1, maxUnsealed)
	err = each(t.path, t.unsealedOnes, func() error {
		rows++
		numbers[t.unsealedOnes.ColumnInt64(0)] = true
		return nil
	})
	return numbers, rows == maxUnsealed, err
}

// dropped is a row of a statement that forgets papers.
func (t *tx) dropped(s *sqlite.Stmt, p ledger.Prune, now time.Time) (marks []*ledger.Mark, gone int, err error) {
	err = each(t.path, s, func() error {
		gone++
		marks = append(marks, p.Dropped(s.ColumnText(0), s.ColumnText(1), s.ColumnText(2), now))
		return nil
	})
	return marks, gone, err
}

// Sealed implements [ledger.Chronicler]. Tickets without a gap between them go in
// one statement.
func (l *Ledger) Sealed(ctx context.Context, tickets []int64) error {
	tickets = slices.Clone(tickets)
	slices.Sort(tickets)
	for len(tickets) > 0 {
		part := tickets[:min(len(tickets), maxChanges)]
		tickets = tickets[len(part):]
		err := l.writer.do(ctx, func(t *tx) error {
			t.wrote = true
			for from := 0; from < len(part); {
				to := from
				for to+1 < len(part) && part[to+1] <= part[to]+1 {
					to++
				}
				t.sealed.BindInt64(2, part[from])
				if err := t.onRow(t.sealed, part[to]); err != nil {
					return err
				}
				from = to + 1
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Unsealed implements [ledger.Chronicler].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) (runs []ledger.Run, err error) {
	limit = ledger.RunLimit(limit)
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		if _, err := l.clock(conn); err != nil {
			return err
		}
		s, err := l.statement(conn, sqlUnsealed)
		if err != nil {
			return err
		}
		s.BindInt64(1, after)
		err = each(l.path, s, func() error {
			if ticket := s.ColumnInt64(0); len(runs) == 0 || runs[len(runs)-1].Ticket != ticket {
				if len(runs) == limit {
					return errEnough
				}
				run, err := l.unsealed(conn, s)
				if err != nil {
					if !ofOneRow(err) {
						return err
					}
					run = ledger.Run{Unread: err}
				}
				run.Ticket = ticket
				runs = append(runs, run)
			}
			addEvent(s, &runs[len(runs)-1])
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return runs, err
}

// unsealed is one run, without its events. What is wrong with it alone is said in
// it.
func (l *Ledger) unsealed(conn *sqlite.Conn, s *sqlite.Stmt) (run ledger.Run, err error) {
	n := s.ColumnInt64(1)
	switch {
	case !s.ColumnIsNull(4):
		if run = ledger.RunOf(s.ColumnInt64(0), text(s, 4)); run.Mark != nil && run.Mark.Kind == ledger.MarkFound {
			return l.foundPaper(conn, *run.Mark)
		}
		return run, nil
	case s.ColumnIsNull(5):
		return run, damaged(fmt.Errorf("%w: a write with number %d has events that were not sealed, and is gone", ledger.ErrCorrupt, n))
	}
	run = ledger.Run{Tenant: s.ColumnText(6), ID: ledger.ID(s.ColumnText(5)), First: s.ColumnInt64(2), Last: s.ColumnInt64(3)}
	if run.Found = run.First == 0; run.Found {
		run.First = 1
	}
	if run.Found && s.ColumnBool(7) {
		run.Mark, err = l.foundStone(conn, n)
		return run, err
	}
	run.Intent = text(s, 8)
	return run, nil
}

// addEvent adds the event of a row to its run, if there is one.
func addEvent(s *sqlite.Stmt, run *ledger.Run) {
	const event = 9
	if run.Unread != nil || s.ColumnIsNull(event) {
		return
	}
	e, err := scanEvent(s, event)
	if err != nil {
		*run = ledger.Run{Ticket: run.Ticket, Unread: damaged(fmt.Errorf("write %s: %w", run.ID, err))}
		return
	}
	if run.Events == nil && run.Last-run.First < maxTogether {
		run.Events = make([]ledger.Event, 0, max(run.Last-run.First+1, 1))
	}
	run.Events = append(run.Events, e)
}

func (l *Ledger) runEvents(conn *sqlite.Conn, n int64, run ledger.Run) (events []ledger.Event, err error) {
	s, err := l.statement(conn, sqlRunEvents)
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, n)
	s.BindInt64(2, run.First)
	s.BindInt64(3, run.Last)
	err = each(l.path, s, func() error {
		e, err := scanEvent(s, 0)
		if err != nil {
			return damaged(fmt.Errorf("write %s: %w", run.ID, err))
		}
		events = append(events, e)
		return nil
	})
	return events, err
}

// foundPaper is the mark of a paper that was there when sealing was switched on,
// as it is now. One that is gone has been dropped since, and that has a mark.
func (l *Ledger) foundPaper(conn *sqlite.Conn, m ledger.Mark) (run ledger.Run, err error) {
	s, err := l.statement(conn, sqlPaper)
	if err != nil {
		return run, err
	}
	bindPaperName(s, 1, m.Tenant, m.PaperKind, m.PaperID)
	err = each(l.path, s, func() error {
		_, p := scanPaper(s, time.Time{})
		mark, err := p.Found()
		run = ledger.Run{Tenant: p.Tenant, Mark: mark, Found: true}
		return err
	})
	return run, err
}

// foundStone is the mark of a tombstone that was there when sealing was switched
// on.
func (l *Ledger) foundStone(conn *sqlite.Conn, n int64) (mark *ledger.Mark, err error) {
	s, err := l.statement(conn, sqlNumbered)
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, n)
	err = each(l.path, s, func() error {
		r, err := scan(s, 0)
		if err == nil {
			mark, err = ledger.FoundBuried(r.rec)
		}
		return err
	})
	return mark, err
}
