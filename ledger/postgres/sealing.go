package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// maxUnsealed is how many unsealed rows a pruning reads to skip the writes that they are of:
// some milliseconds. Where there are more, sealing has stopped or has just begun, and pruning
// waits for it.
const maxUnsealed = 10_000

// mark inserts marks for the sealer.
func (t *tx) mark(marks ...*ledger.Mark) error {
	var texts []string
	for _, m := range marks {
		if m == nil {
			continue
		}
		text, err := m.Encode()
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil
	}
	return t.exec("insert_marks", texts)
}

// commitMark returns the mark of a document that a batch writes, as a parameter; "" for none.
func commitMark(p ledger.Document) string {
	p.Version++
	m, err := p.CommitMark()
	if err != nil || m == nil {
		return "" // a checked document always has a digest
	}
	text, err := m.Encode()
	if err != nil {
		return ""
	}
	return text
}

// unsealedWrites returns the numbers of the writes with unsealed events. All says that there are
// too many: then pruning waits for the sealer.
func (t *tx) unsealedWrites() (numbers map[int64]bool, all bool, err error) {
	rows, err := t.pgx.Query(t.ctx, t.l.sql.Text("unsealed_writes"), t.l.args(int64(maxUnsealed))...)
	if err != nil {
		return nil, false, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	numbers = make(map[int64]bool, len(found))
	for _, n := range found {
		numbers[n] = true
	}
	return numbers, len(found) == maxUnsealed, err
}

// backfilledTo returns the last write that was backfilled, where unsealed events are recorded; later
// ones are still to be backfilled.
func (t *tx) backfilledTo() (id string, err error) {
	err = t.pgx.QueryRow(t.ctx, t.l.sql.Text("backfilled_to"), t.l.args()...).Scan(&id)
	return id, err
}

// Sealed implements [ledger.Feed].
func (l *Ledger) Sealed(ctx context.Context, tickets []int64) error {
	if len(tickets) == 0 {
		return nil
	}
	return l.within(ctx, func(t *tx) error { return t.exec("delete_unsealed", tickets) })
}

// Unsealed implements [ledger.Feed].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) ([]ledger.Run, error) {
	var runs []ledger.Run
	var lives spans
	err := l.read(ctx, l.sql.Text("unsealed"), []any{after, int64(ledger.RunLimit(limit))}, func(rows pgx.Rows) error {
		runs, lives = nil, spans{}
		var s state
		for rows.Next() {
			run, n, err := scanRun(rows, &s)
			if err != nil {
				return err
			}
			if run.Ticket == 0 {
				continue
			}
			if run.Mark == nil && run.Unread == nil {
				lives.add(n, run.First, run.Last, len(runs))
			}
			runs = append(runs, run)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
	if err == nil {
		err = l.spanned(ctx, lives, func(i int, e ledger.Event, unread error) {
			if runs[i].Events = append(runs[i].Events, e); unread != nil {
				runs[i] = ledger.Run{Ticket: runs[i].Ticket, Unread: unread}
			}
		})
	}
	if err == nil {
		err = l.withoutSealed(ctx, runs)
	}
	for i := 0; err == nil && i < len(runs); i++ {
		if m := runs[i].Mark; m != nil && m.Kind == ledger.MarkBackfilled {
			runs[i], err = l.backfilledDocument(ctx, runs[i].Ticket, *m)
		}
	}
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// withoutSealed keeps only the ticket of runs that were sealed since they were read: their events
// may have been pruned before they were read.
func (l *Ledger) withoutSealed(ctx context.Context, runs []ledger.Run) error {
	var short []int64
	for _, r := range runs {
		if r.Mark == nil && r.Unread == nil && int64(len(r.Events)) <= r.Last-r.First {
			short = append(short, r.Ticket)
		}
	}
	if len(short) == 0 {
		return nil
	}
	var still []int64
	err := l.read(ctx, l.sql.Text("still_unsealed"), []any{short}, func(rows pgx.Rows) (err error) {
		still, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	for i, r := range runs {
		if slices.Contains(short, r.Ticket) && !slices.Contains(still, r.Ticket) {
			runs[i] = ledger.Run{Ticket: r.Ticket}
		}
	}
	return err
}

// scanRun reads one row of what is not sealed. An error that concerns only this row is stored in
// the run.
func scanRun(rows pgx.Rows, s *state) (run ledger.Run, n int64, err error) {
	var id string
	var mark *string
	r, err := scanRow(rows, append(s.dest(), &run.Ticket, &n, &id, &run.First, &run.Last, &mark)...)
	switch {
	case mark != nil:
		return ledger.RunOf(run.Ticket, []byte(*mark)), 0, nil
	case err != nil && ofOneRow(err):
		return ledger.Run{Ticket: run.Ticket, Unread: err}, 0, nil
	case err != nil || run.Ticket == 0:
		return run, n, err
	case r.n == 0:
		return ledger.Run{Ticket: run.Ticket, Unread: fmt.Errorf("%w: write %s has events that were not sealed, and is gone", ledger.ErrCorrupt, id)}, 0, nil
	}
	run.Tenant, run.ID = r.rec.Tenant, r.rec.ID
	if run.Backfilled = run.First == 0; run.Backfilled {
		run.First = 1
	}
	if run.Backfilled && r.rec.Tombstone {
		run.Mark, err = ledger.BackfillTombstone(r.rec)
	} else if run.First == 1 {
		run.Intent = r.rec.Intent
	}
	return run, n, err
}

// backfilledDocument returns the mark of a document that existed when sealing was switched on, in its
// present version. A missing one was dropped since, and that has a mark.
func (l *Ledger) backfilledDocument(ctx context.Context, ticket int64, m ledger.Mark) (ledger.Run, error) {
	p, err := l.Document(ctx, m.Tenant, m.DocumentKind, m.DocumentID)
	if errors.Is(err, ledger.ErrNoDocument) {
		return ledger.Run{Ticket: ticket}, nil
	}
	run := ledger.Run{Ticket: ticket, Tenant: m.Tenant, Backfilled: true}
	if err == nil {
		run.Mark, err = p.BackfillMark()
	}
	return run, err
}

// spans are ranges of events of writes, and the run that each belongs to.
type spans struct{ writes, first, last, of []int64 }

func (s *spans) add(n, first, last int64, of int) {
	s.writes, s.first, s.last, s.of = append(s.writes, n), append(s.first, first), append(s.last, last), append(s.of, int64(of))
}

// spanned reads the events of spans.
func (l *Ledger) spanned(ctx context.Context, s spans, take func(i int, e ledger.Event, unread error)) error {
	type backfilled struct {
		i      int64
		e      ledger.Event
		unread error
	}
	if len(s.writes) == 0 {
		return nil
	}
	var all []backfilled
	err := l.read(ctx, l.sql.Text("unsealed_events"), []any{s.writes, s.first, s.last}, func(rows pgx.Rows) error {
		all = nil
		for rows.Next() {
			var ord int64
			var body string
			var evidence, mismatches []byte
			if err := rows.Scan(&ord, &body, &evidence, &mismatches); err != nil {
				return err
			}
			f := backfilled{i: s.of[ord-1]}
			f.unread = driver.Decode([]byte(body), &f.e)
			f.e.Evidence, f.e.Mismatches = evidence, mismatches
			all = append(all, f)
		}
		return rows.Err()
	})
	for _, f := range all {
		take(int(f.i), f.e, f.unread)
	}
	return err
}

// dropped returns the marks of deleted documents.
func (n names) dropped(p ledger.Prune, now time.Time) (marks []*ledger.Mark) {
	for i := range n.ids {
		marks = append(marks, p.Dropped(n.tenants[i], n.kinds[i], n.ids[i], now))
	}
	return marks
}
