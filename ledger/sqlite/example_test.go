package sqlite_test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The transactional outbox: a row of the program and a write are committed together, or neither.
// Workers of the ledger take the write up.
func ExampleEnqueue() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, path := context.Background(), filepath.Join(dir, "shop.db")
	led, err := sqlite.Open(ctx, path, nil) // its tables are beside those of the program
	if err != nil {
		panic(err)
	}
	defer func() { _ = led.Close() }()
	db, err := stdsql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		panic(err)
	}
	// tx.ExecContext(ctx, "INSERT INTO orders …")
	id, err := sqlite.Enqueue(ctx, tx, intent.WriteIntent{
		Tenant: "acme", Workflow: "A-1", Tool: "charge_card", Destination: "bank", Kind: "charge", Write: intent.Create,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"currency": "USD"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(id != "", tx.Commit())
	// Output: true <nil>
}
