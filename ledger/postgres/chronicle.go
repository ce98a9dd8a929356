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

var _ ledger.Chronicler = (*Ledger)(nil)

// chronicleFrom is the version of the oldest program that remembers what is not
// sealed, and knows what has still to be found.
const chronicleFrom = 5

// mark leaves marks for whoever seals.
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
	return t.exec("mark", texts)
}

// filedMark is the mark of a paper that a filing writes, as a parameter; "" for
// none.
func filedMark(p ledger.Paper) string {
	p.Version++
	m, err := p.Filed()
	if err != nil || m == nil {
		return "" // a paper that was checked can be digested
	}
	text, err := m.Encode()
	if err != nil {
		return ""
	}
	return text
}

// unsealedWrites are the numbers of those with events that are not sealed. All
// says that there are too many: then it is waited for whoever seals.
func (t *tx) unsealedWrites() (numbers map[int64]bool, all bool, err error) {
	rows, err := t.pgx.Query(t.ctx, t.l.sql["unsealed_writes"], t.l.args(int64(maxUnsealed))...)
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

// foundTo is up to which write the ledger was gone over, where what is not sealed is
// remembered: what lies behind it waits to be found.
func (t *tx) foundTo() (id string, err error) {
	err = t.pgx.QueryRow(t.ctx, t.l.sql["found_to"], t.l.args()...).Scan(&id)
	return id, err
}

// Sealed implements [ledger.Chronicler].
func (l *Ledger) Sealed(ctx context.Context, tickets []int64) error {
	if len(tickets) == 0 {
		return nil
	}
	return l.within(ctx, func(t *tx) error { return t.exec("sealed", tickets) })
}

// Unsealed implements [ledger.Chronicler].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) ([]ledger.Run, error) {
	var runs []ledger.Run
	var lives spans
	err := l.read(ctx, l.sql["unsealed"], []any{after, int64(ledger.RunLimit(limit))}, func(rows pgx.Rows) error {
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
		if m := runs[i].Mark; m != nil && m.Kind == ledger.MarkFound {
			runs[i], err = l.foundPaper(ctx, runs[i].Ticket, *m)
		}
	}
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// withoutSealed leaves nothing but the ticket of runs that somebody has sealed since
// they were found: their events may have been forgotten before they were read.
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
	err := l.read(ctx, l.sql["unsealed_still"], []any{short}, func(rows pgx.Rows) (err error) {
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

// scanRun reads one row of what is not sealed. What is wrong with it alone is
// said in it.
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
	if run.Found = run.First == 0; run.Found {
		run.First = 1
	}
	if run.Found && r.rec.Tombstone {
		run.Mark, err = ledger.FoundBuried(r.rec)
	} else if run.First == 1 {
		run.Intent = r.rec.Intent
	}
	return run, n, err
}

// foundPaper is the mark of a paper that was there when sealing was switched on,
// as it is now. One that is gone has been dropped since, and that has a mark.
func (l *Ledger) foundPaper(ctx context.Context, ticket int64, m ledger.Mark) (ledger.Run, error) {
	p, err := l.Paper(ctx, m.Tenant, m.PaperKind, m.PaperID)
	if errors.Is(err, ledger.ErrNoPaper) {
		return ledger.Run{Ticket: ticket}, nil
	}
	run := ledger.Run{Ticket: ticket, Tenant: m.Tenant, Found: true}
	if err == nil {
		run.Mark, err = p.Found()
	}
	return run, err
}

// spans are parts of the lives of writes, and whose they are.
type spans struct{ writes, first, last, of []int64 }

func (s *spans) add(n, first, last int64, of int) {
	s.writes, s.first, s.last, s.of = append(s.writes, n), append(s.first, first), append(s.last, last), append(s.of, int64(of))
}

// spanned reads the events of spans.
func (l *Ledger) spanned(ctx context.Context, s spans, take func(i int, e ledger.Event, unread error)) error {
	type found struct {
		i      int64
		e      ledger.Event
		unread error
	}
	if len(s.writes) == 0 {
		return nil
	}
	var all []found
	err := l.read(ctx, l.sql["unsealed_events"], []any{s.writes, s.first, s.last}, func(rows pgx.Rows) error {
		all = nil
		for rows.Next() {
			var ord int64
			var body string
			var evidence, mismatches []byte
			if err := rows.Scan(&ord, &body, &evidence, &mismatches); err != nil {
				return err
			}
			f := found{i: s.of[ord-1]}
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

var _ ledger.Witness = (*Ledger)(nil)

// Tenants implements [ledger.Witness].
func (l *Ledger) Tenants(ctx context.Context) ([]string, error) { return l.names(ctx, "tenants") }

// Foreign implements [ledger.Witness]. No migration makes a trigger or a rule.
func (l *Ledger) Foreign(ctx context.Context) ([]string, error) { return l.names(ctx, "foreign") }

// names are the values of the first column of a query.
func (l *Ledger) names(ctx context.Context, query string) (names []string, err error) {
	err = l.read(ctx, l.sql[query], nil, func(rows pgx.Rows) (err error) {
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

// Lives implements [ledger.Witness]. The events of a write are at least those
// that it had when its record was read.
func (l *Ledger) Lives(ctx context.Context, after ledger.ID, limit int) (lives []ledger.Life, err error) {
	found, err := l.rows(ctx, "lives", string(after), int64(ledger.RunLimit(limit)))
	parts := spans{}
	for i, r := range found {
		lives = append(lives, ledger.Life{Record: r.rec, Unread: r.unread})
		parts.add(r.n, -1<<62, 1<<62, i)
	}
	if err == nil {
		err = l.spanned(ctx, parts, func(i int, e ledger.Event, unread error) {
			lives[i].Events = append(lives[i].Events, e)
			if unread != nil {
				lives[i].Unread = fmt.Errorf("write %s: %w", lives[i].Record.ID, unread)
			}
		})
	}
	return lives, err
}

// Kept implements [ledger.Witness].
func (l *Ledger) Kept(ctx context.Context, after ledger.Paper, limit int) ([]ledger.Paper, error) {
	args := []any{after.Tenant, after.Kind, after.ID, ledger.AuditKind, int64(ledger.RunLimit(limit))}
	found, _, err := l.papers(ctx, "kept", args)
	return found, err
}

// dropped are the marks of papers that are forgotten.
func (n names) dropped(p ledger.Prune, now time.Time) (marks []*ledger.Mark) {
	for i := range n.ids {
		marks = append(marks, p.Dropped(n.tenants[i], n.kinds[i], n.ids[i], now))
	}
	return marks
}
