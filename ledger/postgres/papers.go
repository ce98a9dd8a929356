package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

var _ ledger.Papers = (*Ledger)(nil)

// columnsOfPaper are those of a paper in the order in which scanPaper reads
// them; of the whole row NULL where there is none.
const columnsOfPaper = `p.version, p.tenant, p.kind, p.id, p.binder, p.subject, p.trace, p.state, p.due, p.done, p.body, p.created, p.updated`

// scanPaper reads the state of the database, whatever stands between, and a
// paper, if there is one. A time on the ledger's clock never lies behind the
// last change.
func (l *Ledger) scanPaper(rows pgx.Rows, s *state, between ...any) (p ledger.Paper, there bool, err error) {
	var version, due, created, updated *int64
	var tenant, kind, id, binder, subject, trace, word *string
	var done *bool
	dest := append(append(s.dest(), between...), &version, &tenant, &kind, &id, &binder, &subject, &trace, &word, &due, &done,
		(*[]byte)(&p.Body), &created, &updated)
	if err := rows.Scan(dest...); err != nil {
		return p, false, err
	}
	if err := l.usable(*s); err != nil || version == nil {
		return p, false, err
	}
	p.Version, p.Tenant, p.Kind, p.ID, p.Binder, p.Subject, p.Trace, p.State = *version, *tenant, *kind, *id, *binder, *subject, *trace, *word
	p.Done, p.Created, p.Updated = *done, at(*created), at(*updated)
	if due != nil {
		p.Due = time.Unix(0, *due).UTC()
	}
	p.Now = later(at(s.now), p.Updated)
	return p, true, nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// papers reads the papers of a statement that changes nothing.
func (l *Ledger) papers(ctx context.Context, statement string, args []any, between ...any) (found []ledger.Paper, s state, err error) {
	err = l.read(ctx, l.sql[statement], args, func(rows pgx.Rows) error {
		found, s = []ledger.Paper{}, state{}
		for rows.Next() {
			p, there, err := l.scanPaper(rows, &s, between...)
			if err != nil {
				return err
			}
			if there {
				found = append(found, p)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
	return found, s, err
}

// Paper implements [ledger.Papers].
func (l *Ledger) Paper(ctx context.Context, tenant, kind, id string) (ledger.Paper, error) {
	found, _, err := l.papers(ctx, "paper", []any{tenant, kind, id})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: %s %q", ledger.ErrNoPaper, kind, id)
	}
	if err != nil {
		return ledger.Paper{}, err
	}
	return found[0], nil
}

// DuePapers implements [ledger.Papers]. It fails with [ledger.ErrClock] when the
// clock stands too far before the newest entry.
func (l *Ledger) DuePapers(ctx context.Context, kind string, limit int) ([]ledger.Paper, time.Time, error) {
	found, s, err := l.papers(ctx, "papers_due", []any{kind, int64(ledger.DueLimit(limit))})
	if err == nil {
		err = l.trusted(s)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return found, at(s.now), nil
}

// FindPapers implements [ledger.Papers].
func (l *Ledger) FindPapers(ctx context.Context, q ledger.PaperQuery) (found []ledger.Paper, total int, err error) {
	q, err = q.Checked()
	if err != nil {
		return nil, 0, err
	}
	args := []any{q.Tenant, q.Kind, int64(q.Limit), int64(q.Offset)}
	for _, c := range conditions {
		if value, narrows := c.of(q); narrows {
			args = append(args, value)
		}
	}
	found, _, err = l.papers(ctx, listing(q), args, &total)
	return found, total, err
}

// conditions are by what a listing can be narrowed. Each listing has a text of
// its own with those that it wants: the database plans it once, and must know
// then by which index.
var conditions = []struct {
	name, text string
	of         func(q ledger.PaperQuery) (value any, narrows bool)
}{
	{"binder", "x.binder = %s::text AND x.binder <> ''", func(q ledger.PaperQuery) (any, bool) { return q.Binder, q.Binder != "" }},
	{"states", "x.state = ANY (%s::text[])", func(q ledger.PaperQuery) (any, bool) { return q.States, len(q.States) > 0 }},
	{"subject", "x.subject = %s::text", func(q ledger.PaperQuery) (any, bool) { return q.Subject, q.Subject != "" }},
	{"trace", "x.trace = %s::text AND x.trace <> ''", func(q ledger.PaperQuery) (any, bool) { return q.Trace, q.Trace != "" }},
}

// listing is the name of the statement of a listing.
func listing(q ledger.PaperQuery) string {
	name := "papers_found"
	for _, c := range conditions {
		if _, narrows := c.of(q); narrows {
			name += " " + c.name
		}
	}
	return name
}

// withPapers makes the statements of listings, and those that file papers.
func (s statements) withPapers() {
	for _, part := range []string{"papers_given", "papers_held", "papers_known", "papers_filed"} {
		delete(s, part)
	}
	listed := s["papers_found"]
	for mask := range 1 << len(conditions) {
		name, narrowed, direction, parameter := "papers_found", "", "DESC", 4
		for i, c := range conditions {
			if mask&(1<<i) == 0 {
				continue
			}
			parameter++
			name += " " + c.name
			narrowed += " AND " + fmt.Sprintf(c.text, "$"+strconv.Itoa(parameter))
			if c.name == "binder" {
				direction = "ASC"
			}
		}
		s[name] = strings.NewReplacer("{narrowed}", narrowed, "{direction}", direction).Replace(listed)
	}
	held, known := mustRead(texts, "sql/papers_held.sql"), mustRead(texts, "sql/papers_known.sql")
	s["file insert"], s["file update"] = filing(s["insert"], ownOfInsert, held, "w"), filing(s["update"], ownOfUpdate, held, "w")
	s["file"], s["file known"] = filing(s["file"], 1, held, "ok"), filing(s["file"], 1, known, "ok")
	s["papers_lock"] = filing(s["papers_lock"], 1, held, "ok")
	for _, name := range []string{"insert", "update"} {
		s[name] = strings.NewReplacer("{papers}", "", "{whole}", "", "{filed}", "", "{answer}", "").Replace(s[name])
	}
}

// ownOfPapers is how many parameters of a filing are about its papers: a list for
// each column.
const ownOfPapers = 13

var paperTypes = strings.Fields("boolean text text text text text text text bigint boolean bytea bigint text")

// filing is a statement with papers, whose parameters come after so many of its
// own. Held says how their versions are looked at; they are written when there is
// something in ready. Their versions are looked at once, under the locks: the
// statement itself still sees the rows as they were before it waited for them.
func filing(text string, own int, held, ready string) string {
	given := strings.NewReplacer("{parameters}", parameters(&own, paperTypes, "[]"), "{held}", strings.TrimSpace(held),
		"{lag}", strconv.FormatInt(int64(maxLag), 10)).
		Replace(mustRead(texts, "sql/papers_given.sql"))
	filed := strings.ReplaceAll(mustRead(texts, "sql/papers_filed.sql"), "{ready}", ready)
	const answer = ", EXISTS (SELECT 1 FROM {ready}), ARRAY(SELECT h.have FROM h ORDER BY h.ord), ARRAY(SELECT pu.ord FROM pu ORDER BY pu.ord), " +
		"ARRAY(SELECT pu.binder FROM pu ORDER BY pu.ord), ARRAY(SELECT pu.subject FROM pu ORDER BY pu.ord), ARRAY(SELECT pu.trace FROM pu ORDER BY pu.ord), " +
		"ARRAY(SELECT pu.created FROM pu ORDER BY pu.ord), ARRAY(SELECT pu.updated FROM pu ORDER BY pu.ord)"
	return strings.NewReplacer(
		"{papers}", ",\n"+strings.TrimSpace(given), "{filed}", ",\n"+strings.TrimSpace(filed),
		"{whole}", "\n\t\tAND EXISTS (SELECT 1 FROM ok)", "{answer}", strings.ReplaceAll(answer, "{ready}", ready)).Replace(text)
}

// prunePapers forgets at most so many papers, in short transactions.
func (l *Ledger) prunePapers(ctx context.Context, p ledger.Prune, most int) (forgotten int, err error) {
	for from, n := int64(math.MinInt64), int64(0); forgotten < most; {
		var did pruned
		err := l.within(ctx, func(t *tx) (err error) {
			did, err = t.forgetPapers(p, from, n, most-forgotten)
			return err
		})
		if err != nil {
			return forgotten, err
		}
		if forgotten += did.forgotten; did.ended {
			break
		}
		from, n = did.updated, did.n
	}
	return forgotten, nil
}

// pruned is what became of some papers that are done, and which was the last.
type pruned struct {
	forgotten  int
	updated, n int64
	ended      bool
}

// names are papers of one step of a pruning.
type names struct{ tenants, kinds, ids []string }

func (n *names) add(tenant, kind, id string) {
	n.tenants, n.kinds, n.ids = append(n.tenants, tenant), append(n.kinds, kind), append(n.ids, id)
}

// forgetPapers forgets papers that are done, behind one of them, and the binders
// that they cover.
func (t *tx) forgetPapers(p ledger.Prune, from, n int64, most int) (did pruned, err error) {
	s, err := t.l.lookIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.trusted(s)
	}
	if err == nil {
		err = t.exec("chronicle_hold")
	}
	if err != nil {
		return did, err
	}
	until := nanos(t.now.Add(-p.Remember))
	var done, covers, gone names
	err = t.l.ask(t.ctx, t.pgx, t.l.sql["papers_done"], []any{from, n, until, int64(min(maxPruned, most))}, func(rows pgx.Rows) error {
		for rows.Next() {
			var tenant, kind, id string
			var cover bool
			if err := rows.Scan(&did.updated, &did.n, &tenant, &kind, &id, &cover); err != nil {
				return err
			}
			if done.add(tenant, kind, id); cover {
				covers.add(tenant, kind, id)
			} else {
				gone.add(tenant, kind, id)
			}
		}
		return rows.Err()
	})
	did.ended = len(done.ids) < min(maxPruned, most)
	for i := 0; err == nil && i < len(covers.ids) && len(gone.ids) < most; i++ {
		err = t.bound(covers.tenants[i], covers.kinds[i], covers.ids[i], until, most-len(gone.ids), &gone)
	}
	if err != nil || len(gone.ids) == 0 {
		return did, err
	}
	if err := t.mark(gone.dropped(p, t.now)...); err != nil {
		return did, err
	}
	tag, err := t.pgx.Exec(t.ctx, t.l.sql["papers_forget"], t.l.args(gone.tenants, gone.kinds, gone.ids)...)
	did.forgotten = int(tag.RowsAffected())
	return did, err
}

// bound adds what is in a binder that may be forgotten, its cover last.
func (t *tx) bound(tenant, kind, binder string, until int64, most int, gone *names) error {
	return t.l.ask(t.ctx, t.pgx, t.l.sql["papers_bound"], []any{tenant, binder, kind, until, int64(most)}, func(rows pgx.Rows) error {
		for rows.Next() {
			var kind, id string
			if err := rows.Scan(&kind, &id); err != nil {
				return err
			}
			gone.add(tenant, kind, id)
		}
		return rows.Err()
	})
}
