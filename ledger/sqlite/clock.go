package sqlite

import (
	"fmt"
	"math"
	"time"

	"github.com/readback-go/readback/ledger"
)

// maxClockStep is how far the clock may be before the newest entry and still be used, clamped
// to it: the steps of time daemons and the difference between hosts that share a file. Beyond
// it, no lease, settle time or horizon can be trusted.
const maxClockStep = time.Minute

// The times that fit into 64 bits of nanoseconds since 1970: 1678 to 2262.
var (
	earliest = time.Unix(0, math.MinInt64)
	latest   = time.Unix(0, math.MaxInt64)
)

// nanos returns a time as stored in a column. Times out of range become the nearest valid one.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(earliest):
		return math.MinInt64
	case t.After(latest):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// clamp returns the ledger's clock: the time now, or the newest time in the ledger when that is
// later. Time never runs backwards in a ledger.
func clamp(now time.Time, newest int64) time.Time {
	now = now.Round(0).UTC()
	if at := time.Unix(0, newest).UTC(); at.After(now) {
		return at
	}
	return now
}

// trusted refuses a clock that is too far before the newest entry.
func trusted(now time.Time, newest int64) error {
	at := time.Unix(0, newest)
	if at.Sub(now) <= maxClockStep {
		return nil
	}
	return fmt.Errorf("%w: it is %s here, but the newest entry of the ledger was made at %s: "+
		"set this machine's clock right; if the entry is what is wrong, open the ledger once with ResetClock; "+
		"writes that were sent can still be settled",
		ledger.ErrClock, now.UTC().Format(time.RFC3339Nano), at.UTC().Format(time.RFC3339Nano))
}
