package sqlite

import "time"

const (
	// maxBatch bounds the operations of one transaction. More do not make the
	// sync cheaper, but make the first of them wait for the last.
	maxBatch = 256

	// maxBusy is how long a transaction waits for another process that holds
	// the write lock. A batch takes milliseconds; whoever holds it for seconds
	// is stopped or stuck, and callers must hear so.
	maxBusy = 10 * time.Second

	// The pause between two tries for the write lock grows from the shortest
	// to the longest, with jitter, so that several processes take turns.
	minBusyPause = 200 * time.Microsecond
	maxBusyPause = 20 * time.Millisecond

	// patience is how long a cancelled caller still waits for an operation
	// that the writer has begun, so that it hears whether it was applied.
	// Longer than any healthy commit.
	patience = 5 * time.Second

	// maxLog is how many pages (of 4 KiB) the log may hold before they are
	// moved into the file. More would make a start after a crash slower and
	// reads look through more of it; fewer would move pages again and again
	// that the next writes change anyway.
	maxLog = 2000

	// hardLog is how many pages the log may hold before callers are made to
	// wait until they are moved: when the disk cannot keep up, the log must not
	// grow until it is full.
	hardLog = 4 * maxLog

	// lookEvery is after how many operations the size of the log is looked at:
	// often enough against maxLog, as one operation changes about eight pages.
	lookEvery = 64

	// readers is how many connections serve Get, Events and List. Reads are
	// short and run on the processor; more than a few only wait for each other.
	readers = 4

	// maxRemembered writes of at most maxRememberedSize bytes of raw messages are kept
	// decoded between two transactions: some megabytes, and more than are in
	// flight in one process.
	maxRemembered     = 1024
	maxRememberedSize = 4 << 10

	// A claim looks at enoughParties (tenant, destination and state with a due
	// time), or on until it finds work, but at maxParties at the most: some
	// milliseconds, and at worst some tens, in which nobody else can write. The
	// next claim goes on where it ended, so that each gets its turn.
	enoughParties = 256
	maxParties    = 4096

	// maxClockStep is how far the clock may stand before the newest entry and
	// still be used, clamped to it: the steps that time daemons make and the
	// difference between hosts that share a file. Beyond it, no lease, settle
	// time or horizon can be trusted.
	maxClockStep = time.Minute

	// fileMode is that of a new ledger file, for its owner only: intents and
	// evidence are nobody else's business.
	fileMode = 0o600

	// maxAdmit is how many entries of the outbox one operation takes in. Other
	// callers wait for it, a tenth of a second where the processor is slow.
	maxAdmit = 256

	// defaultWindow is that of the engine: longer than orchestrators repeat a
	// step, and about as long as destinations remember a key.
	defaultWindow = 24 * time.Hour

	// maxPruned is how many writes one operation looks at to forget them:
	// callers wait as long as for a batch.
	maxPruned = 64

	// maxChanges is how many changes one operation forgets: small rows side by
	// side, some milliseconds.
	maxChanges = 1000

	// maxTogether is for how many events of a run room is made at once: few
	// commits hold more than some.
	maxTogether = 16

	// maxUnsealed is how many rows of what is not sealed a pruning looks through to
	// pass over the writes they are of: some milliseconds. Where there are more,
	// sealing stands still or has just begun, and pruning waits for it.
	maxUnsealed = 10_000

	// maxFound is how many writes or papers one operation finds when what is not
	// sealed is to be remembered: some milliseconds, in which nobody else can write.
	maxFound = 1000

	// maxListed bounds the lists of a survey, as package ledger promises.
	maxListed = 100

	// maxLooked is how many writes that wait for a person a survey reads, to
	// find those that are damaged: more than people have before them, and some
	// milliseconds.
	maxLooked = 500
)
