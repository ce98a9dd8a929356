package verifytest

import "time"

const (
	// What the suite's harness says nothing about. As in connectortest: in a
	// bubble time is free, in real time it outlasts a slow machine.
	bubblePatience = time.Minute
	realPatience   = 10 * time.Second

	// pause lies between two looks at something that must come.
	pause = 20 * time.Millisecond

	// calm lies between two writes where a replica is to have seen the first,
	// in a bubble: longer than any lag.
	calm = 10 * time.Minute

	// long is what is added to the settle time for the kindest judgement: the
	// read then surely shows all that was ever applied.
	long = time.Hour
)
