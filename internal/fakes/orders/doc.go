// Package orders is a small HTTP destination, "orders", that records every effect exactly and
// has every fault that a destination can have.
//
// There are four layers:
//
//   - [World] holds the records, the effects and the faults. Its own list of
//     effects ([World.Effects], [World.Records], [World.Summary]) is the oracle
//     of tests: it records what really happened.
//   - [Handler] serves a world over HTTP; [Run] does so as a process of its own
//     that writes every effect to an fsynced log ([ReadLog]).
//   - [Transport] carries requests to a world inside this process, with no
//     network, so that everything works under testing/synctest.
//   - [Connector] is the destination as readback sees it.
//
// In a test:
//
//	world, err := orders.New(orders.Plain.Options())
//	world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
//	registry.Register("orders", world.Destination())
//	… // an intent for destination "orders", kind "order", key {"order_id": "A-1"}
//	world.Records("A-1")       // what is there
//	world.Summary("A-1", "A-2") // duplicates, lost, calls
//
// [Options] define what the destination can do; the four classes ([Native], [Unique], [Plain],
// [Lagging]) are sets of them.
//
// The package does not know the engine, and the connector knows only what came over HTTP: it
// cannot see the effects, nor which fault is set.
package orders
