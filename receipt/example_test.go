package receipt_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/signing"
)

// A signed statement of a verified write. Who has the public key and the intent can check it.
func Example() {
	shop, _ := orders.New(orders.Plain.Options()) // in place of your destination
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	ctx, led := context.Background(), ledger.NewMemory()
	eng := engine.New(led, &reg, nil)
	defer eng.Close()
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "order", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"currency": "USD"},
	}
	out, err := eng.Do(ctx, w)
	if err != nil {
		panic(err)
	}

	rec, err := led.Get(ctx, "acme", out.ID)
	if err != nil {
		panic(err)
	}
	events, err := led.Events(ctx, "acme", out.ID)
	if err != nil {
		panic(err)
	}
	profile, err := eng.Profile(w)
	if err != nil {
		panic(err)
	}
	statement, err := receipt.Of(rec, events, profile, receipt.Options{Version: "v1"})
	if err != nil {
		panic(err)
	}
	private, public, _ := signing.Generate()
	signer, _ := signing.ReadSigner(private)
	signed, err := statement.Sign(ctx, signer)
	if err != nil {
		panic(err)
	}
	envelope, _ := json.Marshal(signed)

	keys, _ := signing.ReadKeys(public)
	got, err := receipt.Verify(envelope, keys)
	fmt.Println(got.Predicate.Write.Destination, err, got.About(w, nil))
	w.Expect["currency"] = "EUR"
	fmt.Println(got.About(w, nil) != nil)
	// Output:
	// orders <nil> <nil>
	// true
}
