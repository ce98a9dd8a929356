// Package matrix kills the engine at every point of a write's lifetime, with a destination that
// has every fault, and reads the result from the destination.
//
// It has no code of its own, only tests. TestMatrix runs every cell, judges it by the
// destination's own log, and compares docs/reference/guarantees.md with the result; `go test
// ./internal/matrix -update` renders it again.
//
// The package does not know how the engine decides. The expected result of a cell is written down
// here a second time, derived from what the destination can do and from what was done to the
// write.
package matrix
