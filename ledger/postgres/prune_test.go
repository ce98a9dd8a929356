package postgres_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// What a destination keeps for long is not read again by each sweep because another one keeps its
// writes for a shorter time.
func TestPruneReadsOnlyWhatIsDue(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	d.exec(`INSERT INTO ledger_writes (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent,
			state, settled_at, seq, tombstone, body, owner, lease_until, lease_for, fence, holds)
		SELECT 'wr_' || substr(k, 1, 32), 'acme', CASE WHEN i <= 3 THEN 'crm' ELSE 'payments' END, 'tool', k, '', k, i, NULL,
			'settled', i, 2, i > 9000, '{}', '', 0, 0, 1, FALSE
		FROM (SELECT i, encode(sha256(i::text::bytea), 'hex') AS k FROM generate_series(1, 10000) AS i) AS x;
		ANALYZE`)
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	asked := map[string]int{}
	if rows := ran(t, conn, postgres.Statements["compactable_parties"]).met("ledger_writes", asked); rows > 2 {
		t.Errorf("asked %v, met %.0f rows to find two destinations", asked, rows)
	}
	asked = map[string]int{}
	rows := ran(t, conn, postgres.Statements["compactable"], int64(math.MinInt64), int64(0), time.Now().UnixNano(), 100, "acme", "crm").met("ledger_writes", asked)
	if rows != 3 {
		t.Errorf("asked %v, met %.0f rows, want the 3 of crm", asked, rows)
	}
	_, err = l.Prune(t.Context(), ledger.Prune{Keep: ledger.Forever, Remember: ledger.Forever, Destinations: map[string]time.Duration{"crm": time.Hour}})
	unread, ok := errors.AsType[*ledger.UnreadError](err)
	if !ok || len(unread.Writes) != 3 {
		t.Errorf("error %v; want that the 3 of crm, and no others, were read", err)
	}
}

// A write that was pruned leaves none of the texts by which it was found, not even one that no
// search returns; for erased ones see TestNoRowHoldsWhatWasErased.
func TestNoTermIsLeft(t *testing.T) {
	d := fresh(t).movable()
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("pruned"))))
	d.move(2 * time.Hour)
	must(t, pair(l, reservation(t, asked("kept"))))
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	terms := func(workflow string) (n int) {
		must(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM ledger_terms WHERE id = $1", string(reservation(t, asked(workflow)).Record.ID)).Scan(&n))
		return n
	}
	if terms("pruned") == 0 || terms("kept") == 0 {
		t.Fatal("a write has no terms")
	}
	did, err := l.Prune(t.Context(), ledger.Prune{Keep: time.Hour, Remember: 24 * time.Hour})
	if err != nil || did.Compacted != 1 || terms("pruned") != 0 || terms("kept") == 0 {
		t.Errorf("pruned %+v, error %v; %d terms of it are left, and %d of the other", did, err, terms("pruned"), terms("kept"))
	}
}
