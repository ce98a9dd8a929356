// Package readback is the map of the module: it holds no code.
//
// readback takes writes to systems you do not own out of the hands of programs
// that may repeat themselves. A caller declares a write; the engine records it,
// sends it once, reads the destination back, and answers with a verified
// outcome. README.md tells why, docs/guarantees.md what is promised and what
// cannot be.
//
// The rooms, from the ground up; each imports only rooms above it in this
// list:
//
//   - [github.com/readback-go/readback/intent]: the contract. What a caller
//     wants to be true, and the names that follow from it.
//   - [github.com/readback-go/readback/connectors]: what a destination is.
//     Destinations live below it, with the suite they all pass
//     (connectors/connectortest).
//   - [github.com/readback-go/readback/ledger]: the durable record of every
//     write, as a table of legal moves. Drivers live below it (ledger/sqlite),
//     with the suite they all pass (ledger/ledgertest).
//   - [github.com/readback-go/readback/verify]: send once, read, compare. Says
//     what is true.
//   - [github.com/readback-go/readback/policies]: says what to do about it,
//     and when a write may be sent again.
//   - [github.com/readback-go/readback/engine]: does it. The only control flow.
//
// To use readback from Go, start at engine.New and engine.Engine.Do; from
// anywhere else, at the command readback (cmd/readback). To add a destination,
// read docs/adding-a-connector.md.
package readback
