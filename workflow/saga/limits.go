package saga

import "time"

const (
	// MaxSteps is how many steps a plan may have. Each turn reads the records of
	// all that were begun, and a person must be able to take in the whole
	// picture.
	MaxSteps = 32
	// MaxPlan is the largest plan in bytes of JSON: it is rewritten with each
	// move, and must leave room in its paper.
	MaxPlan = 512 << 10
	// maxMembers bounds the members of one intent of a plan, which has some twenty.
	maxMembers = 64
	// maxBody is the largest saga: its plan and what was done about it.
	maxBody = MaxPlan + 256<<10
	// MaxGrace is the longest grace period: what is to be sent later than in a
	// week is a matter for a calendar.
	MaxGrace = 7 * 24 * time.Hour

	// defaultAttempts is how many times a retryable step is tried before a person
	// is asked. Each of them has repeats of its own within the engine, so that
	// what fails five times does not pass by itself.
	defaultAttempts = 5
	// retryFirst and retryMost bound the pause before the next of them, counted
	// from the end of the last one.
	retryFirst = time.Second
	retryMost  = 5 * time.Minute
	// maxCalls bounds the attempts of one step over its whole life, whoever asks
	// for more: each leaves a write in the paper.
	maxCalls = 100
	// maxCall is the largest call number of an intent.
	maxCall = 1_000_000

	// defaultLease is for how long a saga is in one worker's hands before another
	// one may take it up; it is taken anew when half of it is over. It is only to
	// save work: two workers on one saga do no harm.
	defaultLease = 30 * time.Second
	// carryFor is how long a write is waited for before the saga is looked at
	// again: somebody may have cancelled it.
	carryFor = 10 * time.Second
	// restFirst and restMost bound the pause before a saga is looked at again
	// that waits for a write that takes long; it grows with how long that has
	// lasted. For a person it grows up to personMost: each look is a commit, and
	// thousands may wait for days. The engine ends it when a person has decided.
	restFirst  = time.Second
	restMost   = time.Minute
	personMost = 5 * time.Minute
	// runLook is how long a call of Run rests at the most where a person decides, maybe
	// in another process.
	runLook = 2 * time.Second
	// tellAfter is how long a step cannot be begun, as its destination is not known
	// to whoever tries, before a person is told: workers that are started one after
	// another do not all know it at once.
	tellAfter = time.Hour
	// maxStale is how often a move is decided again because somebody else changed
	// the saga meanwhile; stalePause is the longest pause before that, random so
	// that two do not meet again.
	maxStale   = 20
	stalePause = 20 * time.Millisecond
	// maxTurns bounds the moves of one call, against a mistake here: a saga of
	// the largest plan needs a few hundred.
	maxTurns = 10_000

	// defaultWindow is how long an idempotency key blocks other writes, as in the
	// engine.
	defaultWindow = 24 * time.Hour
	// defaultParallel is how many sagas one worker has in hand at once: they wait
	// for the network.
	defaultParallel = 16
	// workIdle and workFailed are a worker's pauses after it found nothing due,
	// and after the ledger failed.
	workIdle   = 250 * time.Millisecond
	workFailed = 5 * time.Second
	// endTime bounds the filing that puts a saga back when its worker ends.
	endTime = 5 * time.Second
	// maxReason bounds, in bytes, a sentence kept in the paper.
	maxReason = 500
	// maxBy bounds, in bytes, a name.
	maxBy = 255
)
