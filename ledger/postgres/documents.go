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

// columnsOfDocument are those of a document in the order in which scanDocument reads them; NULL
// for a whole row where there is none.
const columnsOfDocument = `p.version, p.tenant, p.kind, p.id, p.collection, p.subject, p.trace, p.state, p.due, p.done, p.body, p.created, p.updated`

// scanDocument reads the state of the database, the columns in between, and a document, if there
// is one. A time on the ledger's clock is never before the last change.
func (l *Ledger) scanDocument(rows pgx.Rows, s *state, between ...any) (p ledger.Document, there bool, err error) {
	var version, due, created, updated *int64
	var tenant, kind, id, collection, subject, trace, word *string
	var done *bool
	dest := append(append(s.dest(), between...), &version, &tenant, &kind, &id, &collection, &subject, &trace, &word, &due, &done,
		(*[]byte)(&p.Body), &created, &updated)
	if err := rows.Scan(dest...); err != nil {
		return p, false, err
	}
	if err := l.usable(*s); err != nil || version == nil {
		return p, false, err
	}
	p.Version, p.Tenant, p.Kind, p.ID, p.Collection, p.Subject, p.Trace, p.State = *version, *tenant, *kind, *id, *collection, *subject, *trace, *word
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

// documents reads the documents of a read-only statement.
func (l *Ledger) documents(ctx context.Context, statement string, args []any, between ...any) (found []ledger.Document, s state, err error) {
	err = l.read(ctx, l.sql.Text(statement), args, func(rows pgx.Rows) error {
		found, s = []ledger.Document{}, state{}
		for rows.Next() {
			p, there, err := l.scanDocument(rows, &s, between...)
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

// Document implements [ledger.Documents].
func (l *Ledger) Document(ctx context.Context, tenant, kind, id string) (ledger.Document, error) {
	found, _, err := l.documents(ctx, "document", []any{tenant, kind, id})
	if err == nil && len(found) == 0 {
		err = noDocument(kind, id)
	}
	if err != nil {
		return ledger.Document{}, err
	}
	return found[0], nil
}

func noDocument(kind, id string) error {
	return fmt.Errorf("%w: %s %q", ledger.ErrNoDocument, kind, id)
}

// DueDocuments implements [ledger.Documents]. It fails with [ledger.ErrClock] when the clock is
// too far before the newest entry.
func (l *Ledger) DueDocuments(ctx context.Context, kind string, limit int) ([]ledger.Document, time.Time, error) {
	found, s, err := l.documents(ctx, "due_documents", []any{kind, int64(ledger.DueLimit(limit))})
	if err == nil {
		err = l.trusted(s)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return found, at(s.now), nil
}

// FindDocuments implements [ledger.Documents].
func (l *Ledger) FindDocuments(ctx context.Context, q ledger.DocumentQuery) (found []ledger.Document, total int, err error) {
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
	found, _, err = l.documents(ctx, listing(q), args, &total)
	return found, total, err
}

// conditions are the possible conditions of a listing. Each combination has its own statement
// text: the database plans it once, and must then know which index to use.
var conditions = []struct {
	name, text string
	of         func(q ledger.DocumentQuery) (value any, narrows bool)
}{
	{"collection", "x.collection = %s::text AND x.collection <> ''", func(q ledger.DocumentQuery) (any, bool) { return q.Collection, q.Collection != "" }},
	{"states", "x.state = ANY (%s::text[])", func(q ledger.DocumentQuery) (any, bool) { return q.States, len(q.States) > 0 }},
	{"subject", "x.subject = %s::text", func(q ledger.DocumentQuery) (any, bool) { return q.Subject, q.Subject != "" }},
	{"trace", "x.trace = %s::text AND x.trace <> ''", func(q ledger.DocumentQuery) (any, bool) { return q.Trace, q.Trace != "" }},
}

// listing returns the name of the statement of a listing.
func listing(q ledger.DocumentQuery) string {
	name := "documents"
	for _, c := range conditions {
		if _, narrows := c.of(q); narrows {
			name += " " + c.name
		}
	}
	return name
}

// addDocuments adds the statements of listings, and those that write documents.
func addDocuments(s statements) {
	listed := s.Text("documents")
	for mask := range 1 << len(conditions) {
		name, narrowed, direction, parameter := "documents", "", "DESC", 4
		for i, c := range conditions {
			if mask&(1<<i) == 0 {
				continue
			}
			parameter++
			name += " " + c.name
			narrowed += " AND " + fmt.Sprintf(c.text, "$"+strconv.Itoa(parameter))
			if c.name == "collection" {
				direction = "ASC"
			}
		}
		s[name] = strings.NewReplacer("{narrowed}", narrowed, "{direction}", direction).Replace(listed)
	}
	b := batching{take(s, "batch_documents"), take(s, "write_documents")}
	held, known := take(s, "held_versions"), take(s, "known_versions")
	s["commit insert"], s["commit update"] = b.in(s.Text("insert"), ownOfInsert, held, "w"), b.in(s.Text("update"), ownOfUpdate, held, "w")
	s["commit"], s["commit known"] = b.in(s.Text("commit"), 1, held, "ok"), b.in(s.Text("commit"), 1, known, "ok")
	s["lock_documents"] = b.in(s.Text("lock_documents"), 1, held, "ok")
	for _, name := range []string{"insert", "update"} {
		s[name] = strings.NewReplacer("{documents}", "", "{whole}", "", "{written}", "", "{answer}", "").Replace(s[name])
	}
}

// ownOfDocuments is how many parameters of a batch are about its documents: a list for each
// column.
const ownOfDocuments = 13

var documentTypes = strings.Fields("boolean text text text text text text text bigint boolean bytea bigint text")

// batching are the parts of a statement that are about documents: how they are read, and written.
type batching struct{ documents, written string }

// in returns a statement with documents, whose parameters follow the given number of its own.
// Held says how their versions are read; they are written when ready returns rows. Their versions
// are read once, under the locks: the statement itself still sees the rows as they were before it
// waited for the locks.
func (b batching) in(text string, own int, held, ready string) string {
	documents := strings.NewReplacer("{parameters}", parameters(&own, documentTypes, "[]"), "{held}", held,
		"{lag}", strconv.FormatInt(int64(maxLag), 10)).Replace(b.documents)
	const answer = ", EXISTS (SELECT 1 FROM {ready}), ARRAY(SELECT h.have FROM h ORDER BY h.ord), ARRAY(SELECT pu.ord FROM pu ORDER BY pu.ord), " +
		"ARRAY(SELECT pu.collection FROM pu ORDER BY pu.ord), ARRAY(SELECT pu.subject FROM pu ORDER BY pu.ord), ARRAY(SELECT pu.trace FROM pu ORDER BY pu.ord), " +
		"ARRAY(SELECT pu.created FROM pu ORDER BY pu.ord), ARRAY(SELECT pu.updated FROM pu ORDER BY pu.ord)"
	text = strings.NewReplacer("{documents}", ",\n"+documents, "{written}", ",\n"+b.written,
		"{whole}", "\n\t\tAND EXISTS (SELECT 1 FROM ok)", "{answer}", answer).Replace(text)
	return strings.ReplaceAll(text, "{ready}", ready)
}

// pruneDocuments deletes at most that many documents, in short transactions.
func (l *Ledger) pruneDocuments(ctx context.Context, p ledger.Prune, most int) (forgotten int, err error) {
	for from, n := int64(math.MinInt64), int64(0); forgotten < most; {
		var did pruned
		err := l.within(ctx, func(t *tx) (err error) {
			did, err = t.forgetDocuments(p, from, n, most-forgotten)
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

// pruned is the result for some finished documents, and which was the last.
type pruned struct {
	forgotten  int
	updated, n int64
	ended      bool
}

// names are documents of one step of a pruning.
type names struct{ tenants, kinds, ids []string }

func (n *names) add(tenant, kind, id string) {
	n.tenants, n.kinds, n.ids = append(n.tenants, tenant), append(n.kinds, kind), append(n.ids, id)
}

// forgetDocuments deletes finished documents after a given one, and the collections that they
// cover.
func (t *tx) forgetDocuments(p ledger.Prune, from, n int64, most int) (did pruned, err error) {
	s, err := t.l.stateIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.trusted(s)
	}
	if err != nil {
		return did, err
	}
	holds, err := t.holds()
	if err != nil {
		return did, err
	}
	until := nanos(t.now.Add(-p.Remember))
	var done, covers, gone names
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("done_documents"), []any{from, n, until, int64(min(maxPruned, most))}, func(rows pgx.Rows) error {
		for rows.Next() {
			var tenant, kind, id string
			var cover bool
			if err := rows.Scan(&did.updated, &did.n, &tenant, &kind, &id, &cover); err != nil {
				return err
			}
			_, held := holds.OfTenant(tenant)
			if done.add(tenant, kind, id); held {
				continue
			}
			if cover {
				covers.add(tenant, kind, id)
			} else {
				gone.add(tenant, kind, id)
			}
		}
		return rows.Err()
	})
	did.ended = len(done.ids) < min(maxPruned, most)
	for i := 0; err == nil && i < len(covers.ids) && len(gone.ids) < most; i++ {
		err = t.members(covers.tenants[i], covers.kinds[i], covers.ids[i], until, most-len(gone.ids), &gone)
	}
	if err != nil || len(gone.ids) == 0 {
		return did, err
	}
	if err := t.mark(gone.dropped(p, t.now)...); err != nil {
		return did, err
	}
	tag, err := t.pgx.Exec(t.ctx, t.l.sql.Text("delete_documents"), t.l.args(gone.tenants, gone.kinds, gone.ids)...)
	did.forgotten = int(tag.RowsAffected())
	return did, err
}

// members adds what may be deleted in a collection, its cover last.
func (t *tx) members(tenant, kind, collection string, until int64, most int, gone *names) error {
	return t.l.ask(t.ctx, t.pgx, t.l.sql.Text("collection_members"), []any{tenant, collection, kind, until, int64(most)}, func(rows pgx.Rows) error {
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
