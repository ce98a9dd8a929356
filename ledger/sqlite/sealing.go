package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const (
	// maxTogether is the initial capacity for the events of a run: most commits hold only a few.
	maxTogether = 16

	// maxUnsealed is how many unsealed rows a pruning reads to skip the writes that they are of:
	// some milliseconds. Where there are more, sealing has stopped or has just begun, and pruning
	// waits for it.
	maxUnsealed = 10_000
)

// recentRun is a run that the current transaction commits.
type recentRun struct {
	driver.Stretch
	ledger.Run
}

// run executes a statement that is rarely used.
func (t *tx) run(query string, args ...any) error {
	return explain(t.path, sqlitex.Execute(t.conn, query, &sqlitex.ExecOptions{Args: args}))
}

// insertRun inserts the row that says which events of a write are not sealed.
func (t *tx) insertRun(n int64, of ledger.Record, events []ledger.Event) error {
	if len(events) == 0 {
		return nil
	}
	s, last := t.unsealedRun, events[len(events)-1]
	t.ticket++
	s.BindInt64(1, t.ticket)
	bindTime(s, 2, last.At)
	s.BindInt64(3, n)
	s.BindInt64(4, events[0].Seq)
	s.BindInt64(5, last.Seq)
	s.BindNull(6)
	if t.sealing && t.recent.Kept() {
		run := driver.RunOf(of, slices.Clone(events))
		run.Ticket = t.ticket
		t.runs = append(t.runs, recentRun{driver.Stretch{Write: n, First: run.First, Last: run.Last, At: nanos(last.At)}, run})
	}
	return exec(t.path, s)
}

// insertMark inserts the row of a mark, if there is one.
func (t *tx) insertMark(m *ledger.Mark, err error) error {
	if m == nil || err != nil {
		return err
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	s := t.unsealedRun
	t.ticket++
	s.BindInt64(1, t.ticket)
	s.BindInt64(2, t.newest)
	s.BindNull(3)
	s.BindInt64(4, 0)
	s.BindInt64(5, 0)
	s.BindText(6, text)
	return exec(t.path, s)
}

// BeginSealing implements [ledger.Feed]. It is one transaction, so that no pruning deletes rows
// that it takes for kept.
func (l *Ledger) BeginSealing(ctx context.Context) (since time.Time, err error) {
	was := int64(0) // read only when it is done
	err = l.writer.do(ctx, func(t *tx) error {
		if was = t.keptSince; t.sealing {
			return nil
		}
		t.wrote, t.sealing = true, true
		return errors.Join(t.run("UPDATE ledger_meta SET sealing = 1"), t.run(statements.Text("delete_pruned_unsealed")))
	})
	if err != nil || was == 0 {
		return time.Time{}, err
	}
	return time.Unix(0, was).UTC(), nil
}

// forgetUnsealed deletes old rows as long as no sealer has begun.
func (t *tx) forgetUnsealed(most int) (gone int, err error) {
	now, err := t.trust()
	if err != nil || t.sealing {
		return 0, err
	}
	s := t.oldUnsealed
	bindTime(s, 1, now.Add(-ledger.ChangesKept))
	s.BindInt64(2, int64(most))
	err = each(t.path, s, func() error {
		gone++
		t.keptSince = max(t.keptSince, s.ColumnInt64(0))
		return nil
	})
	if err != nil || gone == 0 {
		return gone, err
	}
	t.wrote = true
	return gone, t.run("UPDATE ledger_meta SET kept_since = ?1", t.keptSince)
}

// unsealedWrites returns the numbers of the writes with events that a sealer has yet to seal. All
// says that there are too many: then pruning waits for the sealer.
func (t *tx) unsealedWrites() (numbers map[int64]bool, all bool, err error) {
	if !t.sealing {
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

// dropped returns the mark of a row of a statement that deletes documents.
func (t *tx) dropped(s *sqlite.Stmt, p ledger.Prune, now time.Time) (marks []*ledger.Mark, gone int, err error) {
	err = each(t.path, s, func() error {
		gone++
		marks = append(marks, p.Dropped(s.ColumnText(0), s.ColumnText(1), s.ColumnText(2), now))
		return nil
	})
	return marks, gone, err
}

// Sealed implements [ledger.Feed]. Tickets without gaps are deleted by one statement.
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
		l.writer.tx.recent.Drop(part)
	}
	return nil
}

// Unsealed implements [ledger.Feed].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) (runs []ledger.Run, err error) {
	recent := &l.writer.tx.recent
	recent.Begin()
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		if _, err := l.clock(conn); err != nil {
			return err
		}
		rows, err := l.unsealedRows(conn, after, ledger.RunLimit(limit))
		for i := 0; i < len(rows) && err == nil; {
			if run, known := recent.Known(rows[i].Stretch, rows[i].Ticket); known {
				runs = append(runs, run)
				i++
				continue
			}
			from := rows[i].Ticket
			for i++; i < len(rows); i++ {
				if _, known := recent.Known(rows[i].Stretch, rows[i].Ticket); known {
					break
				}
			}
			runs, err = l.readRuns(conn, from, rows[i-1].Ticket, runs)
		}
		return err
	})
	return runs, err
}

// unsealedRows returns what the rows of runs say, without their events.
func (l *Ledger) unsealedRows(conn *sqlite.Conn, after int64, limit int) (rows []recentRun, err error) {
	s, err := l.statement(conn, "unsealed_tickets")
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, after)
	s.BindInt64(2, int64(limit))
	err = each(l.path, s, func() error {
		rows = append(rows, recentRun{
			driver.Stretch{Write: s.ColumnInt64(1), First: s.ColumnInt64(2), Last: s.ColumnInt64(3), At: s.ColumnInt64(4)}, ledger.Run{Ticket: s.ColumnInt64(0)},
		})
		return nil
	})
	return rows, err
}

// readRuns reads the runs from one ticket to another.
func (l *Ledger) readRuns(conn *sqlite.Conn, from, to int64, runs []ledger.Run) ([]ledger.Run, error) {
	s, err := l.statement(conn, "unsealed")
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, from)
	s.BindInt64(2, to)
	err = each(l.path, s, func() error {
		if ticket := s.ColumnInt64(0); len(runs) == 0 || runs[len(runs)-1].Ticket != ticket {
			run := unsealedRun(s)
			run.Ticket = ticket
			runs = append(runs, run)
		}
		addEvent(s, &runs[len(runs)-1])
		return nil
	})
	return runs, err
}

// unsealedRun returns the run of a row, without its events. An error that concerns only this run
// is stored in it.
func unsealedRun(s *sqlite.Stmt) ledger.Run {
	switch {
	case !s.ColumnIsNull(4):
		return ledger.RunOf(s.ColumnInt64(0), text(s, 4))
	case s.ColumnIsNull(5):
		return ledger.Run{Unread: damaged(fmt.Errorf("%w: a write with number %d has events that were not sealed, and is gone", ledger.ErrCorrupt, s.ColumnInt64(1)))}
	}
	return ledger.Run{Tenant: s.ColumnText(6), ID: ledger.ID(s.ColumnText(5)), First: s.ColumnInt64(2), Last: s.ColumnInt64(3), Intent: text(s, 7)}
}

// addEvent adds the event of a row to its run, if there is one.
func addEvent(s *sqlite.Stmt, run *ledger.Run) {
	const event = 8
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
	s, err := l.statement(conn, "run_events")
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
