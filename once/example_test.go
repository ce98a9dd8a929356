package once_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/once"
)

// Charge is a charge as the bank stores it.
type Charge struct {
	ID        string `json:"id,omitempty"`
	Reference string `json:"reference,omitempty"`
	Invoice   string `json:"invoice"`
	Cents     int    `json:"cents"`
}

// bank loses the response of every charge.
type bank struct{ charges []Charge }

func (b *bank) Post(_ context.Context, c Charge) error {
	c.ID = fmt.Sprintf("ch_%d", len(b.charges)+1)
	b.charges = append(b.charges, c)
	return errors.New("the connection was reset")
}

func (b *bank) Get(_ context.Context, invoice string) (found []Charge, err error) {
	for _, c := range b.charges {
		if c.Invoice == invoice {
			found = append(found, c)
		}
	}
	return found, nil
}

// A card is charged once, although the bank loses the response and the caller repeats the call.
func Example() {
	ctx, bank, store := context.Background(), &bank{}, ledger.NewMemory() // or sqlite.Open, postgres.Open

	charge := Charge{Invoice: "INV-7721", Cents: 1999}
	write := once.Write{
		Key:    "charge:INV-7721",
		Expect: charge,
		Send: func(ctx context.Context, stamp string) error {
			c := charge
			c.Reference = stamp
			return bank.Post(ctx, c)
		},
		Find: func(ctx context.Context, _ string) (found []once.Record, err error) {
			charges, err := bank.Get(ctx, charge.Invoice)
			for _, c := range charges {
				found = append(found, once.Record{Ref: c.ID, Stamp: c.Reference, Fields: c})
			}
			return found, err
		},
		Settle: connectors.Within(0), Horizon: connectors.Within(time.Minute),
	}
	for range 2 {
		out, err := once.Do(ctx, store, write)
		fmt.Println(out.Status, out.Ref, err)
	}
	fmt.Println("charges:", len(bank.charges))
	// Output:
	// verified ch_1 <nil>
	// verified ch_1 <nil>
	// charges: 1
}
