package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// The transaction of a process that stands still is ended by the database, and
// with it the locks that a whole line would wait for.
func TestStandingTransaction(t *testing.T) {
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
			t.Errorf("a transaction may stand still for %q, want 30s", most)
		}
		_, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '10ms'")
		must(t, err)
		_, err = tx.Exec(ctx, "UPDATE ledger_writes SET followed = TRUE WHERE id = $1", string(head))
		must(t, err)
		got, err := d.open(nil).Claim(ctx, ledger.Claim{Owner: "two", LeaseFor: time.Minute, Tenant: "acme", ID: head}) // waits
		if err != nil || len(got) != 1 {
			t.Errorf("lent %d, error %v; want the head of the line", len(got), err)
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
