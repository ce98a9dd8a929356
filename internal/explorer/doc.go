// Package explorer visits every state that two executors, two writes of one record,
// another actor and an unreliable destination can reach within small bounds, and
// checks the promises in each of them.
//
// It has no code of its own, only tests. The rules are those of the engine: ledger
// (Begin, Advance, Free), verify (JudgeBefore, Judge), policies (CaseOf, Decide, Undo,
// Recheck, Rechecks, StillCreates), elapsed.Clock and the Invert of a connector are
// called, not copied. What the explorer has of its own is the order in which an executor
// calls them, and the destination. Time is counted in ticks. A broken promise is printed
// as the shortest path that leads to it.
//
//	go test ./internal/explorer -v
package explorer
