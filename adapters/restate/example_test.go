package restate_test

import (
	"context"
	"net/http"

	sdk "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"

	readback "github.com/readback-go/readback/adapters/restate"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// A workflow for each order charges a card. A handler without readback had restate.Run here.
func Example() {
	var book ledger.Ledger
	var eng *engine.Engine
	ctx := context.Background()
	writes := &readback.Writes{Service: "orders", Engine: eng, Ledger: book}
	orders := sdk.NewWorkflow("orders").Handler("run", sdk.NewWorkflowHandler(func(ctx sdk.WorkflowContext, o Order) (string, error) {
		w, err := intent.From(intent.WriteIntent{
			Tenant: "acme", Tool: "charge", Destination: "payments", Kind: "charge", Write: intent.Create,
		}, o)
		if err != nil {
			return "", sdk.ToTerminalError(err)
		}
		out, err := writes.Do(ctx, "charge", w)
		return out.Ref, err
	}))
	go func() { _ = eng.Work(ctx, nil) }() // in any process with this ledger
	go func() { _ = readback.Wake(ctx, book, "http://restate.example:8080", &http.Client{}) }()
	_ = server.NewRestate().Bind(orders).Start(ctx, ":9080")
}
