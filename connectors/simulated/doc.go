// Package simulated is a small HTTP destination, "orders", that keeps an exact
// account of every effect and has every vice that a destination can have.
//
// There are four layers:
//
//   - [World] holds the records, the effects and the vices. Its own list of
//     effects ([World.Effects], [World.Records], [World.Summary]) is the oracle
//     of tests: it says what happened, whoever believes what.
//   - [Handler] serves a world over HTTP; [Run] does so as a process of its own
//     that keeps every effect in an fsynced log ([ReadLog]).
//   - [Transport] carries requests to a world inside this process, with no
//     network, so that everything works under testing/synctest.
//   - [Connector] is the destination as readback sees it.
//
// In a test:
//
//	world, err := simulated.New(simulated.Plain.Options())
//	world.Set(simulated.Fault{Vice: simulated.LostAnswer, Times: 1})
//	registry.Register("orders", world.Destination())
//	… // an intent for destination "orders", kind "order", key {"order_id": "A-1"}
//	world.Records("A-1")       // what is there
//	world.Summary("A-1", "A-2") // duplicates, lost, calls
//
// What the destination can do comes from [Options]; the four classes
// ([Native], [Unique], [Plain], [Lagging]) are sets of them.
//
// The package does not know the engine, and the connector knows nothing that
// did not come over HTTP: it cannot see the effects, nor which vice is on.
package simulated
