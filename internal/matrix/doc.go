// Package matrix lets the engine die at every point of a write's life, before
// a destination with every vice, and asks the destination what came of it.
//
// It has no code of its own, only tests. TestMatrix runs every cell, judges it
// by the destination's own log, and holds docs/guarantees.md against the
// result; `go test ./internal/matrix -update` renders it anew.
//
// The package does not know how the engine decides. What must come of a cell is
// written down here a second time, from what the destination can do and from
// what was done to the write.
package matrix
