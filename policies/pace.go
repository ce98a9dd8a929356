package policies

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// backoffAfter is how long to wait after the n-th send that was not taken up,
// unless the destination asked for longer.
func backoffAfter(n int, asked time.Duration) time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(retryFirst), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(retryMost), backoff.WithMaxElapsedTime(0),
		backoff.WithRandomizationFactor(0)) // pure: the spread comes from the engine
	pause := b.NextBackOff()
	for range min(n-1, maxDoublings) {
		pause = b.NextBackOff()
	}
	return max(pause, min(asked, maxRetryAfter))
}

// ReadPace is the pace at which one write is read back: quickly at first,
// then ever more slowly.
func ReadPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(readFirst), backoff.WithMultiplier(1.7),
		backoff.WithMaxInterval(readMost), backoff.WithMaxElapsedTime(0),
		backoff.WithRandomizationFactor(0.2))
}
