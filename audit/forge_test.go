package audit_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
)

// next is an unused ticket, as SQL.
const next = `(SELECT 1000 + count(*) FROM ledger_unsealed)`

// mark leaves a mark for the sealer as the ledger would.
func (c *crime) mark(t *testing.T, m ledger.Mark) {
	t.Helper()
	text, err := m.Encode()
	must(t, err)
	c.sql(t, `INSERT INTO ledger_unsealed (ticket, at, first, last, mark) VALUES (%s, 1, 0, 0, '%s')`, next, text)
}

// committed leaves the mark of the approval as it is now.
func (c *crime) committed(t *testing.T) {
	t.Helper()
	p, err := c.l.Document(t.Context(), "a", "gate", "approval")
	must(t, err)
	m, err := p.CommitMark()
	must(t, err)
	c.mark(t, *m)
}

// resealed are tamperings by an attacker who knows how sealing works, and has the changes sealed
// by the regular sealer.
var resealed = map[string]tampering{
	"alter an event": {"a second entry of another digest is no other event", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_events SET body = json_set(body, '$.by', 'ann') WHERE write = %[1]s AND seq = 2;
			INSERT INTO ledger_unsealed (ticket, at, write, first, last) VALUES (%[2]s, 1, %[1]s, 2, 2)`, c.n(1), next)
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 2}},
	"alter an event, and put it back": {"the chain shows that it was another one for a time", func(t *testing.T, c *crime) {
		const by = `UPDATE ledger_events SET body = json_set(body, '$.by', '%[3]s') WHERE write = %[1]s AND seq = 2;
			INSERT OR IGNORE INTO ledger_unsealed (ticket, at, write, first, last) VALUES (%[2]s, 1, %[1]s, 2, 2)`
		c.sql(t, by, c.n(1), next, "ann")
		c.more(t)
		c.sql(t, by+`; DELETE FROM ledger_unsealed`, c.n(1), next, "one")
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 2}},
	"alter an intent, and put it back": {"likewise", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_writes SET intent = intent || ' ' WHERE n = %[1]s;
			INSERT INTO ledger_unsealed (ticket, at, write, first, last) VALUES (%[2]s, 1, %[1]s, 1, 1)`, c.n(1), next)
		c.more(t)
		c.sql(t, `UPDATE ledger_writes SET intent = trim(intent) WHERE n = %s`, c.n(1))
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 1}},
	"alter an intent": {"likewise", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_writes SET intent = json_set(intent, '$.expect.state', 'paid') WHERE n = %[1]s;
			INSERT INTO ledger_unsealed (ticket, at, write, first, last) VALUES (%[2]s, 1, %[1]s, 1, 1)`, c.n(1), next)
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 1}},
	"alter a document": {"an approval of the same version is the same", func(t *testing.T, c *crime) {
		c.more(t)
		c.sql(t, `UPDATE ledger_documents SET body = '{"by":"bob"}' WHERE id = 'approval'`)
		c.committed(t)
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Document: "gate approval"}},
	"forget a live write": {"a rule forgets tombstones alone", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write = %[1]s; DELETE FROM ledger_writes WHERE n = %[1]s`, c.n(1))
		c.mark(t, ledger.Mark{Kind: ledger.MarkForgotten, Tenant: "a", Write: c.recs[1].ID, Seq: 5, Rule: "retention: remember 1h"})
	}, audit.Problem{Kind: audit.Missing, Tenant: "a"}},
	"dig a write out": {"what was pruned does not come back as something else", func(t *testing.T, c *crime) {
		c.mark(t, ledger.Mark{Kind: ledger.MarkPruned, Tenant: "a", Write: c.recs[1].ID, Seq: 5, Digest: "00", Rule: "retention: keep 1h"})
	}, audit.Problem{Kind: audit.Altered, Tenant: "a"}},
	"alter a tombstone": {"it is made once", func(t *testing.T, c *crime) {
		c.compact(t, 2, "18")
		c.more(t)
		clean(t, c.l, audit.VerifyOptions{})
		c.compact(t, 2, "19")
	}, audit.Problem{Kind: audit.Altered, Tenant: "a"}},
	"alter a tombstone, and put it back": {"the chain shows that it was another one for a time", func(t *testing.T, c *crime) {
		for _, ref := range []string{"18", "19"} {
			c.compact(t, 2, ref)
			c.more(t)
		}
		c.sql(t, `UPDATE ledger_writes SET body = json_set(body, '$.ref', '18') WHERE n = %s`, c.n(2))
	}, audit.Problem{Kind: audit.Altered, Tenant: "a"}},
	"alter a document, and put it back": {"likewise", func(t *testing.T, c *crime) {
		c.more(t)
		c.sql(t, `UPDATE ledger_documents SET body = '{"by":"bob"}' WHERE id = 'approval'`)
		c.committed(t)
		c.more(t)
		c.sql(t, `UPDATE ledger_documents SET body = '{"by":"ann"}' WHERE id = 'approval'`)
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Document: "gate approval"}},
	"roll a row back": {"a state that was once true is not true any more", func(t *testing.T, c *crime) {
		r := reserve(t, c.l, "a", "rolled", announced)
		c.sql(t, `CREATE TABLE kept AS SELECT body, state, due, settled_at, evidence, seq, lease_until, place, blocks, fence FROM ledger_writes WHERE id = '%s'`, r.ID)
		grow(t, c.l, r, sent, seen, done)
		c.head(t)
		c.sql(t, `UPDATE ledger_writes SET (body, state, due, settled_at, evidence, seq, lease_until, place, blocks, fence) = (SELECT * FROM kept) WHERE id = '%s'; DROP TABLE kept`, r.ID)
	}, audit.Problem{Kind: audit.RowDiffers, Tenant: "a"}},
	"swap collections": {"whose step it is", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_documents SET subject = 'another' WHERE id = 'approval'`)
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Document: "gate approval"}},
}

// more extends the chain of tenant a: a sealer does not commit its last entries a second time
// anyway.
func (c *crime) more(t *testing.T) {
	t.Helper()
	c.recs = append(c.recs, life(t, c.l, "a", fmt.Sprint("more", len(c.recs))))
	c.head(t)
}

// compact makes a tombstone of a write, with a mark, as retention would.
func (c *crime) compact(t *testing.T, i int, ref string) {
	t.Helper()
	c.sql(t, `UPDATE ledger_writes SET tombstone = 1, intent = '', before = NULL, evidence = NULL, body = json_set(body, '$.tombstone', json('true'), '$.ref', '%[2]s') WHERE n = %[1]s;
		DELETE FROM ledger_events WHERE write = %[1]s`, c.n(i), ref)
	r := c.recs[i]
	r.Ref, r.Tombstone = ref, true
	digest, err := ledger.Tombstone(r)
	must(t, err)
	c.mark(t, ledger.Mark{Kind: ledger.MarkPruned, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Digest: digest, Rule: "retention: keep 1h"})
}

func TestSealedForgeriesAreDetected(t *testing.T) {
	for name, crime := range resealed {
		t.Run(name, func(t *testing.T) {
			c := scene(t)
			crime.do(t, c)
			_, err := c.s.Seal(t.Context())
			must(t, err)
			_, err = c.s.SignHeads(t.Context())
			must(t, err)
			r := check(t, c.l, audit.VerifyOptions{Heads: c.heads.heads, Keys: c.keys})
			if !slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return fits(crime.want, p) }) {
				t.Errorf("found %v; reason: %s", r.Problems, crime.reason)
			}
		})
	}
}

// However much waits to be sealed, every alteration is detected.
func TestManyThatWait(t *testing.T) {
	c := scene(t)
	const batches, each = 105, 100
	for i := range batches {
		var f ledger.Batch
		for j := range each {
			f.Documents = append(f.Documents, ledger.Document{Tenant: "a", Kind: "gate", ID: fmt.Sprintf("p-%d-%d", i, j), State: "asked", Body: []byte(`{}`)})
		}
		_, err := c.l.Commit(t.Context(), f)
		must(t, err)
	}
	c.sql(t, `UPDATE ledger_events SET body = json_set(body, '$.by', 'ann') WHERE seq = 2`)
	r := check(t, c.l, audit.VerifyOptions{})
	if len(r.Problems) != len(c.recs) || r.More != 0 || r.Unsealed != batches*each {
		t.Errorf("%d problems, %d more, %d not sealed; want %d, 0 and %d", len(r.Problems), r.More, r.Unsealed, len(c.recs), batches*each)
	}
}
