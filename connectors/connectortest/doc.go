// Package connectortest is the suite that every connector must pass.
//
// The engine relies on a connector to learn what became of a write. The suite therefore tests
// what it returns while the destination misbehaves, one fault at a time: lost responses, late
// commits, false successes, reads that lag or fail. The suite reads what really happened from the
// destination's own store, never from the connector.
//
// Write a [Harness] for the connector's fake, which must support the faults, and call [Run]:
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
// What a destination cannot have is declared in Lacks with a reason, which is printed. Nothing is
// skipped silently, and a declaration that names nothing is an error. The same suite runs on a
// real system with a harness that declares most faults in Lacks.
//
// By default each check runs in a synctest bubble, so that waiting costs nothing. Everything that
// the harness starts must then be in the bubble (no network). Harness.RealTime switches that off.
//
// The suite does not know any destination, does not judge a profile's numbers, and does not test
// the engine.
package connectortest
