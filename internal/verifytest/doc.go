// Package verifytest audits the checkers: it seeds wrong states at a destination and checks
// that none is called verified.
//
// A verifier that believes too much looks perfect until a write goes wrong, and one that
// believes nothing blocks everything. So [Audit] tests both. It seeds, at the destination of a
// connector's own harness, each [State] that a write can wrongly leave (a duplicate, a dropped
// field, another tenant's record, two records swapped, and so on), reads through the connector,
// has package verify judge as the engine would, and requires that no state is accepted. Then it
// does the same with legitimate differences (values in a form that the profile's comparison
// allows, fields that the destination adds) and requires that none is refused. The
// destination's own store decides whether a state is wrong, never the code under audit.
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
// Declare an impossible state in Lacks with a reason, which is printed. A state that is neither
// seeded nor declared fails the audit, and so does an audit that judged nothing.
//
// The package does not know any destination and does not test the engine's decisions: only what
// may be called verified.
package verifytest
