package resttest

import "time"

const (
	// maxBody is how much of a request is read; the largest body that any of
	// these APIs takes is smaller.
	maxBody = 1 << 20

	// maxEffects bounds the account of one fake. A test that makes more has
	// lost its way.
	maxEffects = 100_000

	// Delays of what happens after the answer, unless a fault says otherwise:
	// long enough to be later, short enough for tests in real time.
	lateDelay    = 50 * time.Millisecond
	lagDelay     = 100 * time.Millisecond
	throttleWait = time.Second
)
