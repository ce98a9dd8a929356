package telemetry

import "time"

const (
	// maxTools bounds the names of tools that are told apart: names come from
	// callers, and each is a series of its own for as long as the process lives.
	maxTools = 200
	// surveyTimeout bounds one count of a ledger: numbers that are missing once are
	// better than a reader that hangs.
	surveyTimeout = 3 * time.Second
)

// The bounds between which times and numbers are counted, in seconds and pieces.
var (
	// callBounds suit calls of APIs: from a neighbour on the same machine to the
	// longest time-out that people configure.
	callBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// lifeBounds suit a write from its begin to its end: one that waits for a rate
	// limit or a person takes hours or days.
	lifeBounds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 86400}
	// pieceBounds count sends and reads: near one where all is well.
	pieceBounds = []float64{0, 1, 2, 3, 5, 8, 13, 21, 50}
)
