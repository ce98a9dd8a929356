package audit_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// The events of a write are sealed into the chain of their tenant. A check with a signed head that
// was kept elsewhere finds each change of the ledger.
func Example() {
	shop, _ := orders.New(orders.Plain.Options()) // in place of your destination
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	ctx, led := context.Background(), ledger.NewMemory()
	eng := engine.New(led, &reg, nil)
	defer eng.Close()

	private, public, _ := signing.Generate()
	signer, err := signing.ReadSigner(private)
	if err != nil {
		panic(err)
	}
	sealer := audit.New(led, audit.Options{Signer: signer, Logger: slog.New(slog.DiscardHandler)}) // a program calls sealer.Work
	if _, err := sealer.Seal(ctx); err != nil {
		panic(err)
	}
	if _, err := eng.Do(ctx, intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "order", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"currency": "USD"},
	}); err != nil {
		panic(err)
	}
	if _, err := sealer.Seal(ctx); err != nil {
		panic(err)
	}
	if _, err := sealer.SignHeads(ctx); err != nil {
		panic(err)
	}

	head, err := audit.NewestHead(ctx, led, "acme")
	if err != nil {
		panic(err)
	}
	keys, _ := signing.ReadKeys(public)
	report, err := audit.Verify(ctx, led, audit.VerifyOptions{Heads: []signing.Envelope{head}, Keys: keys})
	fmt.Println(len(report.Problems), err)
	// Output: 0 <nil>
}
