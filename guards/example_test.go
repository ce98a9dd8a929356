package guards_test

import (
	"context"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// An operator stops a destination: writes are recorded, and sent after the release.
func Example() {
	shop, _ := orders.New(orders.Plain.Options()) // in place of your destination
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	led := ledger.NewMemory()
	g := guards.New(led, &reg, &guards.Options{Destinations: map[string]guards.Settings{
		"orders": {Rate: connectors.Rate{Calls: 100, Per: time.Minute}, Concurrency: 8},
	}})
	defer func() { _ = g.Close() }()
	eng := engine.New(led, &reg, &engine.Options{Guards: g, Observer: g.Observe})
	defer eng.Close()

	ctx, all := context.Background(), guards.Scope{Destination: "orders"}
	if err := guards.Stop(ctx, led, all, "ann", "wrong prices"); err != nil {
		panic(err)
	}
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "order", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"currency": "USD"},
	}
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	out, err := eng.Do(brief, w)
	fmt.Println(out.Status, out.Sends, err)

	if err := guards.Release(ctx, led, all, "ann", "prices are right"); err != nil {
		panic(err)
	}
	out, err = eng.Do(ctx, w)
	fmt.Println(out.Status, out.Sends, err)
	// Output:
	// in_progress 0 <nil>
	// verified 1 <nil>
}
