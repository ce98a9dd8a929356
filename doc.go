// Package readback is the map of the module. It contains no code.
//
// readback executes writes to systems that the caller does not own. The caller declares
// a write; the engine records it, sends it once, reads the destination back, and returns a
// verified outcome. README.md has the reasons, docs/reference/guarantees.md the promises and their
// limits, docs/reference/glossary.md the words.
//
// # A first write
//
// A destination, a ledger and an engine, in one process:
//
//	shop, err := orders.New(orders.Plain.Options()) // or jira, mail, sql, rest, ...
//	var reg connectors.Registry
//	err = reg.Register("orders", shop.Destination())
//	eng := engine.New(ledger.NewMemory(), &reg, nil)      // or sqlite.Open, postgres.Open
//	defer eng.Close()
//
//	w, err := intent.From(intent.WriteIntent{
//		Tenant: "acme", Workflow: "run-42", Step: "charge", Tool: "charge_card",
//		Destination: "orders", Kind: "order", Write: intent.Create,
//	}, Order{ID: "INV-7721", Amount: 1999})
//	out, err := eng.Do(ctx, w) // again, from anywhere: the same outcome, and nothing is sent
//
// The example below has a connector of one's own, whole; examples/order is a program whose
// destination loses the response.
//
// # Packages
//
// Imports point up this list only; arch_test.go has the exact table. A write:
//
//   - [github.com/readback-go/readback/intent]: the contract. Strict decoding, validation,
//     keys, digest, JSON Schema.
//   - [github.com/readback-go/readback/connectors]: what a destination is. Below it one
//     package for each (imap, jira, mail, mcp, rest, sql, webhook), the HTTP client
//     (httpsend), network limits (egress), and the suite that all connectors pass
//     (connectortest).
//   - [github.com/readback-go/readback/ledger]: the durable record of every write, as a table
//     of legal transitions. Below it the drivers (sqlite, postgres) and their suite
//     (ledgertest).
//   - [github.com/readback-go/readback/verify]: send once, read, compare; the verdict.
//   - [github.com/readback-go/readback/policies]: what to do about a verdict, and when a
//     second send is harmless.
//   - [github.com/readback-go/readback/engine]: the only control flow. Start at New and
//     Engine.Do.
//
// Beside and above single writes:
//
//   - [github.com/readback-go/readback/guards]: rates, breaker, concurrency and stops, shared
//     by all workers. [github.com/readback-go/readback/lag]: how long effects take to become
//     visible.
//   - [github.com/readback-go/readback/gate]: the step gate, which an orchestrator asks before
//     and after a step. [github.com/readback-go/readback/saga]: writes that are all done or
//     all undone.
//   - [github.com/readback-go/readback/redact]: sealing of sensitive values.
//   - [github.com/readback-go/readback/telemetry]: spans, metrics and events for
//     OpenTelemetry.
//   - [github.com/readback-go/readback/audit], [github.com/readback-go/readback/receipt],
//     [github.com/readback-go/readback/signing]: the chain of events with signed heads,
//     signed statements of what was observed, and the keys of both.
//   - [github.com/readback-go/readback/readbacktest]: faults, kills and replays for the tests
//     of your own programs.
//
// The program cmd/readback reads the configuration (internal/config), asks one service who
// may do what (internal/service, internal/access), and serves the APIs over it: HTTP
// (internal/httpapi), MCP (internal/mcpapi), gateways (internal/mcpgate) and the review UI
// (internal/reviewui). Its command eval checks the destinations, without the ledger, against
// what was declared (internal/eval). Fakes of destinations, with their faults, are in internal/fakes;
// internal/verifytest checks with them that no wrong state is verified.
//
// To add a destination read docs/guide/destinations.md.
package readback
