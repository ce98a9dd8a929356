package workflow

import "time"

// Bounds of what comes from outside. All of it is kept in papers of the ledger,
// which have at most 1 MiB; together these stay below that.
const (
	// maxKey and maxTrace are the contract's, in characters.
	maxKey   = 255
	maxTrace = 255
	// maxName, in characters, is for names that people read: of a workflow, a
	// step, a tool, a model.
	maxName = 255
	// maxStepID, in bytes: a workflow's id, a slash and a step's make the id of
	// a paper, and a step is a word in an address.
	maxStepID = 255
	// maxInput, maxTool, maxIntent, maxOutput and maxMetadata are in bytes of
	// JSON. Larger things belong into a store of their own, and a reference to
	// them here.
	maxInput    = 128 << 10
	maxTool     = 64 << 10
	maxIntent   = 64 << 10
	maxOutput   = 256 << 10
	maxMetadata = 64 << 10
	// maxReason is what a person or a client may say about a decision, in
	// characters.
	maxReason = 1000
	// maxSteps is how many steps one workflow may have: all of them are looked
	// through when it ends. Loops of agents that come near it have lost their way.
	maxSteps = 1000
	// maxUndone is how many steps that are not completed are looked through for those
	// of one business operation: a person asks, now and then, about what happened
	// lately, and waits a second or two for it.
	maxUndone = 1000
	// maxDigestTold is how many characters of a digest are told in a sentence: so
	// many tell two apart.
	maxDigestTold = 16
	// maxList is the largest page of a listing; defaultList is the contract's.
	maxList     = 100
	defaultList = 20
)

// Bounds of what is kept about a step beyond what its clients said.
const (
	// maxSeen is how much of an observation is kept, in bytes: records of real
	// systems are kilobytes. What is larger cannot be compared with later.
	maxSeen = 64 << 10
	// maxMismatches bounds what is said about differences, in bytes.
	maxMismatches = 16 << 10
	// maxGated is how many gates of a step can be tried against new rules.
	maxGated = 20
	// maxEarlier is how much is kept, in bytes, of what a step asked for before
	// it asked for something else: enough for the rules to be tried on it.
	maxEarlier = 64 << 10
	// maxPolicies and maxPolicyText, in bytes, bound what is kept of the rules
	// that were looked at.
	maxPolicies   = 64
	maxPolicyText = 500
	// maxHolds is how often one step may be held: each time it asks for
	// something else, a person is asked again, and people tire.
	maxHolds = 20
	// maxBody is the ledger's bound of a paper, in bytes: where all of the above
	// comes together in one step, it is told before it is tried.
	maxBody = 1 << 20
	// maxAskers is how many names that gated a step are kept, to keep them from
	// approving it: a step is asked for by one client, or a few. Where there were
	// more, nobody with a name can approve it.
	maxAskers = 100
)

const (
	// defaultLease is how long a step takes that does not say; maxLease how long
	// it may say. While it runs nobody else gets the step, also when its holder
	// has died.
	defaultLease = time.Minute
	maxLease     = time.Hour
	// defaultWindow is how far back a settled business operation blocks another
	// one of its name: longer than clients and queues repeat themselves.
	defaultWindow = 24 * time.Hour
	// defaultWithin is how long a step waits for a person.
	defaultWithin = 24 * time.Hour
)

const (
	// lookFor bounds one look at a destination: the caller of the gate waits. An
	// engine waits for lag for ten seconds.
	lookFor = 12 * time.Second
	// lookAgain is how long a look serves other gates of the step, too, so that
	// many that ask at once cost the destination one read and not one each.
	lookAgain = 2 * time.Second
	// askAgain is when to ask again where a look could not say when.
	askAgain = 5 * time.Second
	// endFor bounds all looks at the end of a workflow together, endLooks how
	// many are made at once and endSteps in all: whoever ends it waits.
	endFor   = 15 * time.Second
	endLooks = 4
	endSteps = 32
	// maxEnding is how many bytes of papers are changed with the end of a
	// workflow, and maxEndingSteps how many of them. A filing takes 4 MiB and 100.
	maxEnding      = 2 << 20
	maxEndingSteps = 40
)

const (
	// maxTries bounds how often something is decided anew because somebody else
	// was quicker. Within a process gates of one step take turns, so this is
	// about other processes.
	maxTries = 100
	// pauseMost is the longest pause between two tries: some commits.
	pauseMost = 40 * time.Millisecond
	// stripes is how many steps of a process can be gated at once.
	stripes = 256
	// workEvery is how often holds that are due are looked for, workBatch how
	// many are taken at once, and workLater when one that failed is tried again.
	workEvery = time.Second
	workBatch = 50
	workLater = time.Minute
)
