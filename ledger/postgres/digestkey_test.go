package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
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
			d := fresh(t)
			return func(keys ledger.Keys) (ledger.Ledger, error) {
				l, err := postgres.Open(context.Background(), d.dsn(), &postgres.Options{Keys: keys})
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
	l := fresh(t).open(nil)
	for digest, want := range map[string]bool{strings.Repeat("a", 64): false, "hmac:ledger:" + strings.Repeat("a", 64): true} {
		_, err := l.Pool().Exec(t.Context(), "INSERT INTO ledger_outbox (id, tenant, key_digest, intent) VALUES ('wr_1', 'acme', $1, '{}')", digest)
		if (err == nil) != want {
			t.Errorf("%s: error %v; want it enqueued: %t", digest, err, want)
		}
	}
}

// asking records the statements and their arguments: in simple_protocol the arguments are in the
// text that the server logs and shows.
type asking struct {
	mu   sync.Mutex
	text strings.Builder
}

// TraceQueryStart implements [pgx.QueryTracer].
func (a *asking) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintln(&a.text, q.SQL, q.Args)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (*asking) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestNoStatementThatSealsHasTheDigestKey(t *testing.T) {
	d, asked := fresh(t), &asking{}
	var kept, sealed string
	read := func(l *postgres.Ledger, to *string) {
		t.Helper()
		must(t, l.Pool().QueryRow(t.Context(), "SELECT digest_key FROM ledger_meta").Scan(to))
	}
	read(d.open(nil), &kept)
	config, err := pgxpool.ParseConfig(d.dsn())
	must(t, err)
	config.ConnConfig.Tracer = asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	read(d.open(&postgres.Options{Pool: pool, Keys: vault(t, "k1")}), &sealed)
	if !strings.HasPrefix(sealed, "k1:") || strings.Contains(asked.text.String(), kept) {
		t.Errorf("it is kept as %s; it was sealed with\n%s", sealed, &asked.text)
	}
}

// A caller's transaction is unchanged where the ledger refuses what it enqueues, also at the
// highest isolation levels.
func TestRefusedEnqueuesLeaveTheTransaction(t *testing.T) {
	d, ctx, keys := fresh(t), t.Context(), vault(t, "k1")
	l := d.open(&postgres.Options{Keys: keys})
	within := func(run func(enqueue func(postgres.Outbox, string) error)) {
		t.Helper()
		tx, err := l.Pool().BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		must(t, err)
		defer func() { _ = tx.Rollback(context.Background()) }() // if the test fails
		run(func(o postgres.Outbox, workflow string) error {
			_, err := o.Enqueue(ctx, tx, asked(workflow))
			return err
		})
		_, err = tx.Exec(ctx, "SELECT 1")
		must(t, err)
		must(t, tx.Commit(ctx))
	}
	within(func(enqueue func(postgres.Outbox, string) error) {
		if err := enqueue(postgres.Outbox{}, "without key"); !errors.Is(err, ledger.ErrNoKey) {
			t.Errorf("error %v, want the missing key", err)
		}
		must(t, enqueue(postgres.Outbox{Keys: keys}, "with key"))
	})
	_, err := l.SetNote(ctx, ledger.Note{Name: "outbox/full", Value: []byte("on")})
	must(t, err)
	within(func(enqueue func(postgres.Outbox, string) error) {
		if err := enqueue(postgres.Outbox{Keys: keys}, "too many"); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("error %v, want that the queue is full", err)
		}
	})
	var n int
	must(t, l.Pool().QueryRow(ctx, "SELECT count(*) FROM ledger_outbox WHERE id = $1", string(idOf(asked("with key")))).Scan(&n))
	if n != 1 {
		t.Errorf("%d are enqueued, want the one with the key", n)
	}
}
