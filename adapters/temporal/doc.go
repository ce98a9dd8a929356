// Package temporal makes writes from Temporal: [Do] in a workflow, [Intercept] for activities that
// exist. The write has the namespace, the workflow ID and the step as its name, so that retries,
// replays and resets are the same write. docs/guide/engines.md describes it beside the adapters of
// other engines.
//
// A workflow and a worker:
//
//	func Charge(ctx workflow.Context, order intent.WriteIntent) (engine.Outcome, error) {
//		return temporal.Do(ctx, "charge", order)
//	}
//
//	w := worker.New(client, "orders", worker.Options{})
//	w.RegisterWorkflow(Charge)
//	temporal.Register(w, eng)
//
// The package knows Temporal's SDK and the engine, and nothing of destinations.
package temporal
