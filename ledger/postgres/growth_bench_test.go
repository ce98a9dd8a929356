package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
)

// BenchmarkWrite carries writes from intent to verified outcome.
func BenchmarkWrite(b *testing.B) {
	s := pgtest.Start(b, pgtest.Options{})
	storebench.Do(b,
		func(b *testing.B) ledger.Ledger { return freshOn(b, s).open(nil) },
		func(b *testing.B) func(int) error { return freshOn(b, s).barePairs(64) })
}

// BenchmarkGrowth measures what a long history costs. READBACK_BENCH_ROWS says
// how long. Both ledgers are of one server, so that it disturbs both alike.
func BenchmarkGrowth(b *testing.B) {
	s := large(b)
	storebench.Growth(b, func(b *testing.B, rows int) ledger.Ledger { return filled(b, s, rows) })
}

// BenchmarkLookups and BenchmarkPruning measure claims, listings and pruning with a long history.
func BenchmarkLookups(b *testing.B) {
	s := large(b)
	storebench.Lookups(b, func(b *testing.B, rows int) ledger.Ledger { return filled(b, s, rows) })
}

func BenchmarkPruning(b *testing.B) {
	s := large(b)
	storebench.Pruning(b, func(b *testing.B, rows int) ledger.Ledger { return filled(b, s, rows) })
}

// large is a server for long histories.
func large(b *testing.B) *pgtest.Server {
	return pgtest.Start(b, pgtest.Options{Settings: map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}})
}

// BenchmarkKeys measures the query for a business operation among many. READBACK_BENCH_ROWS says
// how many.
func BenchmarkKeys(b *testing.B) {
	s := large(b)
	storebench.Keys(b, func(b *testing.B, rows int) ledger.Ledger { return filled(b, s, rows) })
}

// BenchmarkSearch measures searches of a long history, and its plot.
func BenchmarkSearch(b *testing.B) {
	s := large(b)
	storebench.Search(b, func(b *testing.B, rows int) ledger.Ledger { return filled(b, s, rows) })
}

// filled makes a ledger with that many settled writes: one made in the normal way, and copies of
// the same size with keys of their own.
func filled(b *testing.B, s *pgtest.Server, rows int) ledger.Ledger {
	b.Helper()
	d := freshOn(b, s)
	l := d.open(nil)
	must(b, storebench.Pair(b.Context(), l, storebench.Intent("model", 0)))
	conn, err := pgx.Connect(b.Context(), d.dsn())
	must(b, err)
	defer conn.Close(b.Context())
	const step = 50_000 // of one transaction
	for from := 2; from <= rows; from += step {
		_, err := conn.Exec(b.Context(), fmt.Sprintf(fill, from, min(from+step-1, rows)))
		must(b, err)
	}
	for _, sql := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		_, err := conn.Exec(b.Context(), sql)
		must(b, err)
	}
	return l
}

// fill copies the first write of a ledger, under keys made of the numbers that
// are given.
const fill = `
WITH made AS (
	INSERT INTO ledger_writes (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent,
		state, due, settled_at, queue, queued_behind, seq, tombstone, body, before, evidence, mismatches, child_intent,
		owner, lease_until, lease_for, fence, holds, blocks, followed, damaged)
	SELECT 'wr_' || substr(k.key, 1, 32), w.tenant, w.destination, w.tool, k.key, w.idempotency_key || k.n, k.key, w.created, w.intent,
		w.state, w.due, w.settled_at, w.queue, w.queued_behind, w.seq, w.tombstone, replace(replace(replace(replace(replace(w.body, w.structural_key, k.key), w.key_digest, k.key), substr(w.id, 4), substr(k.key, 1, 32)),
			'"' || w.idempotency_key || '"', '"' || w.idempotency_key || k.n || '"'), '"model-0"', '"model-' || k.n || '"'), w.before, w.evidence, w.mismatches, w.child_intent,
		w.owner, w.lease_until, w.lease_for, w.fence, w.holds, w.blocks, w.followed, w.damaged
	FROM (SELECT n, encode(sha256(n::text::bytea), 'hex') AS key FROM generate_series(%d, %d) AS n) AS k,
		(SELECT * FROM ledger_writes ORDER BY n LIMIT 1) AS w
	RETURNING n, id, tenant, key_digest, body),
sought AS (
	INSERT INTO ledger_search (n, id, tenant, workflow, correlation_id, key_digest)
	SELECT made.n, made.id, made.tenant, made.body::json ->> 'workflow', '', made.key_digest FROM made),
terms AS (
	INSERT INTO ledger_terms (lot, tenant, term, n, id)
	SELECT DISTINCT made.n / 4096, t.tenant, replace(t.term, 'model-0', made.body::json ->> 'workflow'), made.n, made.id
	FROM made, ledger_terms AS t WHERE t.n = (SELECT min(n) FROM ledger_writes))
INSERT INTO ledger_events (write, seq, body, evidence, mismatches)
	SELECT made.n, e.seq, e.body, e.evidence, e.mismatches
	FROM made, ledger_events AS e WHERE e.write = (SELECT min(n) FROM ledger_writes)`
