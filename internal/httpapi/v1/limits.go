package v1

import (
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/workflow/saga"
)

const (
	// maxBody is the largest body of a request in bytes where nothing else is
	// said: a word and a reason.
	maxBody = 64 << 10
	// maxIntentBody and maxPlanBody leave room for blanks around what may be as
	// large as an intent and a plan may.
	maxIntentBody = intent.MaxSize + 64<<10
	maxPlanBody   = saga.MaxPlan + 64<<10
	// maxDepth is how deep a body may nest that is no intent: they have one level.
	maxDepth = 32
	// maxMembers bounds the members of an intent or a plan: both have fewer.
	maxMembers = 64
	// maxReason bounds, in bytes, what a person says about a decision: a
	// paragraph, which is kept for ever and shown again and again. maxStopReason
	// is what a stop keeps.
	maxReason     = 2000
	maxStopReason = 500
	// maxName bounds names in paths and queries, in bytes: as the ledger has them.
	maxName = 255
	// maxShown bounds how much of a stranger's text an answer repeats, in
	// characters.
	maxShown = 64
	// maxDetail, maxPlace and maxProblems bound what an answer says of what is
	// wrong, in bytes and in number: a page, the longest path that is one, and as
	// many as somebody mends at once.
	maxDetail   = 4 << 10
	maxPlace    = 1 << 10
	maxProblems = 100

	// maxWait is how long a call may wait where nothing else is configured: what
	// proxies on the way give a silent connection.
	maxWait = 60 * time.Second
	// decisionWait is how long a decision waits for what follows from it where
	// the caller does not say: a person wants to see it, and most destinations
	// answer within it.
	decisionWait = 5 * time.Second
	// callTime is how long a call may take besides waiting: ledgers answer in
	// milliseconds, or not at all.
	callTime = 30 * time.Second

	// maxWaiting and maxWaitingTenant bound the calls that wait at once, of this
	// process and of one tenant: each holds a connection and a goroutine, and no
	// tenant may take all places.
	maxWaiting       = 4096
	maxWaitingTenant = 1024
	// maxStreams and maxStreamsTenant bound the event streams likewise. They last
	// for hours and look at the ledger each.
	maxStreams       = 512
	maxStreamsTenant = 64

	// heartbeat is how often a silent stream says that it is there: below the
	// half minute after which common proxies cut a silent connection.
	heartbeat = 15 * time.Second
	// askAgain is how often a stream asks whether its caller is still who it was:
	// a revoked token must not go on listening.
	askAgain = 5 * time.Second
	// streamTime bounds the life of a stream; whoever listens comes again with the
	// last id. Without it those that nobody listens to any more stay for ever.
	streamTime = time.Hour
	// slowReader is how long one piece of a stream may take to be taken: then its
	// reader is cut off, as nothing is kept for it.
	slowReader = 10 * time.Second
	// lookGap is the shortest time between two looks of one stream: a busy ledger
	// rings thousands of times a second.
	lookGap = 50 * time.Millisecond
	// streamPage is how many changes one look takes in.
	streamPage = 100

	// maxSagas is how many sagas a listing gives at most: there are no pages.
	maxSagas = 1000
	// historyStep and historyPast are those of a history where nothing is said:
	// a day by hours. maxSpans is the ledger's bound.
	historyStep = time.Hour
	historyPast = 24 * time.Hour
	maxSpans    = 1000

	// soon is what a caller is told to wait that came at a bad time, later one
	// that came when something is broken.
	soon  = 1
	later = 5
)

const (
	// maxFound is as many writes as the ledger finds at once.
	maxFound = 200
	// maxCursor bounds, in bytes, what is handed back to go on from, and a business
	// key in a query.
	maxCursor = 4 << 10
)
