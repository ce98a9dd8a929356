package sql_test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // any database/sql driver

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// A table as a destination. With PostgreSQL, DSN replaces DB, Dialect, ReadYourWrites and Horizon.
func Example() {
	db, err := stdsql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, "CREATE TABLE invoices (number TEXT PRIMARY KEY, cents INTEGER, stamp TEXT)"); err != nil {
		panic(err)
	}
	books, err := sql.New(sql.Options{
		DB: db, Dialect: sql.SQLite(), ReadYourWrites: true, Horizon: time.Second,
		Tables: map[string]sql.Table{"invoice": {
			Name: "invoices", Key: []string{"number"}, Unique: true, Stamp: "stamp",
			Columns: []sql.Column{{Name: "number"}, {Name: "cents", Type: sql.Integer}},
		}},
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := reg.Register("books", connectors.Destination{Connector: books, Profiles: books.Profiles()}); err != nil {
		panic(err)
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	type Invoice struct {
		Number string `json:"number" readback:"key"`
		Cents  int    `json:"cents"`
	}
	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "enter_invoice", Destination: "books", Kind: "invoice", Write: intent.Create,
	}, Invoice{"INV-7721", 1999})
	if err != nil {
		panic(err)
	}
	out, err := eng.Do(ctx, w)
	fmt.Println(out.Status, out.Ref, err)
	// Output: verified INV-7721 <nil>
}
