// Package connectortest is the suite that every connector must pass.
//
// A connector is believed when the engine asks what became of a write, so the
// suite tests what it says while the destination misbehaves, one vice at a
// time: answers that are lost, commits that come late, successes that are none,
// reads that lag or cannot be read. What really happened is asked of the
// destination's own store, never of the connector.
//
// Write a [Harness] for the connector's fake, which must be able to have the
// vices, and call [Run]:
//
//	func TestConnector(t *testing.T) {
//		connectortest.Run(t, connectortest.Harness{
//			Writes: []intent.WriteType{intent.Create, intent.Delete},
//			Open:   open, // a fresh destination, its connector and its oracle
//			Lacks: map[string]string{
//				string(connectortest.BadGateway): "the protocol has no gateways",
//			},
//		})
//	}
//
// What a destination cannot have is declared in Lacks with a reason, which is
// printed; nothing is skipped in silence, and a declaration that names nothing
// is an error. The same suite runs on a real system with a harness whose vices
// are mostly declared away.
//
// By default each check runs in a synctest bubble, so that waiting costs
// nothing; then everything that the harness starts must live in the bubble (no
// network). Harness.RealTime switches that off.
//
// The suite does not know any destination, does not judge a profile's numbers,
// and does not test the engine.
package connectortest
