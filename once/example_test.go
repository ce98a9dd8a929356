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

// Charge is what the bank must have.
type Charge struct {
	Invoice string `json:"invoice"`
	Cents   int    `json:"cents"`
}

// Stored is a charge as the bank shows it.
type Stored struct {
	ID, Reference string
	Charge        Charge
}

// Bank loses the response to every charge. It recognises no repeats.
type Bank struct{ stored []Stored }

// Post charges a card.
func (b *Bank) Post(_ context.Context, c Charge, reference string) error {
	b.stored = append(b.stored, Stored{fmt.Sprintf("ch_%d", len(b.stored)+1), reference, c})
	return errors.New("the connection was reset")
}

// List returns the charges of an invoice.
func (b *Bank) List(_ context.Context, invoice string) (found []Stored, err error) {
	for _, s := range b.stored {
		if s.Charge.Invoice == invoice {
			found = append(found, s)
		}
	}
	return found, nil
}

// chargeCard may be called again after any error, and after a crash.
func chargeCard(ctx context.Context, store ledger.Ledger, bank *Bank) error {
	charge := Charge{Invoice: "INV-7721", Cents: 1999}
	out, err := once.Do(ctx, store, once.Write{ // store: sqlite.Open, postgres.Open, ledger.NewMemory
		Key:    "charge:INV-7721", // one key is one charge
		Expect: charge,
		Send: func(ctx context.Context, stamp string) error {
			return bank.Post(ctx, charge, stamp) // the stamp is kept as the charge's reference
		},
		Find: func(ctx context.Context, _ string) (found []once.Record, err error) {
			charges, err := bank.List(ctx, charge.Invoice)
			for _, c := range charges {
				found = append(found, once.Record{Ref: c.ID, Stamp: c.Reference, Fields: c.Charge})
			}
			return found, err
		},
		Settle:  connectors.Within(0),           // the bank lists a charge as soon as it is made
		Horizon: connectors.Within(time.Minute), // a request arrives within a minute, or never
	})
	if err != nil {
		return err // not charged, or not known: out.Status
	}
	fmt.Println(out.Status, out.Ref)
	return nil
}

// A card is charged once, although the bank loses the response and the caller repeats the call.
func Example() {
	store, bank := ledger.NewMemory(), new(Bank)
	for range 2 {
		if err := chargeCard(context.Background(), store, bank); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("charges:", len(bank.stored))
	// Output:
	// verified ch_1
	// verified ch_1
	// charges: 1
}
