package config

import "time"

const (
	// maxFile bounds the configuration in bytes: a thousand destinations fit.
	maxFile = 1 << 20
	// maxSecret bounds a secret in bytes: passwords and tokens are shorter, and a longer
	// file is the wrong file.
	maxSecret = 64 << 10
	// defaultRefresh is how long a command's output is used: leased secrets live for an
	// hour at least, and a refused login ends the use at once.
	defaultRefresh = 5 * time.Minute
	// defaultCommandTimeout is how long a command may take: a login at a vault and one
	// read. It is less than a send may take.
	defaultCommandTimeout = 10 * time.Second
	// againAfterFailure is when a command that failed runs again, while its last secret
	// is used: callers should not wait each time.
	againAfterFailure = 30 * time.Second
	// maxEarly is how often a command may run at once before it is due, because a login
	// was refused or it failed, and earlyEvery after how long once more: each run may be
	// a login at a vault, and a destination that refuses all logins causes many.
	maxEarly, earlyEvery = 5, 10 * time.Second
	// afterEnd is how long the pipes of a command may stay open after its end, held by a
	// process that it left running.
	afterEnd = time.Second
	// maxArguments bounds the words of a command, maxStderr the part of its standard
	// error that is shown, in bytes: the message with the reason of the failure.
	maxArguments, maxStderr = 64, 512
	// maxConnections bounds the connections to a ledger in a database: it is
	// PostgreSQL's own default for all clients together.
	maxConnections = 100
	// defaultConnections is what one process needs: commits of many callers share one,
	// and reads are short. connectSeconds bounds the wait for one: PostgreSQL responds at
	// once, or not at all.
	defaultConnections = 10
	connectSeconds     = 10
	// minKeep is the shortest time for which a settled write keeps its intent, evidence
	// and events: users come back after lunch to see what happened.
	minKeep = time.Hour
	// defaultRemember is how long the keys of a settled write are kept if the
	// configuration only sets how long everything is kept: a year, and a month to repeat
	// a yearly run.
	defaultRemember = 400 * day
	// defaultKeep is how long everything is kept by default: a year and a month, so that
	// yearly work can be compared with last year's.
	defaultKeep = 400 * day
	// defaultPruneEvery is how often a worker prunes: the writes settled in one hour are
	// pruned in seconds.
	defaultPruneEvery = time.Hour
	// gateLease is the gate's own longest lease, maxGateLease the longest that can be
	// set: until a dead holder's lease ends, no one else gets the step.
	gateLease    = time.Hour
	maxGateLease = 24 * time.Hour
	// defaultListen is the default address of the published clients of the step gate.
	defaultListen = "127.0.0.1:8080"
	// defaultMaxWait is how long a request may wait for an outcome: proxies give up after
	// a minute.
	defaultMaxWait = time.Minute
	// defaultGrace is the time in which requests, sends and reads may end: longer than
	// one send and one read may take by default.
	defaultGrace = 50 * time.Second
	// maxLimited bounds both: a caller that waits longer must ask again.
	maxLimited = 10 * time.Minute
	// defaultParallel is how many writes are worked on at once, maxParallel the most:
	// more connections than a destination accepts.
	defaultParallel, maxParallel = 16, 1000
	// LeastBodies is the minimum of the bytes of all bodies of open requests together:
	// the share of one token, a quarter, holds the largest body, whose length need not be
	// announced. maxMost bounds numbers of requests and streams, and maxSize sizes: more
	// is an error.
	LeastBodies = 8 << 20
	maxMost     = 1_000_000
	maxSize     = 1 << 40
	// maxFlat is how deep settings are compared: deeper than a file may nest.
	maxFlat = 64
	// redactionKeyBytes is the length of a redaction key: that of AES-256.
	redactionKeyBytes = 32
	// maxPatterns bounds the redaction patterns, and maxPattern one of them in bytes:
	// each is searched in every text that is stored or shown.
	maxPatterns, maxPattern = 64, 1024
	// minScrubbed is the shortest secret, in bytes, that is redacted in logs: a shorter
	// one occurs within words, and redacting it would reveal it.
	minScrubbed = 6
	// maxKnown bounds the known secrets of one source, the newest: no connection or
	// response uses older ones any more.
	maxKnown = 20
	// maxAge is the longest age that can be asked for.
	maxAge = 100 * 365 * day

	day = 24 * time.Hour
)
