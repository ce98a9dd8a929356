package httpapi

import "time"

const (
	// maxBody is the largest body of a request in bytes. What a step was given
	// and what it put out are kept side by side in one paper of 1 MiB, with what
	// was decided about it.
	maxBody = 400 << 10
	// maxDepth is how deep a body may nest: what is walked recursively later must
	// not be as deep as a stranger likes. Real ones stay below ten.
	maxDepth = 100
	// maxTokens bounds the names, values and ends of objects and arrays in a body: in
	// memory each is many times its text. An intent has half as many at most.
	maxTokens = 40_000
	// maxName bounds names in headers and step ids in paths, in bytes: as the
	// ledger has names.
	maxName = 255
	// minComment is how much a person says about a decision, in characters: the
	// contract's.
	minComment = 10
	// defaultPage is how many entries a listing has where none are asked for: the
	// contract's. maxPage bounds one answer.
	defaultPage = 20
	maxPage     = 100
	// maxOffset bounds what a listing passes over: beyond it nobody turns pages.
	maxOffset = 1_000_000
	// defaultTime is how long one request may take: a gate may look at a
	// destination, once.
	defaultTime = 30 * time.Second
	// readyTime bounds what /readyz waits for the ledger.
	readyTime = 2 * time.Second
	// retryAfter is what a caller is told who came at a bad time.
	retryAfter = time.Second
)

// Bounds of a connection, for [Server]. A caller that is slower than this is
// broken or means harm; the answer may take as long as a request, and be fetched.
const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	answerTime = defaultTime + 30*time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10 // long tokens fit
)
