package audit

import "time"

const (
	// maxEntries is how many entries a page has: some 150 KiB, of the 1 MiB that a
	// paper may have.
	maxEntries = 1000

	// maxFiled is how many pages are filed in one step: what a filing may hold is
	// 4 MiB and 100 papers.
	maxFiled = 10

	// runsAtOnce is how many runs are read at once: each may hold megabytes of
	// evidence. After a batch with less than smallBatch bytes of it, and entries for
	// less than a filing, it is manyRuns: fewer batches are fewer filings.
	runsAtOnce = 200
	manyRuns   = 1000
	smallBatch = 4 << 20

	// maxBuffer bounds a buffer that is kept for the next event that is digested.
	maxBuffer = 64 << 10

	// pageBytes and entryBytes are what a page and an entry of it need as a rule:
	// where it is more, more is allocated.
	pageBytes  = 512
	entryBytes = 200

	// maxTries is how often a batch is begun anew because another sealer was
	// quicker with the chain of one tenant; then it is left to them.
	maxTries = 8

	// maxStale is how often in a row that may happen before it is told: two sealers
	// are never that even, and the end of the chain may have been altered.
	maxStale = 10

	// maxChains is how many ends of chains are remembered between two batches.
	maxChains = 10_000

	// defaultEvery is how often what is new is sealed: events can be altered unseen
	// for as long.
	defaultEvery = time.Second

	// defaultHeads is how often a head is signed where the chain moved.
	defaultHeads = time.Minute

	// turnLasts is how long a sealer that says nothing is believed to be at work,
	// and turnTold how often one that is says so. Two at once do no harm.
	turnLasts = 30 * time.Second
	turnTold  = 10 * time.Second

	// keepWithin bounds one call of a keeper. The pause after one that failed grows
	// from the first to the second.
	keepWithin   = 30 * time.Second
	minKeepPause = time.Second
	maxKeepPause = 5 * time.Minute

	// maxPending is how many tenants' heads wait for one keeper: each is the newest
	// of its tenant, so that more are only had where there are more tenants.
	maxPending = 10_000

	// maxAnswer is how much of the answer of a place for heads is read.
	maxAnswer = 4 << 10

	// maxIndexed is how many entries are held in memory at a time while a ledger is
	// checked: some 100 MB. Where a chain has more it is walked through more often.
	maxIndexed = 500_000

	// maxDoubtful is how many writes that differ are looked at a second time at
	// once: they are held in memory then. maxWaiting is how many writes and papers,
	// of which little is held, are looked for at once among what is not sealed.
	maxDoubtful = 500
	maxWaiting  = 100_000

	// maxProblems is how many problems a report names. The first is what matters.
	maxProblems = 100

	// maxHeld is how many problems are held until the first of them are known.
	maxHeld = 10_000

	// maxCandidates is how many heads of a tenant are looked through in a file for one
	// that a trusted key signed: lines without a trusted signature do not hide the rest.
	maxCandidates = 8

	// maxHeadsRead is how much of a file of heads is read at each start: weeks of them, in
	// a fraction of a second. A year of one tenant is 250 MB.
	maxHeadsRead = 16 << 20

	// headsLate is how long entries may go without a head from outside until a check
	// with such heads fails, where the ledger's own newest head says nothing.
	headsLate = 24 * time.Hour

	// livesAtOnce is how many writes or papers are read at once for a check.
	livesAtOnce = 100

	// maxHeadLine is the longest line of a file of heads that is read.
	maxHeadLine = 64 << 10
)
