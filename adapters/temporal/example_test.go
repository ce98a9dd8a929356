package temporal_test

import (
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/adapters/temporal"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// Order is the record at the shop.
type Order struct {
	ID     string `json:"order_id" readback:"key"`
	Amount int    `json:"amount_cents"`
}

// chargeIntent is what charging an order means.
func chargeIntent(o Order) (intent.WriteIntent, error) {
	return intent.From(intent.WriteIntent{Tool: "charge_card", Destination: "shop", Kind: "order", Write: intent.Create}, o)
}

// ChargeOrder is a workflow whose step is a write.
func ChargeOrder(ctx workflow.Context, o Order) (engine.Outcome, error) {
	w, err := chargeIntent(o)
	if err != nil {
		return engine.Outcome{}, err
	}
	return temporal.Do(ctx, "charge", w)
}

// The workflow runs in Temporal's test environment; a worker of worker.New takes the same two lines.
func ExampleDo() {
	shop, err := orders.New(orders.Plain.Options())
	if err != nil {
		panic(err)
	}
	if err := shop.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := reg.Register("shop", shop.Destination()); err != nil {
		panic(err)
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil) // or postgres.Open, sqlite.Open
	defer eng.Close()

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w := suite.NewTestWorkflowEnvironment()
	w.RegisterWorkflow(ChargeOrder)
	temporal.Register(w, eng)
	w.ExecuteWorkflow(ChargeOrder, Order{"A-1", 1999})

	var out engine.Outcome
	if err := w.GetWorkflowResult(&out); err != nil {
		panic(err)
	}
	fmt.Printf("%s; %d charge at the shop\n", out.Status, shop.Changes("A-1"))
	// Output: verified; 1 charge at the shop
}

// An activity that exists, ChargeCard(ctx, Order) (string, error), becomes a write.
func ExampleIntercept() {
	var eng *engine.Engine
	options := worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		temporal.Intercept(eng, map[string]temporal.Write{"ChargeCard": {
			Intent: func(args []any) (intent.WriteIntent, error) { return chargeIntent(args[0].(Order)) },
			Result: func(out engine.Outcome) (any, error) { return out.Ref, nil },
		}}),
	}}
	_ = options // for worker.New
	// Output:
}
