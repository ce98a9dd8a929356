// Package verifytest audits the checkers: it puts wrong states into a
// destination and sees that none is called verified.
//
// A verifier that believes too much looks perfect until the day a write goes
// wrong, and one that believes nothing stops everything. So [Audit] does both:
// it seeds, at the destination of a connector's own harness, each [State] that
// a write can wrongly leave (a duplicate, a dropped field, another tenant's
// record, two records swapped, and so on), reads through the connector, has
// package verify judge as the engine would, and wants no state accepted; then
// it does the same with differences that are none (values in a form that the
// profile's comparison allows, fields that the destination adds) and wants none
// refused. Whether a state is wrong is asked of the destination's own store,
// never of the code under audit.
//
//	func TestAudit(t *testing.T) {
//		verifytest.Audit(t, verifytest.Harness{
//			Suite: suite(), // the harness that connectortest.Run gets
//			Lacks: map[verifytest.State]string{
//				verifytest.Duplicate: "the key is unique, no second record can be",
//			},
//		})
//	}
//
// A state that cannot be had is declared in Lacks with a reason, which is
// printed; a state that is neither seeded nor declared fails the audit, and so
// does an audit that judged nothing.
//
// The package does not know any destination and does not test the engine's
// decisions: only what may be called verified.
package verifytest
