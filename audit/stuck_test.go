package audit_test

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/signing"
)

// A chain whose end was altered cannot be extended. All others can, and the error names it.
func TestAChainThatCannotContinueStopsNoOther(t *testing.T) {
	const tip = `UPDATE ledger_documents SET body = %s WHERE tenant = 'a' AND kind = 'audit' AND id = 'tip'`
	for name, body := range map[string]string{
		"unreadable": `'{}'`,
		"put back": `(SELECT json_object('format', 1, 'ledger', p.body ->> 'ledger', 'tenant', 'a', 'entries', 5, 'page', 1, 'hash', p.body ->> 'hash', 'at', p.body ->> 'sealed', 'from', 1)
			FROM ledger_documents AS p WHERE p.tenant = 'a' AND p.id = 'page-000000000001')`,
	} {
		t.Run(name, func(t *testing.T) {
			c := scene(t)
			c.sql(t, tip, body)
			c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"drawer": c.heads}, Logger: quiet})
			life(t, c.l, "a", "more")
			life(t, c.l, "b", "more")
			if n, err := c.s.Seal(t.Context()); n != 5 || err == nil || !strings.Contains(err.Error(), `tenant "a"`) {
				t.Errorf("%d entries were sealed, error %v; want those of b, and that a cannot continue", n, err)
			}
			before := len(c.heads.all())
			if n, err := c.s.SignAll(t.Context()); n != 1 || err == nil {
				t.Errorf("%d heads were signed, error %v; want that of b, and an error", n, err)
			}
			must(t, c.s.Flush(t.Context()))
			if n := len(c.heads.all()); n != before+1 {
				t.Errorf("%d heads were kept, want 1", n-before)
			}
		})
	}
}

// An unsigned head in the ledger that claims more than there is does not stop the signing of
// heads.
func TestAForgedHeadStopsNone(t *testing.T) {
	for name, key := range map[string]func(*crime) *signing.Signer{
		"by a key of their own": func(*crime) *signing.Signer { s, _ := signer(t); return s },
		"of another tenant":     func(c *crime) *signing.Signer { return c.sign },
	} {
		t.Run(name, func(t *testing.T) {
			c := scene(t)
			e, err := key(c).Sign(t.Context(), audit.HeadType, []byte(`{"format":1,"ledger":"l","tenant":"b","entries":9999,"page":999,"hash":"x","at":"2026-01-01T00:00:00Z"}`))
			must(t, err)
			text, err := e.Encode()
			must(t, err)
			c.sql(t, `UPDATE ledger_documents SET body = '%s' WHERE tenant = 'a' AND kind = 'audit' AND id = 'head'`, text)
			before := len(c.heads.all())
			life(t, c.l, "a", "more")
			c.head(t)
			if n := len(c.heads.all()); n != before+1 {
				t.Errorf("%d heads were signed, want 1", n-before)
			}
		})
	}
}
