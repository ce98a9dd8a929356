package audit_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// lateScene is a ledger whose chains began more than a week after it: with a write that is older
// than they are, an older tombstone, a write that went on, and a document.
func lateScene(t *testing.T) *crime {
	t.Helper()
	c := &crime{path: filepath.Join(t.TempDir(), "ledger.db")}
	behind := 2 * ledger.ChangesKept
	var err error
	c.l, err = sqlite.Open(t.Context(), c.path, &sqlite.Options{Now: func() time.Time { return time.Now().Add(-behind) }})
	must(t, err)
	t.Cleanup(func() { must(t, c.l.Close()) })
	pruned := life(t, c.l, "a", "pruned")
	prune(t, c.l, 3*ledger.ChangesKept)
	old, open := life(t, c.l, "a", "old"), reserve(t, c.l, "a", "open", announced)
	put(t, c.l, ledger.Document{Tenant: "a", Kind: "gate", ID: "old", Body: []byte(`{}`)})
	behind -= ledger.ChangesKept
	prunedBy(t, c.l, ledger.Prune{Keep: 2 * ledger.ChangesKept, Remember: 3 * ledger.ChangesKept})
	c.recs = []ledger.Record{pruned, old, grow(t, c.l, open, sent, seen, done), life(t, c.l, "b", "new")}
	c.s = audit.New(c.l, audit.Options{Logger: quiet})
	seal(t, c.s, 8)
	return c
}

func prunedBy(t *testing.T, l ledger.Ledger, p ledger.Prune) {
	t.Helper()
	_, err := l.Prune(t.Context(), p)
	must(t, err)
}

// What is older than the chains is counted, and is no alarm. Neither is its retention.
func TestOlderThanTheChains(t *testing.T) {
	c := lateScene(t)
	r := clean(t, c.l, audit.VerifyOptions{})
	if r.Backfilled != 9 || r.Unsealed != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no check can detect") {
		t.Errorf("report: %+v; want a tombstone, seven events and a document", r)
	}
	prunedBy(t, c.l, ledger.Prune{Keep: 1, Remember: 3 * ledger.ChangesKept})
	seal(t, c.s, 3)
	if r := clean(t, c.l, audit.VerifyOptions{}); r.Backfilled != 2 || r.Pruned != 3 {
		t.Errorf("report: %+v", r)
	}
	prunedBy(t, c.l, ledger.Prune{Keep: 1, Remember: 1})
	seal(t, c.s, 4)
	if r := clean(t, c.l, audit.VerifyOptions{}); r.Backfilled != 1 || r.Forgotten != 4 {
		t.Errorf("report: %+v", r)
	}
}

// That the chains are younger than the ledger explains nothing that came after they began, and
// nothing that the ledger itself says of when they did.
func TestNothingLaterIsOlder(t *testing.T) {
	const copied = `INSERT INTO ledger_events (write, seq, body) SELECT write, 6, json_set(body, '$.seq', 6) FROM ledger_events WHERE seq = 5 AND write = %s;`
	for name, crime := range map[string]struct {
		do   func(t *testing.T, c *crime)
		want audit.Problem
	}{
		"insert an event": {func(t *testing.T, c *crime) {
			c.sql(t, copied+`UPDATE ledger_meta SET kept_since = 1 << 62`, c.n(3))
		}, audit.Problem{Kind: audit.Inserted, Tenant: "b", Seq: 6}},
		"insert an old event after others": {func(t *testing.T, c *crime) {
			c.sql(t, copied+`UPDATE ledger_events SET body = json_set(body, '$.at', '2020-01-01T00:00:00Z') WHERE seq = 6`, c.n(2))
		}, audit.Problem{Kind: audit.Inserted, Tenant: "a", Seq: 6}},
		"insert a document": {func(t *testing.T, c *crime) {
			c.sql(t, `UPDATE ledger_documents SET updated = updated + 100000000000000000 WHERE id = 'old'`)
		}, audit.Problem{Kind: audit.Inserted, Tenant: "a", Document: "gate old"}},
		"forge a chain that is younger": {func(t *testing.T, c *crime) {
			c.sql(t, copied, c.n(3))
			c.sql(t, `INSERT INTO ledger_documents (tenant, kind, id, collection, subject, trace, created, state, done, version, updated, body)
				SELECT 'c', kind, id, '', '', '', created, '', 0, 1, updated, json_set(body, '$.tenant', 'c', '$.since', '2100-01-01T00:00:00Z') FROM ledger_documents WHERE kind = 'audit' AND tenant = 'b'`)
		}, audit.Problem{Kind: audit.Inserted, Tenant: "b", Seq: 6}},
		"forge a tombstone": {func(t *testing.T, c *crime) {
			c.sql(t, `UPDATE ledger_writes SET tombstone = 1, intent = '', before = NULL, evidence = NULL, body = json_set(body, '$.tombstone', json('true')) WHERE n = %[1]s;
				DELETE FROM ledger_events WHERE write = %[1]s`, c.n(2))
		}, audit.Problem{Kind: audit.Altered, Tenant: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := lateScene(t)
			crime.do(t, c)
			if r := check(t, c.l, audit.VerifyOptions{}); !slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return fits(crime.want, p) }) {
				t.Errorf("found %v", r.Problems)
			}
		})
	}
}
