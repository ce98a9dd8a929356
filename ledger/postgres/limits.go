package postgres

import "time"

const (
	// maxBatch bounds the changes of one transaction. More do not make the
	// commit cheaper, but make the first of them wait for the last.
	maxBatch = 256

	// maxSingle is how many events a change may have that gets a statement of
	// its own text: the engine appends five at the most.
	maxSingle = 6

	// defaultConns is how many connections a process has at the most: those
	// that store, and about as many that look and claim.
	defaultConns = 16

	// maxFlushes is how many transactions with changes a process has under way
	// at once. With few callers each has one of its own and waits for nobody;
	// with a crowd, what arrives meanwhile shares the next of fewer ones.
	maxFlushes   = 8
	crowdFlushes = 2
	crowd        = 12

	// patience is how long a cancelled caller still waits for a change that is
	// under way, so that it hears whether it was applied. Longer than any
	// healthy commit.
	patience = 5 * time.Second

	// maxAnswer is how long the database may take to answer a statement that
	// nobody else bounds. Beyond it the connection is given up.
	maxAnswer = 30 * time.Second

	// maxLag is how far the time that is written with a change may stand before
	// the database's clock: the age of the last look at that clock and the way
	// to the database. More would make horizons and leases begin too early;
	// less would make busy machines look again and again.
	maxLag = 200 * time.Millisecond

	// maxSample is how long a look at the database's clock is good for. Two
	// clocks do not drift apart measurably in that time.
	maxSample = 100 * time.Millisecond

	// maxClockStep is how far the database's clock may stand before the newest
	// entry and still be used: the steps that time daemons make, and the
	// difference between a primary and the standby that takes over. Beyond it,
	// no lease, settle time or horizon can be trusted.
	maxClockStep = time.Minute

	// tickEvery is how far the newest time on record may lag behind the clock.
	// It is one row for all workers, which must not become a queue of its own.
	tickEvery = 10 * time.Second

	// maxTries bounds how often a change is tried again that the database
	// provably did not apply: deadlocks, serialization failures, places in
	// line that others took first.
	maxTries = 100

	// maxReconnects bounds how often a call that the database cannot have got
	// is tried on another connection: a restart breaks them all at once, and the
	// pool finds out one by one.
	maxReconnects = 3

	// optimists is how often an append tries without a lock on the row before
	// it takes one.
	optimists = 3

	// maxRemembered writes of at most maxRememberedSize bytes of raw messages
	// are kept decoded: some megabytes, and more than are in flight in one
	// process.
	maxRemembered     = 4096
	maxRememberedSize = 4 << 10

	// maxParties is how many parties (tenant, destination and state) one claim
	// visits; the next one goes on from there.
	maxParties = 256

	// minShare is how many due writes of each party a claim looks at, at least.
	minShare = 64

	// maxWalks is how many such visits a claim makes before it says that nothing
	// is due, and maxRounds how often it asks for more when other workers took
	// what it meant to.
	maxWalks  = 16
	maxRounds = 4

	// maxServed is how many parties are remembered as served. Beyond it all
	// begin anew.
	maxServed = 10_000

	// setAside is how long a write stays out of the way of this program that
	// only a newer one can read.
	setAside = 5 * time.Second

	// maxAdmit is how many entries of the outbox one transaction takes in, and
	// how many lines a look at it visits; maxAdmitRounds is how many looks a
	// claim makes. The next one goes on from there.
	maxAdmit       = 64
	maxAdmitRounds = 4

	// maxLockWait is how long a claim waits for a row that an entry of the outbox
	// depends on. Transactions here are over in milliseconds; whoever keeps a row
	// longer is a person, or stands still. The next claim looks again. Whoever
	// switches sealing on or off waits no longer either, as all others wait then.
	maxLockWait = 250 * time.Millisecond

	// lockPause is how long whoever switches sealing on or off leaves the others alone
	// when he did not get a lock: a VACUUM takes minutes.
	lockPause = time.Second

	// defaultWindow is that of the engine: longer than orchestrators repeat a
	// step, and about as long as destinations remember a key.
	defaultWindow = 24 * time.Hour

	// maxPruned is how many writes one transaction looks at to forget them, and
	// keeps locked meanwhile.
	maxPruned = 128

	// maxUnsealed is how many rows of what is not sealed a pruning looks through to
	// pass over the writes they are of: some milliseconds. Where there are more,
	// sealing stands still or has just begun, and pruning waits for it.
	maxUnsealed = 10_000

	// maxFound is how many writes or papers one transaction finds when what is not
	// sealed is to be remembered, in which nobody else can change the ledger: less
	// than a tenth of a second where each must be read from a slow disk. maxCleared
	// is how many small rows side by side one transaction forgets when it is not to
	// be remembered any more.
	maxFound   = 500
	maxCleared = 10_000

	// maxListed bounds the lists of a survey, as package ledger promises.
	maxListed = 100

	// maxLooked is how many writes that wait for a person a survey reads, to
	// find those that are damaged: more than people have before them, and some
	// milliseconds.
	maxLooked = 500

	// maxNumbered is how many changes get their place in the order of all in one
	// transaction, or are forgotten in one: small rows side by side, some
	// milliseconds. maxNumberings is how many such transactions one call makes:
	// what lay for a week while nobody followed.
	maxNumbered   = 1000
	maxNumberings = 1000

	// maxLook is how many writes one statement of a search looks at.
	maxLook = 1000

	// wakeEvery is the least time between two notifications that a process
	// sends, and between two that it hears: all workers look when they hear one.
	wakeEvery = 100 * time.Millisecond

	// The pause before the connection that listens is made again grows from the
	// first to the second while it fails.
	minListenPause = time.Second
	maxListenPause = time.Minute
)
