package connectortest

import "time"

const (
	// What a harness that says nothing is given. In a bubble time is free, so
	// patience outlasts any lag; in real time it outlasts a slow machine.
	bubblePatience    = time.Minute
	realPatience      = 10 * time.Second
	bubbleSendTimeout = time.Second
	realSendTimeout   = 200 * time.Millisecond

	// pause lies between two looks at something that must come.
	pause = 20 * time.Millisecond

	// crowd is how many writers the concurrency check has: enough to meet on
	// every shared variable, few enough for a real mail server.
	crowd = 8

	// severalPages is how many records the checks of lists make: more than two
	// pages of the destinations that come with readback.
	severalPages = 45
)
