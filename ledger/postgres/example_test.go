package postgres_test

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// The transactional outbox: a row of the program and a write are committed together, or neither.
// Workers of the ledger take the write up. The program needs no rights but to its outbox.
func ExampleEnqueue() {
	_ = func(ctx context.Context, tx pgx.Tx, order string) (ledger.ID, error) {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", order); err != nil {
			return "", err
		}
		return postgres.Enqueue(ctx, tx, intent.WriteIntent{
			Tenant: "acme", Workflow: order, Tool: "charge_card", Destination: "bank", Kind: "charge", Write: intent.Create,
			Key: intent.Fields{"order_id": order}, Expect: intent.Fields{"currency": "USD"},
		})
	}
	// Output:
}
