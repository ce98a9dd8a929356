package policies

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/verify"
)

// backoffAfter returns how long to wait after the n-th send that was not accepted, unless the
// destination asked for longer.
func backoffAfter(n int, asked time.Duration) time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(retryFirst), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(retryMost), backoff.WithMaxElapsedTime(0),
		backoff.WithRandomizationFactor(0)) // pure: the engine adds the jitter
	pause := b.NextBackOff()
	for range min(n-1, maxDoublings) {
		pause = b.NextBackOff()
	}
	return max(pause, min(asked, maxRetryAfter))
}

// writeOnlyPause returns how long to wait before repeating a send that cannot be read back,
// after n sends of unknown fate. Nothing becomes known in between, so only a destination that
// responds again makes a difference.
func writeOnlyPause(n int, asked time.Duration) time.Duration {
	pause := writeOnlyFirst
	for range min(n-1, maxDoublings) {
		pause = min(pause*writeOnlyGrowth, writeOnlyMost)
	}
	if asked > pause {
		pause = min(asked, maxRetryAfter)
	}
	return pause
}

// ReadPace is the pace at which one write is read back: quickly at first,
// then ever more slowly.
func ReadPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(readFirst), backoff.WithMultiplier(1.7),
		backoff.WithMaxInterval(readMost), backoff.WithMaxElapsedTime(0),
		backoff.WithRandomizationFactor(0.2))
}

// PausePreparing returns how long to wait before a pre-state is read again, for a write
// accepted age ago, after a read that was judged j.
func PausePreparing(age time.Duration, j verify.Judgement) time.Duration {
	return max(min(max(age/2, retryFirst), retryMost), min(j.ReadAfter, maxRetryAfter))
}

// PreparingTooLong reports whether to give up a write accepted age ago whose pre-state is
// unreliable: nothing of it was sent.
func PreparingTooLong(p connectors.Profile, j verify.Judgement, age time.Duration) bool {
	if j.Verdict == verify.Unavailable {
		return age > maxUndelivered
	}
	return age > lag(Case{Profile: p})
}

// ReadPause returns how long to wait before the next read of a write: at the pace of reading
// back, but not past the next moment at which a verdict can change its meaning (the settle
// time, the horizon, both together). After hours the reads become ever rarer: otherwise a
// horizon of a day would leave ten thousand events. A destination that asked for a pause gets it.
//
// Where the last read showed all that the send did, only a late arrival changes the verdict, and
// absence is decided at the next such moment. Reads in between are few. Where it was as wanted, and
// may be older than the send, the next one is made when it cannot be.
func ReadPause(c Case, pace backoff.BackOff) time.Duration {
	pause := max(pace.NextBackOff(), c.SinceSend/readShare)
	if awaitsArrival(c) {
		pause = max(pause, arrivalFirst, c.SinceSend*arrivalGrowth)
	}
	if awaitsSettle(c) {
		pause = max(pause, lag(c))
	}
	return max(WithinReason(c, pause), min(c.ReadAfter, maxRetryAfter))
}

// awaitsArrival reports whether the last read would have shown the effect of a send that had
// arrived.
func awaitsArrival(c Case) bool {
	return c.Conclusive && (c.Verdict == verify.Absent || c.Verdict == verify.Stale || c.Verdict == verify.Mismatched)
}

// awaitsSettle reports whether the last read showed what is wanted, and proves it once it cannot be
// older than the send.
func awaitsSettle(c Case) bool {
	_, declared := c.Profile.Settle.Declared()
	return declared && c.Verdict == verify.Indeterminate && !c.Conclusive && !c.Open
}

// WithinReason bounds a pause before the next read by the next moment at which a verdict can
// change its meaning.
func WithinReason(c Case, pause time.Duration) time.Duration {
	horizon, _ := c.Profile.Horizon.Declared()
	moments := []time.Duration{lag(c), horizon, window(c)}
	if c.Conclusive { // a read like the last one shows all that arrives within the horizon when it is that old
		moments = []time.Duration{horizon + c.Since - c.AsOf, window(c)}
	}
	for _, moment := range moments {
		if c.Since < moment {
			pause = min(pause, max(moment-c.SinceSend, readFirst))
		}
	}
	return pause
}

// RecheckPause returns how long to wait before a recheck whose last reads failed is repeated:
// the pace of first reads, and ever more rarely after hours of failure. It counts reads, so
// that a late worker is no slower.
func RecheckPause(failed int) time.Duration {
	pace, pause, passed := ReadPace(), time.Duration(0), time.Duration(0)
	for range min(failed, maxUnsent) {
		pause = max(pace.NextBackOff(), passed/recheckShare)
		passed += pause
	}
	return pause
}

// ResumePace is the pace of reading back a write whose last send is since ago.
func ResumePace(since time.Duration) backoff.BackOff {
	pace := ReadPace()
	for passed := time.Duration(0); passed < since; {
		step := pace.NextBackOff()
		if passed += step; step >= readMost {
			break
		}
	}
	return pace
}
