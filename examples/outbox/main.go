// Outbox takes an order and enqueues the charge for it in one transaction of its own database, so
// that neither exists without the other. A worker delivers the charge to a destination that loses
// the answer, and the outcome is printed: one record for the order that was committed, none for
// the one that was not.
//
// It needs no account: the database is a file in a temporary folder, and the destination runs in
// this process.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	_ "modernc.org/sqlite" // the driver of this program's own connections
)

// Charge is the record at the destination as this program knows it.
type Charge struct {
	ID       string `json:"order_id" readback:"key"`
	Amount   int    `json:"amount_cents"`
	Currency string `json:"currency"`
}

// takeOrder is the order service: its own row and the write, in one
// transaction. With PostgreSQL tx is a pgx.Tx (or a *sql.Tx), and the one line
// about readback is
//
//	return postgres.Enqueue(ctx, tx, w) // or postgres.EnqueueSQL
func takeOrder(ctx context.Context, tx *sql.Tx, order string) (ledger.ID, error) {
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, state) VALUES (?, 'taken')", order); err != nil {
		return "", err
	}
	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: order, Step: "charge", Tool: "charge_card",
		Destination: "orders", Kind: orders.Kind, Write: intent.Create,
	}, Charge{ID: order, Amount: 1999, Currency: "USD"})
	if err != nil {
		return "", err
	}
	return sqlite.Enqueue(ctx, tx, w)
}

// sell takes two orders, and thinks better of the second.
func sell(ctx context.Context, db *sql.DB) (kept, dropped ledger.ID, err error) {
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT)"); err != nil {
		return "", "", err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", "", err
	}
	if kept, err = takeOrder(ctx, tx, "INV-7721"); err != nil {
		return "", "", err
	}
	if err := tx.Commit(); err != nil {
		return "", "", err
	}
	if tx, err = db.BeginTx(ctx, nil); err != nil {
		return "", "", err
	}
	if dropped, err = takeOrder(ctx, tx, "INV-7722"); err != nil {
		return "", "", err
	}
	return kept, dropped, tx.Rollback()
}

func main() {
	shop, err := store()
	if err == nil {
		err = run(context.Background(), shop, os.Stdout)
	}
	if err != nil {
		slog.Error("outbox", "error", err)
		os.Exit(1)
	}
}

// store is a destination that loses its first answer.
func store() (*orders.World, error) {
	shop, err := orders.New(orders.Plain.Options())
	if err != nil {
		return nil, err
	}
	return shop, shop.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
}

func run(ctx context.Context, shop *orders.World, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "readback-outbox-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "shop.db")
	led, err := sqlite.Open(ctx, path, nil) // makes its tables beside the program's own
	if err != nil {
		return err
	}
	defer func() { _ = led.Close() }()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	kept, dropped, err := sell(ctx, db)
	if err != nil {
		return err
	}

	var reg connectors.Registry
	if err := reg.Register("orders", shop.Destination()); err != nil {
		return err
	}
	eng := engine.New(led, &reg, nil)
	defer eng.Close()
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- eng.Work(working, nil) }()

	for o, err := range eng.Subscribe(ctx, "acme", kept, dropped) {
		if err != nil {
			_, _ = fmt.Fprintf(out, "nothing: %v\n", err)
			continue
		}
		_, _ = fmt.Fprintf(out, "%s, sends %d: %s\n", o.Status, o.Sends, o.Text)
	}
	stop()
	_, _ = fmt.Fprintf(out, "the shop has %d record of the order that was committed, %d of the one that was rolled back\n",
		len(shop.Records("INV-7721")), len(shop.Records("INV-7722")))
	return <-worked
}
