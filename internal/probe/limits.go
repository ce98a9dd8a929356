package probe

import "time"

const (
	// defaultRounds is how many records the lag is measured with unless said
	// otherwise: enough to see a median and a worst, few enough for any
	// sandbox. maxRounds keeps a slip of the finger from filling it.
	defaultRounds = 5
	maxRounds     = 50

	// agree is how many reads in a row must show a write before it counts as
	// visible: with several replicas behind one address, the first that has it
	// proves nothing about the others.
	agree = 3

	// firstPause and the pauses after it lie between two reads of one write.
	// The longest is a part of the settle time, so that a lag beyond it is not
	// overlooked, and never above longestPause.
	firstPause   = 20 * time.Millisecond
	pausePart    = 8
	shortPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second

	// patience is how long a write is looked for beyond twice the settle time.
	patience = time.Minute

	// maxThrottled is how many throttled sends a run repeats in all, and
	// longestThrottle how long one is waited for: a probe is not worth more of
	// a destination's patience.
	maxThrottled    = 10
	longestThrottle = time.Minute

	// perCleaning is how many sends are set aside for taking one record away:
	// one, one more for a duplicate, and the rest for sends that come to
	// nothing.
	perCleaning = 6

	// cleanupFor, and three settle times, bound the whole of taking records
	// away, whatever has become of the context of the run; lateFor bounds the
	// waiting for a record whose send nobody answered and that may land yet.
	cleanupFor = 15 * time.Minute
	lateFor    = 5 * time.Minute

	// maxValue is how much of a value or an error is shown, in characters.
	maxValue = 60
)
