package engine_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Charge is the record at the destination.
type Charge struct {
	ID       string `json:"order_id" readback:"key"`
	Amount   int    `json:"amount_cents"`
	Currency string `json:"currency"`
}

// charge returns the intent of the examples.
func charge(id string) intent.WriteIntent {
	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: id, Tool: "charge_card",
		Destination: "orders", Kind: orders.Kind, Write: intent.Create,
	}, Charge{ID: id, Amount: 1999, Currency: "USD"})
	if err != nil {
		panic(err)
	}
	return w
}

// A destination that loses the response to the first write. The engine reads the record back
// instead of sending again.
func ExampleEngine_Do() {
	shop, _ := orders.New(orders.Plain.Options()) // in place of your destination
	_ = shop.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	eng := engine.New(ledger.NewMemory(), &reg, nil) // or sqlite.Open, postgres.Open
	defer eng.Close()

	out, err := eng.Do(context.Background(), charge("INV-7721"))
	fmt.Println(out.Status, out.Sends, err)
	// Output: verified 1 <nil>
}

// One process records, workers send: in a web server, the response need not wait.
func ExampleEngine_Enqueue() {
	shop, _ := orders.New(orders.Plain.Options())
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	id, err := eng.Enqueue(ctx, charge("INV-7721")) // on disk when it returns
	if err != nil {
		panic(err)
	}
	go func() { _ = eng.Work(ctx, nil) }() // in any process with this ledger
	for out, err := range eng.Subscribe(ctx, "acme", id) {
		fmt.Println(out.Status, err)
		break
	}
	// Output: verified <nil>
}

// A write that needs approval is recorded and not sent. A reviewer decides about what was
// declared, never the agent itself.
func ExampleEngine_Resolve() {
	shop, _ := orders.New(orders.Plain.Options())
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	eng := engine.New(ledger.NewMemory(), &reg, &engine.Options{
		Risks: []policies.RiskRule{{Tool: "charge_card"}},
	})
	defer eng.Close()

	agent := engine.As(context.Background(), engine.Principal{Name: "bot", Role: engine.RoleAgent})
	held, _ := eng.Do(agent, charge("INV-7721"))
	fmt.Println(held.Status)

	approval := engine.Decision{Word: engine.WordApprove, By: "ann", Reason: "the customer confirmed it"}
	_, err := eng.Resolve(agent, "acme", held.ID, approval)
	fmt.Println(err)

	reviewer := engine.As(context.Background(), engine.Principal{Name: "ann", Role: engine.RoleReviewer})
	out, err := eng.Resolve(reviewer, "acme", held.ID, approval)
	fmt.Println(out.Status, err)
	// Output:
	// held
	// not yours to decide: the credentials are an agent's ("bot"), and an agent decides about no write
	// verified <nil>
}
