package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// run executes a statement that is rarely used.
func (t *tx) run(query string, args ...any) error {
	return explain(t.path, sqlitex.Execute(t.conn, query, &sqlitex.ExecOptions{Args: args}))
}

// insertRun inserts the row that says which events of a write are not sealed.
func (t *tx) insertRun(n int64, events []ledger.Event) error {
	if !t.sealing || len(events) == 0 || n > t.backfilled.writes {
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

// insertMark inserts the row of a mark, if there is one.
func (t *tx) insertMark(m *ledger.Mark, err error) error {
	if !t.sealing || m == nil || err != nil {
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

// insertDocumentMark inserts the mark of a document that was written.
func (t *tx) insertDocumentMark(n int64, p ledger.Document) error {
	if !t.sealing || n > t.backfilled.documents {
		return nil
	}
	return t.insertMark(p.CommitMark())
}

// unsealedWrites returns the numbers of the writes with unsealed events. All says that there are
// too many: then pruning waits for the sealer.
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
	}
	return nil
}

// Unsealed implements [ledger.Feed].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) (runs []ledger.Run, err error) {
	limit = ledger.RunLimit(limit)
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		if _, err := l.clock(conn); err != nil {
			return err
		}
		s, err := l.statement(conn, "unsealed")
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

// unsealed returns one run, without its events. An error that concerns only this run is stored in
// it.
func (l *Ledger) unsealed(conn *sqlite.Conn, s *sqlite.Stmt) (run ledger.Run, err error) {
	n := s.ColumnInt64(1)
	switch {
	case !s.ColumnIsNull(4):
		if run = ledger.RunOf(s.ColumnInt64(0), text(s, 4)); run.Mark != nil && run.Mark.Kind == ledger.MarkBackfilled {
			return l.backfilledDocument(conn, *run.Mark)
		}
		return run, nil
	case s.ColumnIsNull(5):
		return run, damaged(fmt.Errorf("%w: a write with number %d has events that were not sealed, and is gone", ledger.ErrCorrupt, n))
	}
	run = ledger.Run{Tenant: s.ColumnText(6), ID: ledger.ID(s.ColumnText(5)), First: s.ColumnInt64(2), Last: s.ColumnInt64(3)}
	if run.Backfilled = run.First == 0; run.Backfilled {
		run.First = 1
	}
	if run.Backfilled && s.ColumnBool(7) {
		run.Mark, err = l.backfilledTombstone(conn, n)
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

// backfilledDocument returns the mark of a document that existed when sealing was switched on, in its
// present version. A missing one was dropped since, and that has a mark.
func (l *Ledger) backfilledDocument(conn *sqlite.Conn, m ledger.Mark) (run ledger.Run, err error) {
	s, err := l.statement(conn, "document")
	if err != nil {
		return run, err
	}
	bindDocumentName(s, 1, m.Tenant, m.DocumentKind, m.DocumentID)
	err = each(l.path, s, func() error {
		_, p := scanDocument(s, time.Time{})
		mark, err := p.BackfillMark()
		run = ledger.Run{Tenant: p.Tenant, Mark: mark, Backfilled: true}
		return err
	})
	return run, err
}

// backfilledTombstone returns the mark of a tombstone that existed when sealing was switched on.
func (l *Ledger) backfilledTombstone(conn *sqlite.Conn, n int64) (mark *ledger.Mark, err error) {
	s, err := l.statement(conn, "numbered")
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, n)
	err = each(l.path, s, func() error {
		r, err := scan(s, 0)
		if err == nil {
			mark, err = ledger.BackfillTombstone(r.rec)
		}
		return err
	})
	return mark, err
}
