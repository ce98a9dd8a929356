package audit_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
)

// interrupted is a ledger with a chain that was switched off, and in which others then worked.
// The backfill after switching it on again ended after its first portion.
func interrupted(t *testing.T) *crime {
	t.Helper()
	c := scene(t)
	_, err := c.l.SetRecording(t.Context(), false)
	must(t, err)
	life(t, c.l, "a", "meanwhile")
	life(t, c.l, "new tenant", "meanwhile")
	p, err := c.l.Document(t.Context(), "a", "gate", "approval")
	must(t, err)
	p.State = "used"
	put(t, c.l, p)
	put(t, c.l, ledger.Document{Tenant: "a", Kind: "gate", ID: "another", Body: []byte(`{}`)})
	did, err := c.l.Prune(t.Context(), ledger.Prune{Keep: time.Nanosecond, Remember: time.Hour})
	if must(t, err); did.Compacted < len(c.recs) {
		t.Fatalf("%d were compacted, want all of them", did.Compacted)
	}
	life(t, c.l, "a", "later")
	c.sql(t, "UPDATE ledger_meta SET sealing = 1, backfilled_write = 0, backfilled_document = 0")
	return c
}

// Records that are not backfilled yet are neither correct nor wrong: they are unsealed, and the
// report gives the reason. An alteration in the meantime is still wrong.
func TestVerifyDuringBackfill(t *testing.T) {
	c := interrupted(t)
	o := audit.VerifyOptions{Heads: c.heads.all(), Keys: c.keys}
	if r := clean(t, c.l, o); r.Unsealed < 10 || len(r.Notes) != 1 {
		t.Errorf("%d not sealed, notes %q; want all that came, and why", r.Unsealed, r.Notes)
	}
	if s, err := audit.StatusOf(t.Context(), c.l, "a", 10); err != nil || s.Unsealed != 0 || !s.More {
		t.Errorf("status %+v, error %v; want that there is more", s, err)
	}
	did, err := c.l.Prune(t.Context(), ledger.Prune{Keep: time.Nanosecond, Remember: time.Nanosecond})
	if must(t, err); did.Compacted+did.Forgotten > 0 {
		t.Errorf("%+v; want that what is not found waits", did)
	}
	_, err = audit.New(c.l, audit.Options{Logger: quiet}).Seal(t.Context())
	must(t, err)
	if r := clean(t, c.l, o); r.Unsealed != 0 || len(r.Notes) != 0 || r.Pruned < len(c.recs) {
		t.Errorf("report: %+v", r)
	}
	if s, err := audit.StatusOf(t.Context(), c.l, "a", 10); err != nil || s.Unsealed != 0 || s.More {
		t.Errorf("status %+v, error %v; want that all is sealed", s, err)
	}
	did, err = c.l.Prune(t.Context(), ledger.Prune{Keep: time.Nanosecond, Remember: time.Nanosecond})
	if must(t, err); did.Forgotten < len(c.recs) {
		t.Errorf("%+v; want that it waits no longer", did)
	}
	clean(t, c.l, o)
}

func TestAlteredDuringBackfill(t *testing.T) {
	for name, sql := range map[string]string{
		"a tombstone":             `UPDATE ledger_writes SET body = replace(body, 'verified', 'accepted') WHERE n = 1`,
		"a write that is gone":    `DELETE FROM ledger_writes WHERE n = 1`,
		"a document that is gone": `DELETE FROM ledger_documents WHERE id = 'approval'`,
		"a document put back":     `UPDATE ledger_documents SET version = 1, body = '{"by":"eve"}' WHERE id = 'approval'`,
	} {
		t.Run(name, func(t *testing.T) {
			c := interrupted(t)
			if name == "a tombstone" { // one that the chain has as such
				c.head(t)
				c.s = audit.New(c.l, audit.Options{Logger: quiet})
				_, err := c.s.Seal(t.Context())
				must(t, err)
				c.sql(t, "UPDATE ledger_meta SET backfilled_write = 0, backfilled_document = 0")
			}
			c.sql(t, "%s", sql)
			if r := check(t, c.l, audit.VerifyOptions{}); r.OK() {
				t.Errorf("nothing is wrong: %+v", r)
			}
		})
	}
}
