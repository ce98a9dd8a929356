// Order charges one order at a destination that loses the answer, and prints
// the verified outcome: one record, sent once.
//
// It needs no account: the destination, shop.go, is in this process.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Order is the record as this program knows it.
type Order struct {
	ID       string `json:"order_id" readback:"key"`
	Amount   int    `json:"amount_cents"`
	Currency string `json:"currency"`
}

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("order", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	orders := &shop{}
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: orders, Profiles: orders.profiles()}); err != nil {
		return err
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: "charge", Tool: "charge_card",
		Destination: "orders", Kind: "order", Write: intent.Create,
	}, Order{ID: "INV-7721", Amount: 1999, Currency: "USD"})
	if err != nil {
		return err
	}
	for range 2 { // an orchestrator that replays the step
		out, err := eng.Do(ctx, w)
		if err != nil {
			return err
		}
		fmt.Printf("%s, sends %d, replayed %t: %s\n", out.Status, out.Sends, out.Replayed, out.Text)
	}
	fmt.Printf("the shop has %d such order\n", len(orders.all))
	return nil
}
