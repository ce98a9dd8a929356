// Package readback is the map of the module. It contains no code.
//
// readback executes writes to systems that the caller does not own. The caller declares a write.
// The engine records it, sends it once, reads the destination back, and returns a verified
// outcome. README.md has the reasons, docs/reference/guarantees.md the promises and their limits,
// docs/guide/writes.md the lifecycle of a write, docs/reference/glossary.md the words and a
// picture of the packages.
//
// # A first write
//
// shop is a destination: a connector and its profile.
//
//	type Order struct {
//		ID     string `json:"order_id" readback:"key"`
//		Amount int    `json:"amount_cents"`
//	}
//
//	var reg connectors.Registry
//	err := reg.Register("orders", shop)
//	eng := engine.New(ledger.NewMemory(), &reg, nil) // or sqlite.Open, postgres.Open
//	defer eng.Close()
//
//	w, err := intent.From(intent.WriteIntent{
//		Tenant: "acme", Workflow: "run-42", Step: "charge", Tool: "charge_card",
//		Destination: "orders", Kind: "order", Write: intent.Create,
//	}, Order{ID: "INV-7721", Amount: 1999})
//	out, err := eng.Do(ctx, w)
//	out, err = eng.Do(ctx, w) // the same outcome; nothing is sent
//
// The examples below are this program and its connector, whole. The destination of examples/order
// loses the response.
//
// # Packages
//
// A package imports only packages of a lower layer; arch_test.go has the layers. A write, from
// the lowest layer up:
//
//   - [github.com/readback-go/readback/intent]: the contract. Strict decoding, validation,
//     keys, digest, JSON Schema.
//   - [github.com/readback-go/readback/connectors]: what a destination is. Below it one package
//     for each type: connectors/imap, connectors/jira, connectors/mail, connectors/mcp,
//     connectors/rest, connectors/s3, connectors/sql, connectors/webhook. connectors/httpsend is their HTTP
//     client, connectors/egress limits their networks, connectors/connectortest is the test
//     suite of every connector.
//   - [github.com/readback-go/readback/ledger]: the durable record of every write, and the table
//     of legal transitions. Below it the drivers ledger/sqlite and ledger/postgres, their
//     test suite ledger/ledgertest, and ledger/shards, one ledger over several databases.
//   - [github.com/readback-go/readback/verify]: sends once, reads, compares; the verdict.
//   - [github.com/readback-go/readback/policies]: the decision on a verdict, and when a second
//     send is harmless.
//   - [github.com/readback-go/readback/engine]: the only control flow. Start at New and
//     Engine.Do.
//
// Beside and above single writes:
//
//   - [github.com/readback-go/readback/once]: one function and two closures for programs that only
//     want to make a write once.
//   - [github.com/readback-go/readback/guards]: rates, breaker, concurrency and stops, shared by
//     all workers. [github.com/readback-go/readback/lag]: how long effects take to become
//     visible.
//   - [github.com/readback-go/readback/gate]: the step gate, which an orchestrator calls before
//     and after a step. [github.com/readback-go/readback/saga]: writes that are all done or all
//     undone.
//   - [github.com/readback-go/readback/redact]: seals sensitive values.
//   - [github.com/readback-go/readback/telemetry]: spans, metrics and events for OpenTelemetry.
//   - [github.com/readback-go/readback/audit]: the chain of events with signed heads.
//     [github.com/readback-go/readback/receipt]: signed statements of what was observed.
//     [github.com/readback-go/readback/signing]: the keys of both.
//   - [github.com/readback-go/readback/readbacktest]: faults, kills and replays for the tests of
//     your own programs; readbacktest/fault is its fault model, internal/chaos its proxy,
//     which the command chaos serves.
//
// The folder adapters has a module for each workflow engine, such as adapters/temporal: a step of
// the engine is a write. docs/guide/engines.md describes them. internal/messages is what the
// adapters of brokers share.
//
// # The program
//
// cmd/readback is [github.com/readback-go/readback/command], which reads the configuration and
// serves the APIs; a main package of your own adds connectors to it. Every API calls one service:
//
//   - internal/server opens a configured ledger and serves every API;
//     internal/service checks who may do what and has the view of a write, a step and a saga;
//     internal/access has tokens, logins and sessions.
//   - APIs: internal/httpapi (the step gate over HTTP), internal/httpapi/v1 (writes over HTTP),
//     internal/mcpapi and internal/mcpapi/tool (tools for models), internal/mcpgate (gateways
//     before MCP servers), internal/reviewui (pages for reviewers), internal/report (the
//     terminal), internal/webhooks (messages to programs), internal/notify (messages to people), internal/metrics (Prometheus).
//   - Configuration: internal/config, internal/yamlfile, internal/rules (rules of the gate),
//     internal/declared, internal/jsonplace and internal/openapi (declared destinations).
//   - Destinations: internal/catalog (what is known of each), internal/probe (measures one),
//     internal/eval (compares them with what was declared), internal/mailconn and
//     internal/mailtext (mail).
//   - Ledger and evidence: internal/driver (shared by the drivers), internal/elapsed (counts
//     time), internal/sealed (seals documents), internal/erasure, internal/replays,
//     internal/objects (heads in an object store), internal/otel, internal/pgserver.
//   - Small parts: internal/visible (text of others), internal/jsonkind, internal/pause,
//     internal/wire, internal/demo, internal/notices, internal/release (packages for npm and PyPI).
//
// # Proof
//
// docs/maintain.md describes the tests:
//
//   - internal/matrix, internal/sagamatrix, internal/simulation, internal/explorer: faults,
//     crashes, other actors and every order of events. internal/verifytest: no wrong state is
//     verified. internal/mutants: each rule has a test that fails without it.
//   - internal/soak, internal/load, internal/storebench: many processes, many clients, speed.
//   - internal/browsertest, internal/snippets: pages in a browser, the blocks of
//     docs/guide/start.md.
//   - Fakes with real faults: internal/fakes/imap, internal/fakes/jira, internal/fakes/mail,
//     internal/fakes/mcp, internal/fakes/orders, internal/fakes/rest,
//     internal/access/accesstest, internal/otel/oteltest, internal/pgtest.
//   - Kits: internal/adaptertest, internal/need, internal/program, internal/crashtest, internal/dispatchtest,
//     internal/killtest, internal/fakes/orders/orderstest, internal/httpapi/contracttest.
//
// To add a destination read docs/guide/destinations.md.
package readback
