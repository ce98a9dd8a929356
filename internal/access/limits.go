package access

import "time"

// Bounds of tokens.
const (
	// DefaultTTL is how long a token is good where nobody says: a quarter, so
	// that one that was forgotten somewhere dies within it.
	DefaultTTL = 90 * day
	// MaxTTL is the longest a token may be good: a year and the month in which
	// somebody renews it. None lives for ever.
	MaxTTL = 400 * day
	// minTTL is the shortest: below it a token is gone before it is used.
	minTTL = time.Minute
	// keepEnded is how long a token that ended is still listed, so that whoever
	// looks for what was done in its name finds who made it.
	keepEnded = MaxTTL
	// maxTokens bounds the tokens of one tenant: one for each of a thousand
	// callers; more are made by something that runs wild.
	maxTokens = 1000
	// maxText bounds names and tenants in bytes: as the ledger has names.
	maxText = 255
	// setTries bounds how often a note that others change is tried to be changed.
	setTries = 5
)

// How long what the ledger said is believed.
const (
	// freshFor is for how long it is believed unasked. With readFor it stays below
	// the five seconds within which what was revoked is refused everywhere.
	freshFor = 3 * time.Second
	// staleFor is for how long what was good stays so while the ledger cannot be
	// asked: a failover passes without anybody noticing, and whoever was revoked
	// meanwhile is out soon.
	staleFor = time.Minute
	// readFor bounds one question to the ledger.
	readFor = 2 * time.Second
	// restFor is how long the ledger is left alone after it failed to answer, so
	// that not every request waits for it.
	restFor = time.Second
	// maxReads is how many questions are asked at once: strangers who make up
	// tokens must not keep the ledger from its work.
	maxReads = 8
	// maxRecalled bounds what is remembered, in notes of some 500 bytes: 5 MB.
	maxRecalled = 10_000
)

// Bounds of failures.
const (
	// maxFailures is how often one address may come with bad credentials at
	// once; then it may once every failEvery: a program with an old token is
	// quiet soon, and a person who mistypes is not locked out.
	maxFailures = 20
	failEvery   = 3 * time.Second
	// maxAddresses bounds how many addresses are remembered, twice: those of
	// this and of the last span. Who comes when it is full is counted together
	// with all others who do.
	maxAddresses = 5000
)

// Bounds of requests.
const (
	// defaultBody is the largest body of a request in bytes where nobody says: an
	// intent and what stands around it.
	defaultBody = 1 << 20
	// maxAddress bounds the address of a request in bytes: a search, and where a
	// login is to go on.
	maxAddress = 8 << 10
	// maxHeaders bounds the lines of its header: browsers send twenty.
	maxHeaders = 100
	// maxCookies bounds its cookies in bytes; ours have less than two thousand,
	// those of others on the same host count too.
	maxCookies = 16 << 10
	// hstsFor is how long browsers ask for TLS alone: a year, as is common.
	hstsFor = 365 * day
)

const day = 24 * time.Hour
