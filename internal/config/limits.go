package config

import "time"

const (
	// maxFile bounds the configuration in bytes: a thousand destinations fit.
	maxFile = 1 << 20
	// maxSecret bounds a secret in bytes: passwords and tokens are shorter, and
	// a file that is longer is another file.
	maxSecret = 64 << 10
	// maxConnections bounds the connections to a ledger in a database: it is
	// PostgreSQL's own default for all clients together.
	maxConnections = 100
	// defaultConnections is what one process needs: commits of many callers share
	// one, and reads are short. connectSeconds bounds the wait for one: PostgreSQL
	// answers at once, or not at all.
	defaultConnections = 10
	connectSeconds     = 10
	// minKeep is the shortest time for which a settled write keeps its intent,
	// evidence and events: people come back after lunch to see what happened.
	minKeep = time.Hour
	// defaultRemember is how long the keys of a settled write stay known where
	// the configuration only says for how long it keeps everything: a year, and
	// the month in which the yearly run is made again.
	defaultRemember = 400 * day
	// defaultPruneEvery is how often a worker prunes: what one hour settles is
	// gone in seconds.
	defaultPruneEvery = time.Hour
	// gateLease is the gate's own longest lease, maxGateLease the longest that can
	// be set: while one runs whose holder has died, nobody gets the step.
	gateLease    = time.Hour
	maxGateLease = 24 * time.Hour
	// defaultListen is where the published clients of the step gate look for it
	// by themselves.
	defaultListen = "127.0.0.1:8080"
	// defaultMaxWait is how long a request may wait for an outcome: proxies on the
	// way give up after a minute by themselves.
	defaultMaxWait = time.Minute
	// defaultGrace is what requests, sends and reads have to end: longer than one
	// send and one read may take by default.
	defaultGrace = 50 * time.Second
	// maxLimited bounds both: who waits longer must ask again.
	maxLimited = 10 * time.Minute
	// defaultParallel is how many writes are worked on at once, maxParallel the
	// most: more than connections that a destination takes.
	defaultParallel, maxParallel = 16, 1000
	// maxFlat is how deep settings are told apart: deeper than a file may nest.
	maxFlat = 64
	// redactionKeyBytes is the length of a key that seals: that of AES-256.
	redactionKeyBytes = 32
	// maxPatterns bounds the patterns of what is sensitive, and maxPattern one of
	// them in bytes: each is looked for in every text that is kept or shown.
	maxPatterns, maxPattern = 64, 1024
	// minScrubbed is the shortest secret, in bytes, that is taken out of logs: a
	// shorter one is found within words, and taking it out would tell it.
	minScrubbed = 6
	// maxKnown bounds the secrets that are: more than a configuration names.
	maxKnown = 10_000
	// maxAge is the longest age that can be asked for.
	maxAge = 100 * 365 * day

	day = 24 * time.Hour
)
