package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// enqueue is how the suite enqueues.
func enqueue(t *testing.T, l ledger.Ledger, commit bool, ws ...intent.WriteIntent) error {
	t.Helper()
	return enqueueTo(t, l, postgres.Outbox{}, commit, ws...)
}

func enqueueSealed(t *testing.T, l ledger.Ledger, keys ledger.Keys, ws ...intent.WriteIntent) error {
	t.Helper()
	return enqueueTo(t, l, postgres.Outbox{Keys: keys}, true, ws...)
}

func enqueueTo(t *testing.T, l ledger.Ledger, o postgres.Outbox, commit bool, ws ...intent.WriteIntent) (err error) {
	t.Helper()
	pg := l.(*postgres.Ledger)
	o.Schema = pg.Schema()
	tx, err := pg.Pool().BeginTx(context.Background(), pgx.TxOptions{})
	must(t, err)
	defer func() {
		if !commit || err != nil {
			must(t, tx.Rollback(context.Background()))
			return
		}
		err = tx.Commit(context.Background())
	}()
	for _, w := range ws {
		if _, err := o.Enqueue(context.Background(), tx, w); err != nil {
			return err
		}
	}
	return nil
}

// about returns the nth write about one record.
func about(record string, n int) intent.WriteIntent {
	w := asked(fmt.Sprint(record, "-", n))
	w.IdempotencyKey, w.Write = "", intent.Update
	w.Key, w.Expect = intent.Fields{"reference": record}, intent.Fields{"amount": fmt.Sprint(n)}
	return w
}

func idOf(w intent.WriteIntent) ledger.ID { return ledger.IDOf(w.StructuralKey()) }

// whole are the events of a write that succeeds.
var whole = []ledger.Event{
	{Kind: ledger.EvAnnounced}, {Kind: ledger.EvSent},
	{Kind: ledger.EvRead, Evidence: []byte(`{"seen":true}`)}, {Kind: ledger.EvSettled, Settlement: ledger.Verified},
}

// lent claims everything and settles it, and returns the order of the leases.
func lent(t *testing.T, l *postgres.Ledger) (order []ledger.ID) {
	t.Helper()
	recs, err := l.Claim(context.Background(), ledger.Claim{Owner: "w", LeaseFor: time.Minute, Limit: 100})
	must(t, err)
	for _, rec := range recs {
		order = append(order, rec.ID)
		_, err := l.Append(context.Background(), rec.ID, rec.Fence, whole...)
		must(t, err)
	}
	return order
}

// are compares the leased writes with the expected ones, in any order.
func are(t *testing.T, got []ledger.ID, want ...intent.WriteIntent) {
	t.Helper()
	ids := []ledger.ID{}
	for _, w := range want {
		ids = append(ids, idOf(w))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(got)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
}

func begin(t *testing.T, l *postgres.Ledger) pgx.Tx {
	t.Helper()
	tx, err := l.Pool().Begin(context.Background())
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // if the test fails
	return tx
}

func put(t *testing.T, tx pgx.Tx, ws ...intent.WriteIntent) {
	t.Helper()
	for _, w := range ws {
		id, err := postgres.Enqueue(context.Background(), tx, w)
		must(t, err)
		if id != idOf(w) {
			t.Errorf("enqueue returned %s, want %s", id, idOf(w))
		}
	}
}

// The caller's own rows and the writes are committed or rolled back together, in either kind of
// transaction.
func TestEnqueueWithCallersState(t *testing.T) {
	d, ctx := fresh(t), context.Background()
	l := d.open(nil)
	d.exec("CREATE TABLE orders (name TEXT PRIMARY KEY)")
	tx := begin(t, l)
	put(t, tx, asked("kept"))
	part, err := tx.Begin(ctx) // a savepoint
	must(t, err)
	put(t, part, asked("part"))
	must(t, part.Rollback(ctx))
	must(t, tx.Commit(ctx))
	tx = begin(t, l)
	put(t, tx, asked("dropped"))
	must(t, tx.Rollback(ctx))

	db, err := sql.Open("pgx", d.dsn())
	must(t, err)
	defer db.Close()
	for name, end := range map[string]func(*sql.Tx) error{"kept by sql": (*sql.Tx).Commit, "dropped by sql": (*sql.Tx).Rollback} {
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES ($1)", name)
		must(t, err)
		_, err = postgres.EnqueueSQL(ctx, tx, asked(name))
		must(t, err)
		must(t, end(tx))
	}
	tx = begin(t, l)
	put(t, tx, asked("died"))
	d.exec(fmt.Sprint("SELECT pg_terminate_backend(", tx.Conn().PgConn().PID(), ")"))
	if err := tx.Commit(ctx); err == nil {
		t.Fatal("the connection was not cut")
	}
	are(t, lent(t, l), asked("kept"), asked("kept by sql"))
	tx = begin(t, l)
	_, err = (postgres.Outbox{Quiet: true}).Enqueue(ctx, tx, asked("quiet"))
	must(t, err)
	must(t, tx.Commit(ctx))
	are(t, lent(t, l), asked("quiet"))
}

// No caller that enqueues waits: neither for others that enqueue about the same record, nor for
// workers that are just taking entries in.
func TestEnqueueDoesNotWait(t *testing.T) {
	d, ctx := fresh(t), context.Background()
	l := d.open(nil)
	must(t, enqueue(t, l, true, about("r", 1)))
	worker, other, mine := begin(t, l), begin(t, l), begin(t, l)
	_, err := worker.Exec(ctx, "SELECT * FROM ledger_outbox FOR UPDATE")
	must(t, err)
	put(t, other, about("r", 2))
	if _, err := mine.Exec(ctx, "SET lock_timeout = '1ms'"); err != nil {
		t.Fatal(err)
	}
	put(t, mine, about("r", 3), about("r", 2))
	must(t, mine.Commit(ctx))
	must(t, other.Rollback(ctx))
	must(t, worker.Rollback(ctx))
}

// Of transactions that overlap, what workers see first runs first, and what they see together
// runs in the order of enqueuing. Nothing is skipped.
func TestEnqueuersOverlap(t *testing.T) {
	l, ctx := fresh(t).open(nil), context.Background()
	slow, quick := begin(t, l), begin(t, l)
	put(t, slow, about("r", 1), about("s", 1))
	put(t, quick, about("r", 2), about("s", 2), about("s", 3))
	must(t, quick.Commit(ctx))
	if _, err := l.Get(ctx, "acme", idOf(about("r", 2))); err != nil { // of this queue, workers have seen it
		t.Fatal(err)
	}
	must(t, slow.Commit(ctx))
	are(t, lent(t, l), about("r", 2), about("s", 1))
	are(t, lent(t, l), about("r", 1), about("s", 2))
	are(t, lent(t, l), about("s", 3))
	are(t, lent(t, l))
}

// Rows that were damaged by hand are refused with a reason and kept; entries beside them, and
// behind them, are taken in.
func TestEnqueuedRowDamaged(t *testing.T) {
	for name, tc := range map[string]struct{ reason, damage, says string }{
		"no JSON":      {"it cannot be decoded", `intent = '{"tenant":'`, "not valid JSON"},
		"unknown":      {"it is unknown what it asks for", `intent = (intent::jsonb || '{"wish":1}')::text`, "/wish"},
		"another id":   {"the caller would wait for ever", `id = 'wr_1'`, "damaged"},
		"another line": {"it would overtake others", `key_digest = 'hmac:ledger:x'`, "damaged"},
		"tenant":       {"it is another actor's", `tenant = 'b'`, "damaged"},
		"undoing":      {"only the engine undoes", `intent = (intent::jsonb || '{"compensates":"wr_1"}')::text`, "/compensates"},
	} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			l := d.open(nil)
			must(t, enqueue(t, l, true, about("r", 1), about("r", 2)))
			d.exec("UPDATE ledger_outbox SET " + tc.damage + " WHERE n = 1")
			are(t, append(lent(t, l), lent(t, l)...), about("r", 2))
			s, err := l.QueueStats(context.Background())
			if err != nil || s.Outbox != 0 || len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, tc.says) {
				t.Fatalf("stats %+v, error %v; want one refusal that says %q: %s", s, err, tc.says, tc.reason)
			}
		})
	}
}

// An entry about a write that only a newer program can read waits for one; no other entry does.
func TestEnqueuedForNewerProgram(t *testing.T) {
	d, ctx := fresh(t), context.Background()
	l := d.open(nil)
	must(t, enqueue(t, l, true, asked("w1")))
	are(t, lent(t, l), asked("w1"))
	d.exec(`UPDATE ledger_writes SET body = (body::jsonb || '{"news":1}')::text`)
	must(t, enqueue(t, l, true, asked("w1"), asked("w2")))
	are(t, lent(t, l), asked("w2"))
	if s, err := l.QueueStats(ctx); err != nil || s.Outbox != 1 || len(s.Refused) != 0 {
		t.Errorf("stats %+v, error %v; want one that waits", s, err)
	}
	d.exec(`UPDATE ledger_writes SET body = (body::jsonb - 'news')::text`)
	are(t, lent(t, l))
	if s, err := l.QueueStats(ctx); err != nil || s.Outbox != 0 || len(s.Refused) != 0 {
		t.Errorf("stats %+v, error %v; want nothing left", s, err)
	}
}

// The role of a program that enqueues needs what the documentation names, and not the tables of others.
func TestRoleThatEnqueues(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	role := "enqueues_" + d.name
	d.exec("CREATE ROLE " + role + "; GRANT SELECT ON ledger_meta, ledger_notes, ledger_outbox, ledger_tenants TO " + role +
		"; GRANT INSERT ON ledger_outbox TO " + role + "; GRANT UPDATE (tenant) ON ledger_tenants TO " + role)
	for _, partition := range []bool{false, true} {
		if partition {
			must(t, l.Join(t.Context(), "a", nil))
			must(t, l.Own(t.Context(), ledger.Ownership{Tenant: asked("x").Tenant, Epoch: 1, State: ledger.TenantActive}, ledger.Ownership{}))
		}
		tx, err := l.Pool().Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "SET LOCAL ROLE "+role)
		must(t, err)
		if _, err := postgres.Enqueue(t.Context(), tx, asked("by the role")); err != nil {
			t.Errorf("in a partition %t: %v", partition, err)
		}
		must(t, tx.Rollback(t.Context()))
	}
}
