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
	// wakeTries bounds how often a saga is made due whose paper changes meanwhile.
	wakeTries = 20
	// maxEvidence bounds what one read leaves in the ledger. Records of SaaS
	// APIs have a few KiB; a page of them fits.
	maxEvidence = 256 << 10
	// lateCreates bounds how many writes of one record are looked through for a
	// create that may still arrive; one queue rarely has two that owe a recheck.
	lateCreates = 1000
	// lateCreateRetry is when that is tried again after the ledger failed.
	lateCreateRetry = 5 * time.Second
	// maxName bounds what a destination calls a record: ids, URLs, versions. The
	// longest URLs that proxies let through have 8 KiB.
	maxName = 8 << 10
	// reviewFirst and reviewMost bound the pause between looks at a write that
	// a person has: a later read may settle it. After reviewEnd only the
	// person does.
	reviewFirst = time.Minute
	reviewMost  = time.Hour
	reviewEnd   = 72 * time.Hour
	// undoingMost is the pause between looks at an undoing that is open for longer
	// than reviewEnd: its write ends with it, however late a person decides.
	undoingMost = 24 * time.Hour
	// recheckFloor is the shortest time after which an owed recheck is made
	// where the destination declares no horizon.
	recheckFloor = 10 * time.Minute
	// unworkableFirst and unworkableMost bound the pause before a write that
	// this process cannot work on is tried again: its destination may have been
	// registered meanwhile.
	unworkableFirst = time.Minute
	unworkableMost  = 10 * time.Minute
	// childFirst and childMost bound the pause between looks at a compensating
	// write that is not settled yet.
	childFirst = time.Second
	childMost  = time.Minute
	// surplusPause is how long after a write was found doubled it is looked at
	// again, before anything is removed.
	surplusPause = time.Second
	// supersededPages bounds how far back a recheck that is about to raise an
	// alarm looks for a later write of ours about the same record, in pages of
	// 200.
	supersededPages = 10
	// wakeGap is how long a caller that waits for its turn lets a waking settle
	// before it asks: many wait, and each waking is meant for one.
	wakeGap = 100 * time.Millisecond
	// deepTurn and deepLine say how often, and how far, who waits in line looks
	// for its head beyond the write before it: every few seconds, for where no
	// worker runs and who enqueued the others has left.
	deepTurn = 8
	deepLine = 100
	// behindAsk is when a caller may ask again about a write that waits in line.
	behindAsk = 5 * time.Second
	// defaultFlights bounds callers: each costs a goroutine and some KiB.
	defaultFlights = 10_000
	// defaultQueued bounds what waits for one destination: at ten writes a
	// second that is three hours' worth, and whoever waits longer should hear so.
	defaultQueued = 100_000
	// surveyFresh is how old the count of what waits may be.
	surveyFresh = time.Second
	// batchSteps is how many moments of looking there are in the time within
	// which a write is looked at.
	batchSteps = 4
	// lagFloor is the shortest pause between looks, whatever is known of a lag.
	lagFloor = 5 * time.Millisecond
	// houseEvery and pruneEvery are how often one of all workers looks at the
	// outbox, and prunes; houseEvery is also how often one of each machine looks
	// for writes of its processes that have ended. pruneStep is how much it prunes at a time and
	// prunePause the pause after each step: it must not be felt.
	houseEvery = 5 * time.Second
	pruneEvery = time.Minute
	pruneStep  = 500
	prunePause = time.Second
	// defaultOutbox bounds the outbox, outboxEmptied is the part of it in percent
	// below which it takes more again.
	defaultOutbox = 100_000
	outboxEmptied = 80
	// workGrace is what supervisors give a process that is to end.
	workGrace = 30 * time.Second
	// workedGap is the longest pause before a write is looked up again that was
	// due a moment ago: long enough to be no load, where its due time stays.
	workedGap = 10 * time.Millisecond
	// workIdle is the pause of a worker that found nothing to do.
	workIdle = 250 * time.Millisecond
	// workFailed is its pause after the ledger failed.
	workFailed = 5 * time.Second
	// defaultWorkers is how many writes one worker carries at once: they wait
	// for the network, not for the processor, and what is looked at together is
	// looked at in one call.
	defaultWorkers = 64
	// guardFresh is how old the word of a guard may be when the send is
	// announced: with a guard that looks every half a second a stop takes effect
	// within one.
	guardFresh = 250 * time.Millisecond
	// holdFloor is the shortest time for which a held write is put back, so that
	// a guard that gives none does not keep the ledger busy.
	holdFloor = 50 * time.Millisecond
	// holdShare and holdMost bound what is added to it for a write that has to
	// be read before each try.
	holdShare = 20
	holdMost  = 5 * time.Minute
	// fenceFresh is how long after its announcement a send is made without
	// asking the ledger again: less than any lease, more than a commit takes.
	fenceFresh = time.Second
	// fenceTimeout bounds that question. Who cannot ask does not send.
	fenceTimeout = 5 * time.Second
	// yieldTries is how often letting an operation go is tried again when its
	// write changed hands meanwhile: workers take one up every few seconds at most.
	yieldTries = 5
	// lookMost bounds how long a look at what others wrote waits for reads that
	// lag: a caller stands before the gate and can ask again.
	lookMost = 10 * time.Second
	// lookAgain is when a destination that could not be read may be asked again.
	lookAgain = 15 * time.Second
	// unrecordedTime bounds the look that tells whether a write is in a ledger
	// which did not take it: somebody waits for the answer.
	unrecordedTime = 2 * time.Second
	// maxKeyShown bounds a business key inside a sentence, in bytes: what is longer
	// is looked up where the intent is shown.
	maxKeyShown = 200
	// maxTraceparent bounds a traceparent: version 00 has 55 bytes, and later
	// versions may have a little more behind it.
	maxTraceparent = 256
	// maxAttribute bounds a name in a span: who reads spans groups by it.
	maxAttribute = 256
	// inheritAtOnce is how many open writes are looked at at once for those of an
	// ended process: as many as a listing has at the most.
	inheritAtOnce = 1000

	// maxContent bounds what is asked for, and what came of it, in a span: receivers
	// cut or refuse attributes of more than some tens of KiB.
	maxContent = 16 << 10
	// maxWord bounds a code or the id of a request that a destination names, and
	// maxAnswer, in bytes, what is kept of its answer.
	maxWord   = 200
	maxAnswer = 2 << 10

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
