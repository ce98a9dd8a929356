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
	// maxClip and maxReason bound what others wrote in errors, in bytes: a name,
	// and a sentence with two addresses in it.
	maxClip   = 60
	maxReason = 400
	// setTries bounds how often a note that others change is tried to be changed.
	setTries = 5
)

// How long what the ledger said is believed.
const (
	// freshFor is for how long it is believed unasked, watchEvery how often who
	// stays is looked at again. With readFor both make the five seconds within
	// which what was revoked is refused everywhere, and cut off.
	freshFor   = 2 * time.Second
	watchEvery = time.Second
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
	// maxDoubted is how many tokens are looked up at once that come from addresses
	// which are held back: fewer than maxReads, so that all others go before.
	maxDoubted = 2
	// maxAddresses bounds how many addresses are remembered, twice: those of
	// this and of the last span. Who comes when it is full is counted together
	// with all others who do.
	maxAddresses = 5000
)

// Bounds of logins and sessions.
const (
	// defaultSession is how long a session lasts where nobody says, whatever is
	// done in it: a day at work. MaxSession is the longest: who was taken out of a
	// group is out a day later.
	defaultSession = 8 * time.Hour
	MaxSession     = 24 * time.Hour
	// attemptFor is how long somebody has to log in at the provider: to find the
	// telephone with the second factor.
	attemptFor = 10 * time.Minute
	// MinKey is the shortest key of sessions in bytes, 256 bits.
	MinKey = 32
	// maxNext bounds where a login goes on, in bytes: with all else in it a cookie
	// stays below the 4096 that browsers take.
	maxNext = 1 << 10
	// maxCookie bounds a cookie of ours in bytes: browsers take no larger ones.
	maxCookie = 4096
	// maxForm bounds the form of /login in bytes: a token and where to go on.
	maxForm = 8 << 10
	// maxSwept bounds how many old notes of sessions one logout forgets.
	maxSwept = 100
	// maxRules bounds the rules of claims, and maxPath their depth.
	maxRules = 1000
	maxPath  = 10
)

// Bounds of what the provider may do.
const (
	// discoverFor bounds one look for the provider, providerFor one request to
	// it: a person waits.
	discoverFor = 5 * time.Second
	providerFor = 10 * time.Second
	// firstPause and lastPause are how long it is left alone after it was not
	// found: twice as long each time.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// maxAnswer bounds one of its answers in bytes; keys and tokens are some
	// kilobytes.
	maxAnswer = 1 << 20
)

// Bounds of requests.
const (
	// defaultBody is how many bytes of a body can be read where nothing else is
	// said: more than any route takes, since each refuses for itself.
	defaultBody = 2 << 20
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
