package audit_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sqlite3 "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/signing"
)

// crime is a ledger whose file an attacker can change.
type crime struct {
	path  string
	l     *sqlite.Ledger
	s     *audit.Sealer
	sign  *signing.Signer
	keys  signing.Keys
	heads *drawer
	recs  []ledger.Record
}

// scene is a ledger with some writes of two tenants, sealed in several pages, with heads.
func scene(t *testing.T) *crime {
	t.Helper()
	c := &crime{path: filepath.Join(t.TempDir(), "ledger.db"), heads: &drawer{}}
	c.l = open(t, c.path)
	c.sign, c.keys = signer(t)
	c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"drawer": c.heads}, Logger: slog.New(slog.DiscardHandler)})
	for i := range 6 {
		c.recs = append(c.recs, life(t, c.l, []string{"a", "b"}[i/4], fmt.Sprint("w", i)))
		if i == 3 {
			put(t, c.l, ledger.Document{Tenant: "a", Kind: "gate", ID: "approval", State: "approved", Body: []byte(`{"by":"ann"}`)})
		}
		c.head(t)
	}
	clean(t, c.l, audit.VerifyOptions{Heads: c.heads.heads, Keys: c.keys})
	return c
}

// head seals everything, and signs it.
func (c *crime) head(t *testing.T) {
	t.Helper()
	_, err := c.s.Seal(t.Context())
	must(t, err)
	_, err = c.s.SignHeads(t.Context())
	must(t, err)
	must(t, c.s.Flush(t.Context()))
}

// sql changes the database directly.
func (c *crime) sql(t *testing.T, format string, args ...any) {
	t.Helper()
	conn, err := sqlite3.OpenConn(c.path, sqlite3.OpenReadWrite)
	must(t, err)
	must(t, sqlitex.ExecuteScript(conn, fmt.Sprintf(format, args...), nil))
	must(t, conn.Close())
}

// n is the number of a write in the file, as SQL.
func (c *crime) n(i int) string {
	return fmt.Sprintf("(SELECT n FROM ledger_writes WHERE id = '%s')", c.recs[i].ID)
}

// swapHeads exchanges the heads of two tenants.
const swapped = `CREATE TEMP TABLE x AS SELECT n, body FROM ledger_documents WHERE kind = 'audit' AND id = '%s';
	UPDATE ledger_documents SET body = (SELECT body FROM x WHERE x.n <> ledger_documents.n) WHERE n IN (SELECT n FROM x)`

// tampering is one change by an attacker.
type tampering struct {
	reason string
	do     func(t *testing.T, c *crime)
	want   audit.Problem // as far as it is set
}

var tamperings = map[string]tampering{
	"alter an event": {"what was seen must not become something else", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_events SET evidence = '{"n": 12345678901234567891, "a": 1.0}' WHERE write = %s AND seq = 4`, c.n(2))
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 4}},
	"alter who decided": {"likewise", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_events SET body = json_set(body, '$.by', 'ann') WHERE write = %s AND seq = 2`, c.n(1))
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 2}},
	"delete an event": {"a step that was taken must not vanish", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write = %s AND seq = 3`, c.n(0))
	}, audit.Problem{Kind: audit.Missing, Tenant: "a", Seq: 3}},
	"delete the last event": {"likewise", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write = %s AND seq = 5`, c.n(5))
	}, audit.Problem{Kind: audit.Missing, Tenant: "b", Seq: 5}},
	"reorder": {"an approval after the send is none", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_events SET seq = -3 WHERE write = %[1]s AND seq = 3; UPDATE ledger_events SET seq = 3 WHERE write = %[1]s AND seq = 4;
				UPDATE ledger_events SET seq = 4 WHERE write = %[1]s AND seq = -3`, c.n(3))
	}, audit.Problem{Kind: audit.Reordered, Tenant: "a"}},
	"reorder well": {"likewise, by another actor who changes the bodies too", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_events SET seq = -3 WHERE write = %[1]s AND seq = 3;
				UPDATE ledger_events SET seq = 3, body = json_set(body, '$.seq', 3) WHERE write = %[1]s AND seq = 4;
				UPDATE ledger_events SET seq = 4, body = json_set(body, '$.seq', 4) WHERE write = %[1]s AND seq = -3`, c.n(3))
	}, audit.Problem{Kind: audit.Reordered, Tenant: "a", Seq: 3}},
	"insert an event on the side": {"likewise", func(t *testing.T, c *crime) {
		c.sql(t, `INSERT INTO ledger_events (write, seq, body) SELECT n, 7, '{"seq":7,"at":"2020-01-01T00:00:00Z","fence":1,"kind":"late"}' FROM ledger_writes WHERE n = %s`, c.n(0))
	}, audit.Problem{Kind: audit.Inserted, Tenant: "a", Seq: 7}},
	"insert an event": {"a forged approval", func(t *testing.T, c *crime) {
		c.sql(t, `INSERT INTO ledger_events (write, seq, body) SELECT write, 6, json_set(body, '$.seq', 6, '$.kind', 'rechecked') FROM ledger_events WHERE write = %[1]s AND seq = 5;
				UPDATE ledger_writes SET seq = 6, body = json_set(body, '$.seq', 6) WHERE n = %[1]s`, c.n(4))
	}, audit.Problem{Kind: audit.Inserted, Tenant: "b", Seq: 6}},
	"insert a write": {"a forged payment", func(t *testing.T, c *crime) {
		const columns = `tenant, tool, idempotency_key, created, intent, state, lease_until, fence, seq, before, evidence, destination, settled_at, blocks`
		c.sql(t, `INSERT INTO ledger_writes (%[2]s, id, structural_key, body) SELECT %[2]s, replace(id, substr(id, 4, 8), 'ffffffff'), replace(structural_key, substr(id, 4, 8), 'ffffffff'), replace(body, substr(id, 4, 8), 'ffffffff')
					FROM ledger_writes WHERE n = %[1]s;
				INSERT INTO ledger_events (write, seq, body, evidence) SELECT last_insert_rowid(), e.seq, e.body, replace(e.evidence, substr('%[3]s', 4, 8), 'ffffffff') FROM ledger_events AS e WHERE e.write = %[1]s;
				UPDATE ledger_writes SET key_digest = (SELECT key_digest FROM ledger_writes WHERE n = %[1]s) WHERE id LIKE 'wr_ffffffff%%'`, c.n(0), columns, c.recs[0].ID)
	}, audit.Problem{Kind: audit.Inserted, Tenant: "a", Seq: 1}},
	"delete a write": {"and with it that it ever was", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write = %[1]s; DELETE FROM ledger_writes WHERE n = %[1]s`, c.n(1))
	}, audit.Problem{Kind: audit.Missing, Tenant: "a"}},
	"forge that a live write was forgotten": {"a rule forgets tombstones alone", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write = %[1]s; DELETE FROM ledger_writes WHERE n = %[1]s`, c.n(1))
		c.mark(t, ledger.Mark{Kind: ledger.MarkForgotten, Tenant: "a", Write: c.recs[1].ID, Seq: 5, Rule: "retention: remember 1h"})
	}, audit.Problem{Kind: audit.Missing, Tenant: "a"}},
	"forge a tombstone": {"as if retention had pruned it", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_writes SET tombstone = 1, intent = '', before = NULL, evidence = NULL, body = json_set(body, '$.tombstone', json('true')) WHERE n = %[1]s;
				DELETE FROM ledger_events WHERE write = %[1]s`, c.n(2))
	}, audit.Problem{Kind: audit.Altered, Tenant: "a"}},
	"alter the state": {"a row that does not follow from its events", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_writes SET body = json_set(body, '$.ref', '18') WHERE n = %s`, c.n(2))
	}, audit.Problem{Kind: audit.RowDiffers, Tenant: "a"}},
	"alter the intent": {"what a reviewer is shown", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_writes SET intent = json_set(intent, '$.expect.state', 'paid') WHERE n = %s`, c.n(2))
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Seq: 1}},
	"contradict a row": {"what cannot be read cannot be believed", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_writes SET state = 'review' WHERE n = %s`, c.n(2))
	}, audit.Problem{Kind: audit.Unreadable, Tenant: "a"}},
	"alter a document": {"an approval is a document", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_documents SET body = '{"by":"bob"}' WHERE id = 'approval'`)
	}, audit.Problem{Kind: audit.Altered, Tenant: "a", Document: "gate approval"}},
	"delete a document": {"likewise", func(t *testing.T, c *crime) { c.sql(t, `DELETE FROM ledger_documents WHERE id = 'approval'`) }, audit.Problem{Kind: audit.Missing, Document: "gate approval"}},
	"take a document back": {"an earlier version is another document", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_documents SET version = 0 WHERE id = 'approval'`)
	}, audit.Problem{Kind: audit.Altered, Document: "gate approval"}},
	"insert a document": {"an approval that was never committed", func(t *testing.T, c *crime) {
		c.sql(t, `INSERT INTO ledger_documents (tenant, kind, id, collection, subject, trace, created, state, done, version, updated, body) VALUES ('b', 'gate', 'x', '', '', '', 0, 'approved', 0, 1, 0, '{}')`)
	}, audit.Problem{Kind: audit.Inserted, Tenant: "b", Document: "gate x"}},
	"alter a page": {"the chain itself", func(t *testing.T, c *crime) {
		c.sql(t, `UPDATE ledger_documents SET body = json_set(body, '$.entries[1].kind', 'late') WHERE tenant = 'a' AND id = 'page-000000000002'`)
	}, audit.Problem{Kind: audit.PageAltered, Tenant: "a", Page: 2}},
	"delete a page": {"likewise", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_documents WHERE tenant = 'a' AND id = 'page-000000000002'`)
	}, audit.Problem{Kind: audit.PageMissing, Tenant: "a", Page: 2}},
	"swap pages": {"likewise", func(t *testing.T, c *crime) { c.sql(t, swapped, "page-000000000001") }, audit.Problem{Kind: audit.PageAltered, Page: 1}},
	"cut off the end": {"a chain that is only shorter agrees with itself", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write = %[1]s; DELETE FROM ledger_writes WHERE n = %[1]s;
				DELETE FROM ledger_documents WHERE tenant = 'b' AND id = 'page-000000000002';
				UPDATE ledger_documents SET body = (SELECT json_object('format', 1, 'ledger', p.body ->> 'ledger', 'tenant', 'b', 'entries', 5, 'page', 1, 'hash', p.body ->> 'hash', 'at', p.body ->> 'sealed', 'from', 1)
					FROM ledger_documents AS p WHERE p.tenant = 'b' AND p.id = 'page-000000000001') WHERE tenant = 'b' AND id = 'tip'`, c.n(5))
	}, audit.Problem{Kind: audit.OlderCopy, Tenant: "b", Entry: 6}},
	"swap heads":            {"the head of another actor proves nothing", func(t *testing.T, c *crime) { c.sql(t, swapped, "head") }, audit.Problem{Kind: audit.BadHead}},
	"a head of another key": {"any actor can make a key", func(t *testing.T, c *crime) { _, c.keys = signer(t) }, audit.Problem{Kind: audit.BadHead}},
	"a head that was altered": {"a signature is over every byte", func(_ *testing.T, c *crime) {
		c.heads.heads[0].Payload = c.heads.heads[1].Payload
	}, audit.Problem{Kind: audit.BadHead}},
	"a head of another ledger": {"a sound ledger in the place of another", func(t *testing.T, c *crime) {
		other := scene(t)
		other.s = audit.New(other.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"drawer": c.heads}})
		other.recs = append(other.recs, life(t, other.l, "a", "more"))
		other.head(t)
	}, audit.Problem{Kind: audit.OtherLedger, Tenant: "a"}},
	"a head of another ledger, of a page that is there": {"it names its ledger, so the chain was not made anew", func(t *testing.T, c *crime) {
		c.more(t)
		other := scene(t)
		other.s = audit.New(other.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"drawer": c.heads}})
		other.more(t)
	}, audit.Problem{Kind: audit.OtherLedger, Tenant: "a", Page: 5, Entry: 26}},
	"shorten the heads": {"what came after the newest head that is left could be altered unseen", func(_ *testing.T, c *crime) {
		c.heads.heads = slices.DeleteFunc(c.heads.heads, func(e signing.Envelope) bool {
			h, err := audit.ReadHead(e)
			return err != nil || h.Tenant == "a" && h.Page == 4
		})
	}, audit.Problem{Kind: audit.HeadsEnd, Tenant: "a", Page: 3, Entry: 16}},
	"leave out the heads of a tenant": {"likewise", func(_ *testing.T, c *crime) {
		c.heads.heads = slices.DeleteFunc(c.heads.heads, func(e signing.Envelope) bool {
			h, err := audit.ReadHead(e)
			return err != nil || h.Tenant == "b"
		})
	}, audit.Problem{Kind: audit.HeadsEnd, Tenant: "b", Entry: 1}},
	"shorten the heads, and delete the ledger's own": {"likewise, by an attacker who can write to both", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_documents WHERE tenant = 'a' AND id = 'head'`)
		c.heads.heads = c.heads.heads[:1]
	}, audit.Problem{Kind: audit.HeadsEnd, Tenant: "a", Page: 1}},
	"make a trigger": {"it changes what is stored behind the engine", func(t *testing.T, c *crime) {
		c.sql(t, `CREATE TRIGGER quiet BEFORE DELETE ON ledger_notes BEGIN SELECT raise(IGNORE); END`)
	}, audit.Problem{Kind: audit.Foreign}},
	"a head of no tenant": {"a tenant that is gone as a whole", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_events WHERE write IN (SELECT n FROM ledger_writes WHERE tenant = 'b'); DELETE FROM ledger_writes WHERE tenant = 'b'; DELETE FROM ledger_documents WHERE tenant = 'b'`)
	}, audit.Problem{Kind: audit.HeadUnplaced, Tenant: "b"}},
	"everything made anew": {"the owner of the ledger can make a whole new chain", func(t *testing.T, c *crime) {
		c.sql(t, `DELETE FROM ledger_documents WHERE kind = 'audit'; UPDATE ledger_events SET body = json_set(body, '$.by', 'ann') WHERE write = %s AND seq = 2;
				UPDATE ledger_meta SET sealing = 0, kept_since = newest; DELETE FROM ledger_unsealed`, c.n(0))
		_, err := audit.New(c.l, audit.Options{}).Seal(t.Context())
		must(t, err)
		life(t, c.l, "a", "more")
		life(t, c.l, "a", "and more")
		s := audit.New(c.l, audit.Options{})
		for i := range 5 {
			life(t, c.l, "a", fmt.Sprint("padding ", i))
			_, err = s.Seal(t.Context())
			must(t, err)
		}
		if r := check(t, c.l, audit.VerifyOptions{}); !r.OK() {
			t.Errorf("it should agree with itself: %v", r.Problems)
		}
	}, audit.Problem{Kind: audit.Forked, Tenant: "a"}},
}

func TestTampering(t *testing.T) {
	for name, c := range tamperings {
		t.Run(name, func(t *testing.T) {
			at := scene(t)
			c.do(t, at)
			r := check(t, at.l, audit.VerifyOptions{Heads: at.heads.heads, Keys: at.keys})
			if len(r.Problems) == 0 {
				t.Fatalf("nothing was found; reason: %s", c.reason)
			}
			if !slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return fits(c.want, p) }) {
				t.Errorf("want %+v; reason: %s", c.want, c.reason)
				for _, p := range r.Problems {
					t.Errorf("found %s", p)
				}
			}
			if first := r.Problems[0]; !fits(c.want, first) && !slices.Contains(
				[]string{"cut off the end", "a head of no tenant", "swap heads", "everything made anew", "a head of another ledger", "swap pages", "shorten the heads, and delete the ledger's own"}, name) {
				t.Errorf("the first is %s", first)
			}
		})
	}
}

// fits reports whether a problem equals the wanted one in the fields that are set.
func fits(want, got audit.Problem) bool {
	return want.Kind == got.Kind && (want.Tenant == "" || want.Tenant == got.Tenant) && (want.Seq == 0 || want.Seq == got.Seq) &&
		(want.Page == 0 || want.Page == got.Page) && (want.Entry == 0 || want.Entry == got.Entry) && (want.Document == "" || want.Document == got.Document)
}

// Heads that end early cause no alarm if they were collected before a stated time. If the
// ledger's own newest head was put back as well, the age gives the alarm.
func TestHeadsThatEndEarly(t *testing.T) {
	c := scene(t)
	all := c.heads.all()
	o := audit.VerifyOptions{Outside: true, Keys: c.keys}
	if r := check(t, c.l, o); len(r.Problems) != 1 || r.Problems[0].Kind != audit.HeadsEnd {
		t.Errorf("without any head: %v", r.Problems)
	}
	o.Heads = slices.DeleteFunc(all, func(e signing.Envelope) bool {
		h, err := audit.ReadHead(e)
		return err != nil || h.Tenant == "a" && h.Page > 3
	})
	if r := check(t, c.l, o); len(r.Problems) != 1 || r.Problems[0].Kind != audit.HeadsEnd || !r.Chains[0].HeadAt.Before(r.Checked) || r.Chains[0].HeadAt.IsZero() {
		t.Errorf("%+v, chains %+v", r.Problems, r.Chains)
	}
	o.AsOf = time.Now().Add(-time.Hour)
	clean(t, c.l, o)
	own, err := o.Heads[2].Encode() // of page 3
	must(t, err)
	c.sql(t, `UPDATE ledger_documents SET body = '%s' WHERE tenant = 'a' AND id = 'head'`, own)
	o.AsOf = time.Now()
	clean(t, c.l, o)
	o.AsOf = time.Now().Add(25 * time.Hour)
	if r := check(t, c.l, o); len(r.Problems) != 1 || r.Problems[0].Kind != audit.HeadsEnd {
		t.Errorf("a day without a head: %v", r.Problems)
	}
}

// An older copy of the file agrees with itself; a head from outside reveals it.
func TestOlderCopy(t *testing.T) {
	c := scene(t)
	must(t, c.l.Close())
	old, err := os.ReadFile(c.path)
	must(t, err)
	c.l = open(t, c.path)
	c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"drawer": c.heads}})
	life(t, c.l, "a", "more")
	c.head(t)
	must(t, c.l.Close())
	for _, beside := range []string{"-wal", "-shm"} {
		_ = os.Remove(c.path + beside) // if it exists
	}
	must(t, os.WriteFile(c.path, old, 0o600))
	c.l = open(t, c.path)
	clean(t, c.l, audit.VerifyOptions{Keys: c.keys})
	r := check(t, c.l, audit.VerifyOptions{Keys: c.keys, Heads: c.heads.heads})
	if len(r.Problems) != 1 || r.Problems[0].Kind != audit.OlderCopy || !strings.Contains(r.Problems[0].What, "5 entries are missing") {
		t.Errorf("found %v", r.Problems)
	}
	c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"drawer": c.heads}})
	life(t, c.l, "a", "something else")
	c.head(t)
	r = check(t, c.l, audit.VerifyOptions{Keys: c.keys, Heads: c.heads.heads})
	kinds := map[string]bool{}
	for _, p := range r.Problems {
		kinds[p.Kind] = true
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, []string{audit.Forked}) {
		t.Errorf("after the older copy went on: %v", r.Problems)
	}
}

// A ledger that was put back does not reach the heads that were signed since, until that is
// acknowledged. Heads without a trusted signature, and those of another ledger, do not count.
func TestHeadsAhead(t *testing.T) {
	c := scene(t)
	path := filepath.Join(t.TempDir(), "heads.jsonl")
	file, err := audit.NewFile(path)
	must(t, err)
	for _, e := range c.heads.all() {
		must(t, file.Keep(t.Context(), e))
	}
	ahead := func(l ledger.Ledger) []audit.Ahead {
		t.Helper()
		found, err := audit.HeadsAhead(t.Context(), l, c.keys, path)
		must(t, err)
		return found
	}
	if found := ahead(c.l); len(found) > 0 {
		t.Errorf("a false alarm: %+v", found)
	}
	empty := ledger.NewMemory()
	if found := ahead(empty); len(found) != 2 || found[0].Kind != audit.OlderCopy || found[0].Tenant != "a" {
		t.Errorf("an empty ledger in its place: %+v", found)
	}
	named := ledger.NewMemory()
	life(t, named, "a", "w")
	_, err = audit.New(named, audit.Options{Logger: quiet}).Seal(t.Context())
	must(t, err)
	if found := ahead(named); len(found) > 0 {
		t.Errorf("the heads of another ledger: %+v", found)
	}
	must(t, c.l.Close())
	old, err := os.ReadFile(c.path)
	must(t, err)
	c.l = open(t, c.path)
	c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"file": file}, Logger: quiet})
	life(t, c.l, "a", "more")
	c.head(t)
	other, _ := signer(t)
	forged, err := other.Sign(t.Context(), audit.HeadType, []byte(`{"format":1,"ledger":"x","tenant":"b","entries":900,"page":900,"hash":"00","at":"2026-01-01T00:00:00Z"}`))
	must(t, err)
	must(t, file.Keep(t.Context(), forged))
	must(t, c.l.Close())
	must(t, os.WriteFile(c.path, old, 0o600))
	c.l = open(t, c.path)
	found := ahead(c.l)
	if len(found) != 1 || found[0].Kind != audit.OlderCopy || found[0].Tenant != "a" || found[0].Page != 5 {
		t.Fatalf("an older copy: %+v", found)
	}
	must(t, audit.RememberAhead(t.Context(), c.l, found))
	c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"file": file}, Logger: quiet})
	for i := range 3 { // past the page of the head that it did not reach
		if found := ahead(c.l); len(found) > 0 {
			t.Errorf("it is known, after %d more: %+v", i, found)
		}
		life(t, c.l, "a", fmt.Sprint("after ", i))
		c.head(t)
	}
}

// Nothing else in the files of heads hides an older copy: a newer head of another ledger, one of
// an untrusted key, and those from before an earlier restore. Files without any head of the
// ledger are an error.
func TestNothingHidesAnOlderCopy(t *testing.T) {
	c := scene(t)
	path := filepath.Join(t.TempDir(), "heads.jsonl")
	file, err := audit.NewFile(path)
	must(t, err)
	back := func() (restore func()) {
		must(t, c.l.Close())
		old, err := os.ReadFile(c.path)
		must(t, err)
		c.l = open(t, c.path)
		return func() {
			must(t, c.l.Close())
			must(t, os.WriteFile(c.path, old, 0o600))
			c.l = open(t, c.path)
		}
	}
	more := func(name string) {
		c.s = audit.New(c.l, audit.Options{Signer: c.sign, HeadStores: map[string]audit.HeadStore{"file": file}, Logger: quiet})
		life(t, c.l, "a", name)
		c.head(t)
	}
	pages := func() (all []int64, err error) {
		found, err := audit.HeadsAhead(t.Context(), c.l, c.keys, path)
		for _, f := range found {
			all = append(all, f.Page)
		}
		return all, err
	}
	want := func(reason, fails string, want ...int64) {
		t.Helper()
		if got, err := pages(); !slices.Equal(got, want) || (err != nil) != (fails != "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: heads of pages %v, error %v; want %v, %q", reason, got, err, want, fails)
		}
	}
	want("no file", "although it signed some")
	must(t, os.WriteFile(path, nil, 0o600))
	want("an empty file", "although it signed some")
	restore := back()
	for i := range 3 {
		more(fmt.Sprint("first ", i))
	}
	want("the ledger has gone on", "")
	own, err := audit.HeadsAhead(t.Context(), ledger.NewMemory(), c.keys, path)
	if must(t, err); len(own) != 1 {
		t.Fatalf("%+v", own)
	}
	head := func(by *signing.Signer, id string) {
		e, err := by.Sign(t.Context(), audit.HeadType, fmt.Appendf(nil, `{"format":1,"ledger":%q,"tenant":"a","entries":900,"page":900,"hash":"00","at":%q}`, id, time.Now().UTC().Format(time.RFC3339Nano)))
		must(t, err)
		must(t, file.Keep(t.Context(), e))
	}
	for range 20 {
		head(c.sign, "another")
	}
	want("heads of another ledger", "")
	restore()
	want("an older copy", "", 7)
	first, err := audit.HeadsAhead(t.Context(), c.l, c.keys, path)
	must(t, err)
	must(t, audit.RememberAhead(t.Context(), c.l, first))
	want("it is known", "")
	more("second 0")
	restore = back()
	more("second 1")
	want("the ledger has gone on", "")
	restore()
	want("an older copy of what came after the restore, of fewer pages", "", 6)
	other, _ := signer(t)
	head(other, own[0].Ledger)
	want("and a newer head of an unknown key", "the key of heads did not sign it", 6)
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o700))
	want("no file", "heads cannot be read")
}

// A tombstone's record of how a write ended must not change either.
func TestAlteredTombstone(t *testing.T) {
	c := scene(t)
	_, err := c.l.Prune(t.Context(), ledger.Prune{Keep: 1, Remember: time.Hour})
	must(t, err)
	c.head(t)
	o := audit.VerifyOptions{Heads: c.heads.heads, Keys: c.keys}
	if r := clean(t, c.l, o); r.Pruned != len(c.recs) {
		t.Fatalf("report %+v", r)
	}
	c.sql(t, `UPDATE ledger_writes SET body = json_set(body, '$.ref', '18') WHERE n = %s`, c.n(1))
	r := check(t, c.l, o)
	if len(r.Problems) != 1 || r.Problems[0].Kind != audit.Altered || r.Problems[0].Write != c.recs[1].ID {
		t.Errorf("found %v", r.Problems)
	}
}
