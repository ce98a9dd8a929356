package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
)

// oldWrites and oldDocuments are more than two portions of each.
const (
	oldWrites    = 2*postgres.MaxBackfilled + 300
	oldDocuments = 2*postgres.MaxBackfilled + 200
)

// history makes a ledger with many writes and documents, and nothing to seal.
func history(t *testing.T) (*database, *postgres.Ledger) {
	t.Helper()
	d := fresh(t)
	l := d.open(nil)
	must(t, storebench.Pair(t.Context(), l, storebench.Intent("model", 0)))
	d.exec(fmt.Sprintf(`WITH made AS (
		INSERT INTO ledger_writes (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent,
			state, due, settled_at, seq, body, evidence, owner, lease_until, lease_for, fence, holds, blocks)
		SELECT 'wr_' || substr(k.key, 1, 32), w.tenant, w.destination, w.tool, k.key, w.idempotency_key || k.n, k.key, w.created, w.intent,
			w.state, w.due, w.settled_at, w.seq,
			replace(replace(replace(replace(w.body, w.structural_key, k.key), w.key_digest, k.key), substr(w.id, 4), substr(k.key, 1, 32)), w.idempotency_key, w.idempotency_key || k.n),
			w.evidence, w.owner, w.lease_until, w.lease_for, w.fence, w.holds, w.blocks
		FROM (SELECT n, encode(sha256(n::text::bytea), 'hex') AS key FROM generate_series(2, %d) AS n) AS k, ledger_writes AS w
		RETURNING n)
		INSERT INTO ledger_events (write, seq, body, evidence, mismatches)
		SELECT made.n, e.seq, e.body, e.evidence, e.mismatches FROM made, ledger_events AS e`, oldWrites))
	d.exec(fmt.Sprintf(`INSERT INTO ledger_documents (tenant, kind, id, collection, subject, trace, state, done, body, version, created, updated, position)
		SELECT 'acme', 'step', i::text, '', '', '', '', FALSE, '{}', 1, i, i, i FROM generate_series(1, %d) AS i; ANALYZE`, oldDocuments))
	return d, l
}

func laid(t *testing.T, l *postgres.Ledger, p ledger.Document) ledger.Document {
	t.Helper()
	did, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}})
	must(t, err)
	return did.Documents[0]
}

// everyFew returns some of the existing writes, in the order of their ids.
func everyFew(t *testing.T, l *postgres.Ledger) (some []ledger.Record) {
	t.Helper()
	lives, err := l.Lifetimes(t.Context(), "", 1000)
	must(t, err)
	for i := 0; i < len(lives); i += 111 {
		some = append(some, lives[i].Record)
	}
	return some
}

func begun(t *testing.T, l *postgres.Ledger, batch string, n int) ledger.Record {
	t.Helper()
	rec, err := storebench.Reserve(t.Context(), l, storebench.Intent(batch, n))
	must(t, err)
	return rec
}

// During the backfill of a long history others work between any two portions: on what is
// backfilled, on what is not yet, on new writes. Another process continues where the first was
// ended. No event is left out, and none comes twice.
func TestBackfillInPortions(t *testing.T) {
	d, l := history(t)
	other := d.open(nil)
	late := append(everyFew(t, l), begun(t, l, "open", 0))
	var documents []ledger.Document
	for _, id := range []string{"1", "999", fmt.Sprint(oldDocuments)} {
		p, err := l.Document(t.Context(), "acme", "step", id)
		must(t, err)
		documents = append(documents, p)
	}
	portions := 0
	for more := true; more; portions++ {
		one, two := l, other
		if portions%2 == 1 {
			one, two = other, l
		}
		var err error
		more, err = one.Switch(true, portions > 0, func() {})
		must(t, err)
		if finding, err := two.Finding(t.Context()); finding && !more || portions == 0 && !finding || err != nil {
			t.Fatalf("it is being found: %v, error %v; there is more: %v", finding, err, more)
		}
		for i := range late {
			late[i] = ledgertest.OneMore(t, two, late[i])
		}
		begun(t, two, "new", portions)
		for i := range documents {
			documents[i] = laid(t, two, documents[i])
		}
		for _, first := range []string{"", "new"} { // among the existing ones, and after them
			laid(t, one, ledger.Document{Tenant: "acme", Kind: "step", ID: fmt.Sprint(first, 100_000+portions), Body: []byte(`{}`)})
		}
	}
	if least := 1 + oldWrites/postgres.MaxBackfilled + oldDocuments/postgres.MaxBackfilled; portions < least {
		t.Errorf("it took %d portions, want %d at least: no caller may wait for all of it", portions, least)
	}
	if changed, err := l.SetRecording(t.Context(), true); changed || err != nil {
		t.Errorf("changed %v, error %v; it was on", changed, err)
	}
	ledgertest.AllUnsealed(t, l, oldWrites, oldDocuments)
}

// A process whose connection breaks in the middle of any portion leaves what the next one needs
// to continue; so does one that gives up.
func TestFindingIsKilled(t *testing.T) {
	for portions := 0; portions < 6; portions += need.OneIn(3) {
		t.Run(fmt.Sprint(portions), func(t *testing.T) {
			d, l := history(t)
			for i := range portions {
				_, err := l.Switch(true, i > 0, func() {})
				must(t, err)
			}
			_, err := l.Switch(true, portions > 0, func() {
				must(t, d.server.Exec("postgres", `SELECT pg_terminate_backend(l.pid) FROM pg_locks AS l
					WHERE l.mode = 'ShareRowExclusiveLock' AND l.database = (SELECT oid FROM pg_database WHERE datname = '`+d.name+`')`))
			})
			if err == nil {
				t.Fatal("it was not killed")
			}
			ctx, end := context.WithCancel(t.Context())
			end()
			if changed, err := l.SetRecording(ctx, true); changed || !errors.Is(err, context.Canceled) {
				t.Errorf("changed %v, error %v", changed, err)
			}
			ledgertest.GoesOn(t, l, everyFew(t, l), oldWrites, oldDocuments)
		})
	}
}

// What is left when it is switched off is deleted in portions, is not returned, and is gone
// before it is on again: nothing of it comes twice.
func TestSwitchedOffInPortions(t *testing.T) {
	d, l := history(t)
	_, err := l.SetRecording(t.Context(), true)
	must(t, err)
	d.exec(fmt.Sprintf(`INSERT INTO ledger_unsealed (mark) SELECT '{"kind":"found","tenant":"acme","paper_kind":"step","paper_id":"1"}' FROM generate_series(1, %d)`, postgres.MaxCleared))
	more, err := l.Switch(false, false, func() {})
	if must(t, err); !more {
		t.Fatal("all was forgotten at once")
	}
	if runs, err := l.Unsealed(t.Context(), 0, 10); len(runs) > 0 || err != nil {
		t.Errorf("%d runs, error %v; it is off", len(runs), err)
	}
	if more, err := l.Switch(true, true, func() {}); more || err != nil {
		t.Errorf("more %v, error %v; another actor has switched it off", more, err)
	}
	if changed, err := l.SetRecording(t.Context(), true); !changed || err != nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	ledgertest.AllUnsealed(t, l, oldWrites, oldDocuments)
	if changed, err := l.SetRecording(t.Context(), false); !changed || err != nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	d.exec(`INSERT INTO ledger_unsealed (write, last) SELECT n, 5 FROM ledger_writes`)
	if changed, err := l.SetRecording(t.Context(), false); changed || err != nil {
		t.Errorf("changed %v, error %v; it was off", changed, err)
	}
	if changed, err := l.SetRecording(t.Context(), true); !changed || err != nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	ledgertest.AllUnsealed(t, l, oldWrites, oldDocuments)
}

// It is switched on while it is being switched off in portions: that was later, and it stays on.
func TestSwitchedOnAmongPortions(t *testing.T) {
	for name, on := range map[string]bool{"it was on": true, "it was off, and some was left": false} {
		t.Run(name, func(t *testing.T) {
			d, l := history(t)
			b := &before{says: "BEGIN ISOLATION"}
			slow := d.traced(b)
			if on {
				_, err := l.SetRecording(t.Context(), true)
				must(t, err)
			}
			d.exec(fmt.Sprintf(`INSERT INTO ledger_unsealed (mark) SELECT '{"kind":"found","tenant":"acme","paper_kind":"step","paper_id":"1"}' FROM generate_series(1, %d)`, postgres.MaxCleared))
			b.skip.Store(1)
			b.f = func() {
				if changed, err := l.SetRecording(t.Context(), true); !changed || err != nil {
					t.Errorf("changed %v, error %v", changed, err)
				}
			}
			if changed, err := slow.SetRecording(t.Context(), false); changed != on || err != nil || !b.ran.Load() {
				t.Errorf("changed %v, error %v, ran %v", changed, err, b.ran.Load())
			}
			if changed, err := l.SetRecording(t.Context(), true); changed || err != nil {
				t.Errorf("changed %v, error %v; it was switched on last", changed, err)
			}
			ledgertest.AllUnsealed(t, l, oldWrites, oldDocuments)
		})
	}
}
