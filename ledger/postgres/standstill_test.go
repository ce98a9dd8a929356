package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// The database ends the transaction of a stopped process, and with it the locks that a whole
// queue would wait for.
func TestIdleTransaction(t *testing.T) {
	d, ctx := fresh(t), context.Background()
	l := d.open(nil)
	must(t, enqueue(t, l, true, about("r", 1)))
	head := idOf(about("r", 1))
	if _, err := l.Get(ctx, "acme", head); err != nil {
		t.Fatal(err)
	}
	err := l.Within(ctx, func(tx pgx.Tx) error {
		var most string
		must(t, tx.QueryRow(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&most))
		if most != "30s" {
			t.Errorf("a transaction may stop for %q, want 30s", most)
		}
		_, err := tx.Exec(ctx, "UPDATE ledger_writes SET followed = TRUE WHERE id = $1", string(head))
		must(t, err)
		_, err = tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '10ms'")
		must(t, err)
		got, err := d.open(nil).Claim(ctx, ledger.Claim{Owner: "two", LeaseFor: time.Minute, Tenant: "acme", ID: head}) // waits
		if err != nil || len(got) != 1 {
			t.Errorf("lent %d, error %v; want the head of the queue", len(got), err)
		}
		_, err = tx.Exec(ctx, "SELECT 1")
		return err
	})
	if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrUnsure) {
		t.Errorf("error %v, want that nothing was applied", err)
	}
	var most string
	must(t, l.Pool().QueryRow(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&most))
	if most != "0" {
		t.Errorf("the session keeps %q", most)
	}
}

// Another session has locked a row of a queue and does not release it, like an operator who
// repairs it by hand. What was enqueued for that queue waits, and nothing else.
func TestLockedQueueDelaysNoOther(t *testing.T) {
	d, ctx := fresh(t), context.Background()
	l := d.open(nil)
	must(t, enqueue(t, l, true, about("r", 1)))
	are(t, claimed(t, l), about("r", 1))
	must(t, enqueue(t, l, true, about("r", 2), about("s", 1)))
	blocker := begin(t, d.open(nil))
	_, err := blocker.Exec(ctx, "UPDATE ledger_writes SET damaged = NULL")
	must(t, err)
	are(t, claimed(t, l), about("s", 1))
	must(t, blocker.Rollback(ctx))
	are(t, claimed(t, l))
	if rec, err := l.Get(ctx, "acme", idOf(about("r", 2))); err != nil || rec.QueuedBehind != idOf(about("r", 1)) {
		t.Errorf("behind %q, error %v; want it in its queue", rec.QueuedBehind, err)
	}
}

// claimed returns everything claimable, left leased to its claimant.
func claimed(t *testing.T, l *postgres.Ledger) (ids []ledger.ID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	recs, err := l.Claim(ctx, ledger.Claim{Owner: "w", LeaseFor: time.Hour, Limit: 100})
	must(t, err)
	for _, rec := range recs {
		ids = append(ids, rec.ID)
	}
	return ids
}

// The first call through a pooler that keeps no statements, or in a database
// whose transactions are serializable, is a claim.
func TestClaimAgain(t *testing.T) {
	d, ctx := fresh(t), context.Background()
	l := d.open(nil)
	rec, _, err := l.Reserve(ctx, reservation(t, asked("w")))
	must(t, err)
	deferredNow(t, l, rec)
	d.exec(`CREATE SEQUENCE times;
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('times') <= 2 THEN RAISE 'not serializable' USING ERRCODE = '40001'; END IF; RETURN new; END $$;
		CREATE TRIGGER fail BEFORE UPDATE ON ledger_writes FOR EACH ROW EXECUTE FUNCTION fail()`)
	are(t, claimed(t, l), asked("w"))
}

// A queue that contradicts itself, after a change by hand, takes nothing in. The others do, and
// what is due is leased.
func TestBrokenQueueDelaysNoOther(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, enqueue(t, l, true, about("r", 1)))
	are(t, claimed(t, l), about("r", 1))
	d.exec("UPDATE ledger_writes SET followed = TRUE") // by no write
	must(t, enqueue(t, l, true, about("r", 2), about("s", 1), about("t", 1), about("u", 1)))
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w")))
	must(t, err)
	deferredNow(t, l, rec)
	are(t, claimed(t, l), about("s", 1), about("t", 1), about("u", 1), asked("w"))
	if _, err := l.Claim(t.Context(), ledger.Claim{Owner: "w", LeaseFor: time.Hour}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("error %v, want that something is wrong", err)
	}
	d.exec("UPDATE ledger_writes SET followed = FALSE WHERE id = '" + string(idOf(about("r", 1))) + "'")
	are(t, claimed(t, l))
	if rec, err := l.Get(t.Context(), "acme", idOf(about("r", 2))); err != nil || rec.QueuedBehind != idOf(about("r", 1)) {
		t.Errorf("behind %q, error %v; want it in its queue", rec.QueuedBehind, err)
	}
}
