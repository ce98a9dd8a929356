package postgres

import (
	"cmp"
	"context"
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
	return t.exec("insert_marks", nanos(t.now), texts)
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

// held reports whether a sealer has begun, and keeps one from beginning before the transaction
// ends: what it prunes meanwhile need not be sealed.
func (t *tx) held() (sealing bool, err error) {
	err = t.pgx.QueryRow(t.ctx, t.l.sql.Text("hold_sealing"), t.l.args()...).Scan(&sealing)
	return sealing, err
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

// BeginSealing implements [ledger.Feed]. It waits for transactions that prune ([tx.held]).
func (l *Ledger) BeginSealing(ctx context.Context) (since time.Time, err error) {
	err = l.within(ctx, func(t *tx) error {
		sealing, kept, err := t.lockSealing()
		if kept != 0 {
			since = at(kept)
		}
		if err != nil || sealing {
			return err
		}
		return cmp.Or(t.exec("begin_sealing"), t.exec("delete_pruned_unsealed"))
	})
	return since, err
}

func (t *tx) lockSealing() (sealing bool, keptSince int64, err error) {
	err = t.pgx.QueryRow(t.ctx, t.l.sql.Text("lock_sealing"), t.l.args()...).Scan(&sealing, &keptSince)
	return sealing, keptSince, err
}

// forgetUnsealed deletes old rows as long as no sealer has begun.
func (t *tx) forgetUnsealed(most int) (gone int, err error) {
	sealing, _, err := t.lockSealing()
	if err != nil || sealing {
		return 0, err
	}
	until := nanos(t.now.Add(-ledger.ChangesKept))
	err = t.pgx.QueryRow(t.ctx, t.l.sql.Text("delete_old_unsealed"), t.l.args(until, int64(most))...).Scan(&gone)
	return gone, err
}

// keepRun keeps the events of a change that one statement committed for the sealer of this process.
// Those of other transactions are read.
func (l *Ledger) keepRun(n int64, c change) {
	if len(c.events) == 0 || !l.recent.Kept() {
		return
	}
	run := driver.RunOf(c.rec, c.events)
	l.recent.Add(driver.Stretch{Write: n, First: run.First, Last: run.Last, At: nanos(c.events[len(c.events)-1].At)}, run)
}

// Sealed implements [ledger.Feed].
func (l *Ledger) Sealed(ctx context.Context, tickets []int64) error {
	if len(tickets) == 0 {
		return nil
	}
	err := l.within(ctx, func(t *tx) error { return t.exec("delete_unsealed", tickets) })
	if err == nil {
		l.recent.Drop(tickets)
	}
	return err
}

// Unsealed implements [ledger.Feed].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) ([]ledger.Run, error) {
	var runs []ledger.Run
	var lives spans
	l.recent.Begin()
	err := l.read(ctx, l.sql.Text("unsealed"), []any{after, int64(ledger.RunLimit(limit))}, func(rows pgx.Rows) error {
		runs, lives = nil, spans{}
		var s state
		for rows.Next() {
			run, of, err := scanRun(rows, &s)
			if err != nil {
				return err
			}
			if run.Ticket == 0 {
				continue
			}
			if run.Mark == nil && run.Unread == nil {
				if kept, known := l.recent.Known(of, run.Ticket); known {
					run = kept
				} else {
					lives.add(of.Write, run.First, run.Last, len(runs))
				}
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

// scanRun reads one row of what is not sealed, and which events it is about.
func scanRun(rows pgx.Rows, s *state) (run ledger.Run, of driver.Stretch, err error) {
	var mark *string
	err = rows.Scan(append(s.dest(), &run.Ticket, &of.At, &of.Write, &run.ID, &run.First, &run.Last, &mark, &run.Tenant, (*[]byte)(&run.Intent))...)
	switch {
	case err != nil:
	case mark != nil:
		return ledger.RunOf(run.Ticket, []byte(*mark)), of, nil
	case run.Ticket != 0 && run.Tenant == "":
		run = ledger.Run{Ticket: run.Ticket, Unread: fmt.Errorf("%w: write %s has events that were not sealed, and is gone", ledger.ErrCorrupt, run.ID)}
	}
	of.First, of.Last = run.First, run.Last
	return run, of, err
}

// spans are ranges of events of writes, and the run that each belongs to.
type spans struct{ writes, first, last, of []int64 }

func (s *spans) add(n, first, last int64, of int) {
	s.writes, s.first, s.last, s.of = append(s.writes, n), append(s.first, first), append(s.last, last), append(s.of, int64(of))
}

// spanned reads the events of spans.
func (l *Ledger) spanned(ctx context.Context, s spans, take func(i int, e ledger.Event, unread error)) error {
	type read struct {
		i      int64
		e      ledger.Event
		unread error
	}
	if len(s.writes) == 0 {
		return nil
	}
	var all []read
	err := l.read(ctx, l.sql.Text("unsealed_events"), []any{s.writes, s.first, s.last}, func(rows pgx.Rows) error {
		all = nil
		for rows.Next() {
			var ord int64
			var body string
			var evidence, mismatches []byte
			if err := rows.Scan(&ord, &body, &evidence, &mismatches); err != nil {
				return err
			}
			f := read{i: s.of[ord-1]}
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
