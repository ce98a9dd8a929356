package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
)

// erase erases the contents of writes of tenant a, by an erasure that claims a number of erased
// writes.
func erase(t *testing.T, l ledger.Ledger, id string, says int, recs ...ledger.Record) {
	t.Helper()
	about := ledger.Erasure{ID: id, Tenant: "a", By: "ben", Reason: "Ada asked for it", At: time.Now(), Writes: says}
	p, err := about.Document(ledger.Document{})
	must(t, err)
	if have, err := l.Document(t.Context(), "a", ledger.ErasureKind, id); err == nil {
		p.Version = have.Version
	}
	put(t, l, p)
	e := ledger.Erasing{Tenant: "a", Erasure: id}
	for _, r := range recs {
		e.Writes = append(e.Writes, r.ID)
	}
	did, err := l.Erase(t.Context(), e)
	must(t, err)
	if did.Writes != len(recs) || len(did.Left) > 0 {
		t.Fatalf("erased %+v, want %d writes", did, len(recs))
	}
}

// The chain that was signed before an erasure still holds after it, and reports how much was
// erased, by which erasure.
func TestErasedIsNoAlarm(t *testing.T) {
	ledgers(t, func(t *testing.T, l ledger.Ledger) {
		sign, keys := signer(t)
		kept := &drawer{}
		s := audit.New(l, audit.Options{Signer: sign, HeadStores: map[string]audit.HeadStore{"drawer": kept}})
		one, two, other := life(t, l, "a", "w1"), life(t, l, "a", "w2"), life(t, l, "a", "w3")
		saga := put(t, l, ledger.Document{Tenant: "a", Kind: "saga", ID: "w1", Done: true, Body: []byte(`{}`)})
		head := func() audit.VerifyOptions {
			t.Helper()
			_, err := s.SignHeads(t.Context())
			must(t, err)
			must(t, s.Flush(t.Context()))
			return audit.VerifyOptions{Heads: kept.all(), Keys: keys}
		}
		seal(t, s, 16)
		before := head()
		erase(t, l, "er_1", 2, one, two)
		_, err := l.Erase(t.Context(), ledger.Erasing{Tenant: "a", Erasure: "er_1", Documents: []ledger.Document{saga}})
		must(t, err)
		clean(t, l, before) // it is not sealed yet
		seal(t, s, 4)
		r := clean(t, l, before)
		if len(r.Erased) != 1 || r.Erased[0].ID != "er_1" || r.Erased[0].Writes != 2 || r.Erased[0].Documents != 1 || r.Erased[0].At.IsZero() || r.Pruned+r.Forgotten != 0 {
			t.Errorf("report: %+v", r)
		}
		clean(t, l, head())
		events, err := l.Events(t.Context(), "a", other.ID)
		if err != nil || len(events) != 5 {
			t.Errorf("%d events of the other write, error %v", len(events), err)
		}
	})
}

// Erasing what retention pruned before passes the check, and so does compacting it later.
func TestErasedAfterPruned(t *testing.T) {
	l := ledger.NewMemory()
	now := time.Now()
	l.SetClock(func() time.Time { return now })
	s := audit.New(l, audit.Options{})
	rec := life(t, l, "a", "w1")
	seal(t, s, 5)
	now = now.Add(time.Hour)
	_, err := l.Prune(t.Context(), ledger.Prune{Keep: time.Minute, Remember: 2 * time.Hour})
	must(t, err)
	seal(t, s, 1)
	erase(t, l, "er_1", 1, rec)
	clean(t, l, audit.VerifyOptions{})
	seal(t, s, 2)
	clean(t, l, audit.VerifyOptions{})
	now = now.Add(time.Hour)
	_, err = l.Prune(t.Context(), ledger.Prune{Keep: time.Minute, Remember: time.Hour})
	must(t, err)
	seal(t, s, 1)
	if r := clean(t, l, audit.VerifyOptions{}); len(r.Erased) != 1 || r.Forgotten != 1 {
		t.Errorf("report: %+v", r)
	}
}

// An erasure cannot be used to hide tampering.
func TestFalseErasures(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		do     func(t *testing.T, c *crime)
		want   string
	}{
		"without an erasure": {"a row that says that it was erased is not believed: the chain must say so", func(t *testing.T, c *crime) {
			erase(t, c.l, "er_1", 1, c.recs[0])
			c.sql(t, `DELETE FROM ledger_unsealed WHERE mark ->> '$.kind' = 'erased'`)
		}, "it is a tombstone, and no rule pruned it"},
		"by an unknown erasure": {"who erased, and why, must be in the chain", func(t *testing.T, c *crime) {
			erase(t, c.l, "er_1", 1, c.recs[0])
			c.sql(t, `DELETE FROM ledger_unsealed WHERE mark ->> '$.kind' = 'filed'`)
		}, "the chain does not say who that was and why"},
		"more than it says": {"an erasure of one write is not one of two", func(t *testing.T, c *crime) {
			erase(t, c.l, "er_1", 1, c.recs[0], c.recs[1])
		}, "it says that it erased 1 writes, and the chain says 2"},
		"another outcome": {"what an erasure leaves of a write is in the chain", func(t *testing.T, c *crime) {
			erase(t, c.l, "er_1", 1, c.recs[0])
			c.sql(t, `UPDATE ledger_writes SET body = json_set(body, '$.settlement', 'not_applied') WHERE n = %s`, c.n(0))
		}, "the tombstone says something else than when it was made"},
		"another erasure": {"likewise, who erased it", func(t *testing.T, c *crime) {
			erase(t, c.l, "er_1", 1, c.recs[0])
			c.sql(t, `UPDATE ledger_writes SET body = json_set(body, '$.erased', 'er_2') WHERE n = %s`, c.n(0))
		}, `the tombstone says that it was erased by "er_2", and the chain says "er_1"`},
		"the erasure is gone": {"an erasure is kept for ever", func(t *testing.T, c *crime) {
			erase(t, c.l, "er_1", 1, c.recs[0])
			c.head(t)
			c.sql(t, `DELETE FROM ledger_documents WHERE kind = 'erasure'`)
		}, "it was committed, and is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(t)
			c.do(t, s)
			s.head(t)
			r := check(t, s.l, audit.VerifyOptions{Heads: s.heads.all(), Keys: s.keys})
			var all []string
			for _, p := range r.Problems {
				all = append(all, p.String())
			}
			if got := strings.Join(all, "\n"); !strings.Contains(got, c.want) {
				t.Errorf("%s\nfound:\n%s\nwant: %s", c.reason, got, c.want)
			}
		})
	}
}
