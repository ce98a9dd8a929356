package gate_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// An orchestrator asks before a step that it carries out itself, and again when it replays it.
func Example() {
	shop, _ := orders.New(orders.Plain.Options()) // in place of your destination
	var reg connectors.Registry
	_ = reg.Register("orders", shop.Destination())
	led := ledger.NewMemory()
	eng := engine.New(led, &reg, nil)
	defer eng.Close()

	ctx, agent := context.Background(), gate.Caller{Tenant: "acme", Name: "bot", Role: engine.RoleAgent}
	g := gate.New(led, &gate.Options{Reader: eng})
	wf, err := g.Create(ctx, agent, gate.CreateRequest{WorkflowName: "refunds"})
	if err != nil {
		panic(err)
	}
	order := intent.WriteIntent{
		Tenant: "acme", Workflow: wf.WorkflowID, Step: "order", Tool: "order",
		Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"currency": "USD"},
	}
	declared, err := order.Encode()
	if err != nil {
		panic(err)
	}
	ask := gate.GateRequest{
		StepName: "order", StepType: "tool_call", ToolContext: &gate.ToolContext{ToolName: "order"},
		Intent: declared,
	}
	granted, err := g.Gate(ctx, agent, wf.WorkflowID, "order", ask)
	fmt.Println(granted.Decision, granted.LeaseGranted, err)

	// The orchestrator makes the order itself, and reports it. The gate reads the destination.
	if _, err := shop.Destination().Connector.Write(ctx, connectors.Request{Intent: order, Attempt: 1}); err != nil {
		panic(err)
	}
	seen, err := g.CompleteStep(ctx, agent, wf.WorkflowID, "order", gate.CompleteRequest{Fence: granted.Fence})
	fmt.Println(seen.Effect, err)

	// The answer to a replay of the step says that it was completed.
	replay, err := g.Gate(ctx, agent, wf.WorkflowID, "order", ask)
	fmt.Println(replay.LeaseGranted, replay.RetryContext.PriorCompletionStatus, err)
	// Output:
	// allow true <nil>
	// present <nil>
	// false completed <nil>
}
