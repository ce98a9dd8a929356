package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
)

// BenchmarkWrite carries writes from intent to verified outcome.
func BenchmarkWrite(b *testing.B) {
	storebench.Do(b, func(b *testing.B) ledger.Ledger { return open(b, filepath.Join(b.TempDir(), "ledger.db"), nil) }, barePairs)
}

// BenchmarkGrowth measures what a long history costs. READBACK_BENCH_ROWS says
// how long.
func BenchmarkGrowth(b *testing.B) { storebench.Growth(b, filled) }

// BenchmarkLookups and BenchmarkPruning measure claims, listings and pruning with a long history.
func BenchmarkLookups(b *testing.B) { storebench.Lookups(b, filled) }
func BenchmarkPruning(b *testing.B) { storebench.Pruning(b, filled) }

// BenchmarkKeys measures the query for a business operation among many. READBACK_BENCH_ROWS says
// how many.
func BenchmarkKeys(b *testing.B) { storebench.Keys(b, filled) }

// BenchmarkSearch measures searches of a long history, and its plot.
// READBACK_BENCH_ROWS says how long it is.
func BenchmarkSearch(b *testing.B) { storebench.Search(b, filled) }

// filled makes a ledger with that many settled writes: one made in the normal way, and copies of
// the same size with keys of their own.
func filled(b *testing.B, rows int) ledger.Ledger {
	b.Helper()
	l := open(b, filepath.Join(b.TempDir(), fmt.Sprint(rows, ".db")), nil)
	if err := storebench.Pair(b.Context(), l, storebench.Intent("model", 0)); err != nil {
		b.Fatal(err)
	}
	const step = 50_000 // of one transaction
	for from := 2; from <= rows; from += step {
		if err := l.Change(fmt.Sprintf(fill, from, min(from+step-1, rows))); err != nil {
			b.Fatal(err)
		}
	}
	if there, err := l.Read("SELECT count(*) FROM ledger_writes"); err != nil || there[0] != fmt.Sprint(rows) {
		b.Fatalf("%v writes, error %v; want %d: what is measured must be there", there, err, rows)
	}
	return l
}

// fill copies the first write of a ledger, under the numbers that are given.
const fill = `
CREATE TEMP TABLE IF NOT EXISTS made (n INTEGER PRIMARY KEY, key TEXT NOT NULL);
DELETE FROM made;
INSERT INTO made
	WITH RECURSIVE count (n) AS (VALUES (%[1]d) UNION ALL SELECT n + 1 FROM count WHERE n < %[2]d)
	SELECT n, lower(hex(randomblob(32))) FROM count;
INSERT INTO ledger_writes (n, id, tenant, tool, structural_key, idempotency_key, created, intent, key_digest,
	state, due, lease_until, fence, seq, body, before, evidence, mismatches, child_intent,
	destination, place, queued_behind, settled_at, tombstone, blocks)
	SELECT m.n, 'wr_' || substr(m.key, 1, 32), w.tenant, w.tool, m.key, w.idempotency_key || m.n, w.created, w.intent, m.key,
		w.state, w.due, w.lease_until, w.fence, w.seq,
		replace(replace(replace(replace(replace(w.body, w.structural_key, m.key), w.key_digest, m.key), substr(w.id, 4), substr(m.key, 1, 32)),
			'"' || w.idempotency_key || '"', '"' || w.idempotency_key || m.n || '"'), '"model-0"', '"model-' || m.n || '"'), w.before, w.evidence, w.mismatches, w.child_intent,
		w.destination, w.place, w.queued_behind, w.settled_at, w.tombstone, w.blocks
	FROM made AS m, ledger_writes AS w WHERE w.n = 1;
INSERT INTO ledger_search (tenant, workflow, n, correlation_id) SELECT w.tenant, 'model-' || m.n, m.n, '' FROM made AS m, ledger_writes AS w WHERE w.n = 1;
INSERT INTO ledger_terms (lot, tenant, term, n)
	SELECT DISTINCT m.n / 4096, t.tenant, replace(t.term, 'model-0', 'model-' || m.n), m.n FROM made AS m, ledger_terms AS t WHERE t.n = 1;
INSERT INTO ledger_changes (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
	SELECT c.at + 1000000 * m.n, c.tenant, 'wr_' || substr(m.key, 1, 32), c.seq, c.kind, c.settlement, c.destination, c.sends, c.reads, c.saved
	FROM made AS m, ledger_changes AS c WHERE c.n = 1;
INSERT INTO ledger_events (write, seq, body, evidence, mismatches)
	SELECT m.n, e.seq, e.body, e.evidence, e.mismatches FROM made AS m, ledger_events AS e WHERE e.write = 1;
`
