package engine

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// defaultWindow is how long an idempotency key blocks other writes: the
	// shortest window that the large payment APIs promise for theirs.
	defaultWindow = 24 * time.Hour
	// defaultPatience is the longest pause a goroutine sits out. Most reads
	// succeed within it; what takes longer should survive a restart.
	defaultPatience = 2 * time.Second
	// defaultSlack is added to the time that a send and a read may take: for
	// commits, scheduling and clocks that run at different speeds.
	defaultSlack = 15 * time.Second
	// ledgerTimeout bounds one call of the ledger after its caller is gone.
	ledgerTimeout = 30 * time.Second
	// maxEvidence bounds what one read leaves in the ledger. Records of SaaS
	// APIs have a few KiB; a page of them fits.
	maxEvidence = 256 << 10
	// maxName bounds what a destination calls a record: ids, URLs, versions. The
	// longest URLs that proxies let through have 8 KiB.
	maxName = 8 << 10
	// reviewFirst and reviewMost bound the pause between looks at a write that
	// a person has: a later read may settle it. After reviewEnd only the
	// person does.
	reviewFirst = time.Minute
	reviewMost  = time.Hour
	reviewEnd   = 72 * time.Hour
	// recheckFloor is the shortest time after which an owed recheck is made
	// where the destination declares no horizon.
	recheckFloor = 10 * time.Minute
	// childFirst and childMost bound the pause between looks at a compensating
	// write that is not settled yet.
	childFirst = time.Second
	childMost  = time.Minute
	// workIdle is the pause of a worker that found nothing to do.
	workIdle = 250 * time.Millisecond
	// workFailed is its pause after the ledger failed.
	workFailed = 5 * time.Second
	// defaultWorkers is how many writes one worker carries at once: they wait
	// for the network, not for the processor.
	defaultWorkers = 16
	// maxReason bounds a sentence kept in the ledger: what destinations say
	// can be a page of HTML.
	maxReason = 500
)

// newFollowPace is the pace at which a write that another process works on is
// looked up.
func newFollowPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMultiplier(1.6),
		backoff.WithMaxInterval(500*time.Millisecond), backoff.WithMaxElapsedTime(0))
}
