package sqlite_test

import (
	"context"
	stdsql "database/sql"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	_ "modernc.org/sqlite"
)

// database opens a file as a caller's program does.
func database(t *testing.T, path string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// enqueue is how the suite enqueues.
func enqueue(t *testing.T, l ledger.Ledger, commit bool, ws ...intent.WriteIntent) (err error) {
	t.Helper()
	db := database(t, l.(*sqlite.Ledger).Path())
	tx, err := db.BeginTx(context.Background(), nil)
	must(t, err)
	defer func() {
		if !commit || err != nil {
			must(t, tx.Rollback())
			return
		}
		err = tx.Commit()
	}()
	for _, w := range ws {
		if _, err := sqlite.Enqueue(context.Background(), tx, w); err != nil {
			return err
		}
	}
	return nil
}
