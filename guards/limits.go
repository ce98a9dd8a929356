package guards

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// readEvery is how old the copy of the notes may be when a send is asked
	// for; readLast is how old when the notes cannot be read. Together with the
	// quarter of a second for which the engine relies on an answer, a stop holds
	// everywhere within a second.
	readEvery = 500 * time.Millisecond
	readLast  = 750 * time.Millisecond
	// readFor bounds one read of the notes, and setFor one write: a ledger that
	// takes longer cannot keep a stop within a second.
	readFor = time.Second
	setFor  = 2 * time.Second
	// enterFor is how long Enter may wait for its turn. Less than what putting
	// the write back and taking it out again costs is not worth it, more keeps a
	// worker from others.
	enterFor = time.Second
	// setTries bounds how often one change of a note is tried when others change
	// it at the same time. With the pauses between them that is enough for some
	// tens of workers; who loses that often asks again later.
	setTries = 8
	// clockKeeps is how long one reading of the ledger's clock is narrowed down
	// by others before it is dropped: by then clocks have drifted apart by a
	// millisecond or so.
	clockKeeps = time.Minute

	// permitLife and permitShare bound how long after its time a permit may be
	// used: a second, in which the pre-state of most writes can be read, and a
	// twentieth of the rate's period, so that this costs no more than a twentieth
	// of the rate. batchSpan is how much of the future a worker takes for itself.
	// burstShare is the part of the calls that may come at once.
	permitLife  = time.Second
	batchSpan   = 250 * time.Millisecond
	permitShare = 20
	burstShare  = 20
	// pauseFirst and pauseMost bound the pause after a destination said "not
	// now" without saying until when; each such answer after the last pause
	// doubles it. pauseLongest bounds what a destination may ask for: an absurd
	// value must not stop it for ever.
	pauseFirst   = time.Second
	pauseMost    = 5 * time.Minute
	pauseLongest = time.Hour
	// spreadMost bounds by how much later than the first of them the last of the
	// held writes is told to ask again.
	spreadMost = time.Minute

	// sendSlack is what may lie between the word of a guard and the begin of its
	// send beyond the time that a send takes: the commit of the announcement, and
	// a stall. A slot is only used while its lease lasts that long.
	sendSlack = 15 * time.Second
	// leaseMore is how much longer slots are leased than they must last, so that
	// a busy worker renews them so often and not with every send.
	leaseMore = 15 * time.Second
	// leaseLongest is longer than any lease or pause can be; what claims to last
	// longer was written under a wrong clock.
	leaseLongest = 2 * time.Hour
	// idleSlots is how long a worker keeps slots that it does not use.
	idleSlots = time.Second
	// busyLook is how often a worker that waits for a slot looks whether another
	// one has given one back.
	busyLook = 200 * time.Millisecond
	// busyFirst is the shortest time after which a write that found no slot asks
	// again.
	busyFirst = 250 * time.Millisecond

	// The breaker's defaults. Five sends that fail are no accident when they are
	// more than three quarters of all within a minute; half a minute is what a restart takes.
	defaultFailures = 5
	defaultWindow   = time.Minute
	defaultOpen     = 30 * time.Second
	// failShare times as many failures as successes open the breaker: one that
	// answers a third of its sends does more work than one that is asked once in
	// five minutes.
	failShare = 3
	// rowFactor times as many failures in a row open the breaker whatever
	// succeeded before in the window: a busy destination that breaks down would
	// otherwise be sent to for half a window.
	rowFactor = 4
	// breakerBuckets are the parts of the rolling window.
	breakerBuckets = 10
	// openMost bounds the time to the next probe, which doubles with each that
	// fails.
	openMost = 5 * time.Minute
	// probeLook is when to ask again while another worker probes, and how long a
	// permission to probe that was not used is kept for the next to ask.
	probeLook = time.Second

	// stoppedFirst and stoppedMost bound when a write that a stop holds asks
	// again, which costs a claim and a commit; in between it is stoppedShare of
	// the time for which the stop has held.
	stoppedFirst = time.Second
	stoppedMost  = 30 * time.Second
	stoppedShare = 10
	// damagedFor is how long a pause lasts that cannot be read.
	damagedFor = time.Minute

	// tendEvery is how often held slots and unpublished news are looked after.
	tendEvery = 250 * time.Millisecond
	// closeFor bounds what Close gives back and publishes.
	closeFor = 2 * time.Second

	// maxNamePart bounds the readable part of a note's name; what is longer is
	// hashed. Names of notes have at most 200 bytes.
	maxNamePart = 120
	// maxBy, maxOwner, maxReason and maxScope bound what a stop carries, in bytes, and
	// maxLog how many entries its history keeps: all stops are read by every
	// worker twice a second.
	maxBy     = 200
	maxOwner  = 200
	maxReason = 500
	maxScope  = 1 << 10
	maxLog    = 10
)

// newSetPace is the pace at which a change of a note that others change too is
// tried again.
func newSetPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.8),
		backoff.WithMaxInterval(100*time.Millisecond), backoff.WithMaxElapsedTime(0))
}

// newTendPace is the pace of the keeper while the ledger fails.
func newTendPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(tendEvery), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
}
