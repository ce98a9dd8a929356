package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// Tampering with a database, by an actor with write access; and no alarm after many wrote and
// sealed at once.
func TestPostgres(t *testing.T) {
	server, err := pgtest.Open(pgtest.Options{Settings: map[string]string{"fsync": "off"}})
	pgtest.Need(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	for name, c := range map[string]struct {
		reason, sql string
		want        string
	}{
		"nothing":           {"a sound ledger is no alarm", `SELECT 1`, ""},
		"alter an event":    {"what was seen must not become something else", `UPDATE ledger_events SET evidence = '{}' WHERE seq = 4 AND write = 1`, audit.Altered},
		"delete an event":   {"a step that was taken must not vanish", `DELETE FROM ledger_events WHERE seq = 3 AND write = 1`, audit.Missing},
		"swap events":       {"an approval after the send is none", `UPDATE ledger_events SET seq = 7 - seq WHERE seq IN (3, 4) AND write = 1 AND FALSE; UPDATE ledger_events SET seq = -1 WHERE seq = 3 AND write = 1; UPDATE ledger_events SET seq = 3 WHERE seq = 4 AND write = 1; UPDATE ledger_events SET seq = 4 WHERE seq = -1`, audit.Reordered},
		"insert an event":   {"a forged approval", `INSERT INTO ledger_events (write, seq, body) SELECT write, 6, replace(body, '"seq":5', '"seq":6') FROM ledger_events WHERE seq = 5 AND write = 1`, audit.Inserted},
		"delete a write":    {"and with it that it ever was", `DELETE FROM ledger_events WHERE write = 1; DELETE FROM ledger_writes WHERE n = 1`, audit.Missing},
		"alter the state":   {"a row that does not follow from its events", `UPDATE ledger_writes SET body = replace(body, '"ref":"17"', '"ref":"18"') WHERE n = 1`, audit.RowDiffers},
		"forge a tombstone": {"as if retention had pruned it", `UPDATE ledger_writes SET tombstone = TRUE, intent = NULL, evidence = NULL, body = '{"tombstone":true,' || substr(body, 2) WHERE n = 1; DELETE FROM ledger_events WHERE write = 1`, audit.Altered},
		"alter the intent":  {"what a reviewer is shown", `UPDATE ledger_writes SET intent = intent || ' '::bytea WHERE n = 1`, audit.Altered},
		"alter a document":  {"an approval is a document", `UPDATE ledger_documents SET state = 'approved' WHERE kind = 'gate'`, audit.Altered},
		"alter a page":      {"the chain itself", `UPDATE ledger_documents SET body = convert_to(replace(convert_from(body, 'UTF8'), '"kind":"sent"', '"kind":"late"'), 'UTF8') WHERE id = 'page-000000000001'`, audit.PageAltered},
		"make a trigger":    {"it changes what is stored behind the engine", `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER f BEFORE UPDATE ON ledger_writes FOR EACH ROW EXECUTE FUNCTION f()`, audit.Foreign},
		"make a rule":       {"likewise", `CREATE RULE r AS ON DELETE TO ledger_notes DO INSTEAD NOTHING`, audit.Foreign},
		"cut off the end":   {"a chain that is only shorter agrees with itself", `DELETE FROM ledger_documents WHERE kind = 'audit' AND id IN ('tip', 'page-000000000002')`, audit.OlderCopy},
	} {
		t.Run(name, func(t *testing.T) {
			database, err := server.CreateDatabase()
			must(t, err)
			l := openDatabase(t, server.DSN(database))
			sign, keys := signer(t)
			kept := &drawer{}
			s := audit.New(l, audit.Options{Signer: sign, Logger: quiet, HeadStores: map[string]audit.HeadStore{"drawer": kept}})
			life(t, l, "a", "w1")
			put(t, l, ledger.Document{Tenant: "a", Kind: "gate", ID: "g", Body: []byte(`{}`)})
			seal(t, s, 6)
			life(t, l, "a", "w2")
			seal(t, s, 5)
			_, err = s.SignHeads(t.Context())
			must(t, err)
			must(t, s.Flush(t.Context()))
			must(t, server.Exec(database, c.sql))
			r := check(t, l, audit.VerifyOptions{Heads: kept.heads, Keys: keys})
			if c.want == "" {
				clean(t, l, audit.VerifyOptions{Heads: kept.heads, Keys: keys})
			} else if !slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return p.Kind == c.want }) {
				t.Errorf("found %v, want %s; reason: %s", r.Problems, c.want, c.reason)
			}
		})
	}
	t.Run("many at once", func(t *testing.T) {
		database, err := server.CreateDatabase()
		must(t, err)
		crowded(t, server.DSN(database))
	})
}

func openDatabase(t *testing.T, dsn string) *postgres.Ledger {
	t.Helper()
	l, err := postgres.Open(context.Background(), dsn, nil)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

// crowded has several programs write while others switch sealing on, and seal.
func crowded(t *testing.T, dsn string) {
	t.Helper()
	one, two := openDatabase(t, dsn), openDatabase(t, dsn)
	var writers, sealers sync.WaitGroup
	done := make(chan struct{})
	const many, each = 6, 15
	for w := range many {
		writers.Go(func() {
			l := []*postgres.Ledger{one, two}[w%2]
			for i := range each {
				life(t, l, fmt.Sprint("t", i%2), fmt.Sprint("w", w, "-", i))
				put(t, l, ledger.Document{Tenant: "t0", Kind: "step", ID: fmt.Sprint(w, "-", i), Body: []byte(`{}`)})
			}
		})
	}
	for _, l := range []*postgres.Ledger{one, two} {
		s := audit.New(l, audit.Options{Logger: quiet})
		sealers.Go(func() {
			for stop := false; !stop; {
				select {
				case <-done:
					stop = true
				default:
				}
				if _, err := s.Seal(context.Background()); err != nil && !errors.Is(err, ledger.ErrStale) {
					t.Errorf("seal: %v", err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	sealers.Wait()
	_, err := audit.New(one, audit.Options{Logger: quiet}).Seal(t.Context())
	must(t, err)
	r := clean(t, two, audit.VerifyOptions{})
	entries := int64(0)
	for _, c := range r.Chains {
		entries += c.Entries
	}
	if entries != many*each*6 || r.Repeated != 0 || r.Unsealed != 0 {
		t.Errorf("%d entries, want %d; %d repeated, %d not sealed", entries, many*each*6, r.Repeated, r.Unsealed)
	}
}
