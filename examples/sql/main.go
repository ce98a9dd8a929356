// Sql enters one invoice into a table whose database loses the answer to COMMIT, and prints the
// verified outcome: one row, sent once.
//
// It needs no server: the database is a SQLite file, through database/sql. With PostgreSQL,
// sql.Options{DSN: …} replaces DB and Dialect.
package main

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Invoice is the row as this program knows it.
type Invoice struct {
	Number string `json:"number" readback:"key"`
	Cents  int    `json:"cents"`
	Note   string `json:"note"`
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		slog.Error("sql", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "invoices")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, answers, err := open(ctx, filepath.Join(dir, "books.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()

	books, err := sql.New(sql.Options{
		DB: db, Dialect: sql.SQLite(),
		ReadYourWrites: true,        // one file
		Horizon:        time.Second, // in this process a COMMIT is done or it is not
		Tables: map[string]sql.Table{"invoice": {
			Name: "invoices", Key: []string{"number"}, Unique: true, Stamp: "stamp",
			Columns: []sql.Column{{Name: "number"}, {Name: "cents", Type: sql.Integer}, {Name: "note"}},
		}},
	})
	if err != nil {
		return err
	}
	var reg connectors.Registry
	if err := reg.Register("books", connectors.Destination{Connector: books, Profiles: books.Profiles()}); err != nil {
		return err
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: "book", Tool: "enter_invoice",
		Destination: "books", Kind: "invoice", Write: intent.Create,
	}, Invoice{Number: "INV-7721", Cents: 1999, Note: "for Ada's desk"})
	if err != nil {
		return err
	}
	answers.lose(1)
	for range 2 { // an orchestrator that replays the step
		o, err := eng.Do(ctx, w)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s, sends %d, replayed %t: %s\n", o.Status, o.Sends, o.Replayed, o.Text)
	}
	return count(ctx, out, db, answers)
}

func count(ctx context.Context, out io.Writer, db *stdsql.DB, answers *lossy) error {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM invoices WHERE number = 'INV-7721'").Scan(&n); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "answers lost: %d; the table has %d such row\n", answers.lost.Load(), n)
	return err
}
