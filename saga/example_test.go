package saga_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// Two orders as a whole. The second is refused, so the first is undone, and a read shows that it is
// gone.
func Example() {
	shop, _ := orders.New(orders.Plain.Options()) // in place of your destinations
	_ = shop.Set(orders.Fault{Kind: orders.Refused, Key: "B-1"})
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	led := ledger.NewMemory()
	eng := engine.New(led, &reg, nil)
	defer eng.Close()

	step := func(id string) saga.Step {
		return saga.Step{Name: id, Intent: intent.WriteIntent{
			Tool: "order", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
			Reversibility: intent.Compensable,
			Key:           intent.Fields{"order_id": id},
			Expect:        intent.Fields{"currency": "USD"},
		}}
	}
	runner, ctx := saga.New(led, eng, nil), context.Background()
	if _, err := runner.Begin(ctx, saga.Plan{Tenant: "acme", ID: "trip-7", Steps: []saga.Step{step("A-1"), step("B-1")}}); err != nil {
		panic(err)
	}
	s, err := runner.Run(ctx, "acme", "trip-7")
	fmt.Println(s.State, err)
	for _, st := range s.Steps {
		fmt.Println(st.Name, st.Status)
	}
	fmt.Println("orders in the shop:", shop.Summary("A-1", "B-1").Orders)
	// Output:
	// undone <nil>
	// A-1 compensated
	// B-1 not_applied
	// orders in the shop: 0
}
