// Package sealed is the ledger for the gate and sagas where values are sealed: what they write is
// sealed, and what they read is opened. Documents are sealed whole, since a step's input and
// output, and the plan of a saga, hold values under undeclared names. A write that is reserved
// together with a document is sealed as the engine seals its own, so that the engine can continue
// it.
//
// It does not know what documents mean, and shows nothing to users.
package sealed
