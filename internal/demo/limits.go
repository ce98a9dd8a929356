package demo

import "time"

const (
	// orders and priceCents are the round numbers that everybody can check.
	orders     = 100
	priceCents = 1999

	// loseEvery: the answer to the first send of each order whose number this
	// divides is lost.
	loseEvery = 5
	// killEvery: the worker is killed between charge and record at each order
	// whose number this divides. Its multiples and those of loseEvery meet.
	killEvery = 9
	// killsBefore is how many times the worker is killed with a send announced
	// and nothing sent, at orders drawn with killSeed.
	killsBefore = 3
	killSeed    = 1

	// naiveTries is how often a naive client calls. Nothing is lost twice in
	// a row, so two would do.
	naiveTries = 3

	// plainTimeout is how long naive retry and the plain ledger wait for an
	// answer. Nobody waits for it: answers are lost by cutting the connection.
	plainTimeout = 20 * time.Second
	// sendTimeout and readTimeout are readback's. They are far above what
	// calls on loopback take, on a machine that is busy too. They are part of
	// every lease, which the successor of a killed worker sits out.
	sendTimeout = 4 * time.Second
	readTimeout = 2 * time.Second
	// horizon is how long a send that was given up may still land. Here a
	// send lands at once or, when its sender was killed before it, never.
	horizon = 3 * time.Second
	// patience and slack are the engine's; see engine.Options.
	patience = time.Second
	slack    = time.Second

	// mostTime bounds the whole demonstration. It takes about 15 seconds.
	mostTime = 55 * time.Second
	// stopTime is how long a process may take to end by itself.
	stopTime = 5 * time.Second

	// liveEvery and plainEvery are how often progress is shown: on a terminal
	// one line changes, elsewhere each is a new line.
	liveEvery  = 100 * time.Millisecond
	plainEvery = 2 * time.Second
)
