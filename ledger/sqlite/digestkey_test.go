package sqlite_test

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/redact"
)

// vault has redaction keys with these ids; the first seals.
func vault(t *testing.T, ids ...string) *redact.Vault {
	t.Helper()
	var keys []redact.Key
	for _, id := range ids {
		keys = append(keys, redact.Key{ID: id, Secret: bytes.Repeat([]byte(id), redact.KeySize)[:redact.KeySize]})
	}
	v, err := redact.New(keys, redact.Options{})
	must(t, err)
	return v
}

func TestDigestKey(t *testing.T) {
	ledgertest.DigestKeys{
		Fresh: func(t *testing.T) func(ledger.Keys) (ledger.Ledger, error) {
			path := file(t)
			return func(keys ledger.Keys) (ledger.Ledger, error) {
				l, err := sqlite.Open(context.Background(), path, &sqlite.Options{Keys: keys})
				if err == nil {
					t.Cleanup(func() { must(t, l.Close()) })
				}
				return l, err
			}
		},
		Vault:   func(ids ...string) ledgertest.Vault { return vault(t, ids...) },
		Enqueue: enqueueSealed,
	}.Run(t)
}

// A program that computes the digest of a business key without the ledger's key cannot enqueue: its
// own transaction fails.
func TestAPlainDigestIsNotEnqueued(t *testing.T) {
	db := database(t, open(t, file(t), nil).Path())
	for digest, want := range map[string]bool{strings.Repeat("a", 64): false, "hmac:ledger:" + strings.Repeat("a", 64): true} {
		_, err := db.ExecContext(t.Context(), "INSERT INTO ledger_outbox (id, tenant, key_digest, intent, enqueued) VALUES ('wr_1', 'acme', ?, '{}', 1)", digest)
		if (err == nil) != want {
			t.Errorf("%s: error %v; want it enqueued: %t", digest, err, want)
		}
	}
}

// A transaction that only enqueues takes the write lock before it reads the digest key. So it
// waits while another one writes, and the driver can retry it. A transaction that read first
// would overwrite what it has not seen, and fails at once, whatever its busy timeout is. What the
// ledger refuses leaves the transaction unchanged.
func TestEnqueueInADeferredTransaction(t *testing.T) {
	ctx, keys := t.Context(), vault(t, "k1")
	l := open(t, file(t), &sqlite.Options{Keys: keys})
	other := outsider(t, l.Path())
	sql(t, other, "CREATE TABLE orders (name TEXT PRIMARY KEY)")
	begin := func(wait string) *stdsql.Tx {
		t.Helper()
		db, err := stdsql.Open("sqlite", "file:"+l.Path()+"?_pragma=busy_timeout("+wait+")")
		must(t, err)
		t.Cleanup(func() { must(t, db.Close()) })
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		return tx
	}
	outbox := sqlite.Outbox{Keys: keys}

	tx := begin("0")
	sql(t, other, "BEGIN IMMEDIATE")
	sql(t, other, "INSERT INTO orders VALUES ('first')")
	if _, err := outbox.Enqueue(ctx, tx, asked("waits")); !isBusy(err) {
		t.Errorf("while another one writes: %v, want that the database is busy", err)
	}
	sql(t, other, "COMMIT")
	if _, err := sqlite.Enqueue(ctx, tx, asked("without key")); !errors.Is(err, ledger.ErrNoKey) {
		t.Errorf("error %v, want the missing key", err)
	}
	_, err := outbox.Enqueue(ctx, tx, asked("waits"))
	must(t, err)
	must(t, tx.Commit())

	tx = begin("600000")
	_, err = tx.ExecContext(ctx, "SELECT name FROM orders")
	must(t, err)
	sql(t, other, "INSERT INTO orders VALUES ('second')")
	if _, err := outbox.Enqueue(ctx, tx, asked("read first")); !isBusy(err) {
		t.Errorf("after what was read has changed: %v, want that the database is busy", err)
	}
	must(t, tx.Rollback())

	_, err = l.SetNote(ctx, ledger.Note{Name: "outbox/full", Value: []byte("on")})
	must(t, err)
	tx = begin("0")
	if _, err := outbox.Enqueue(ctx, tx, asked("too many")); !errors.Is(err, ledger.ErrFull) {
		t.Errorf("error %v, want that the queue is full", err)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES ('third')")
	must(t, err)
	must(t, tx.Commit())
	if all, err := l.Read("SELECT id FROM ledger_outbox UNION ALL SELECT name FROM orders"); err != nil || !slices.Equal(all, []string{string(idOf(asked("waits"))), "first", "second", "third"}) {
		t.Errorf("there are %v, error %v", all, err)
	}
}

func isBusy(err error) bool { return err != nil && strings.Contains(err.Error(), "database is locked") }
