package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// enqueue is how the suite enqueues.
func enqueue(t *testing.T, l ledger.Ledger, commit bool, ws ...intent.WriteIntent) (err error) {
	t.Helper()
	pg := l.(*postgres.Ledger)
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
		if _, err := (postgres.Outbox{Schema: pg.Schema()}).Enqueue(context.Background(), tx, w); err != nil {
			return err
		}
	}
	return nil
}
