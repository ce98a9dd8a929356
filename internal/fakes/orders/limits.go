package orders

import "time"

const (
	// maxBody bounds the body of a request: an order is small.
	maxBody = 1 << 20

	// maxFields bounds the fields of one order, which are copied at every
	// change.
	maxFields = 256

	// maxOrderID limits an order's id: it is part of URLs.
	maxOrderID = 200

	// MaxEffects is how many effects a world holds. They are the oracle, so
	// none is ever forgotten; a world that is full refuses writes instead.
	MaxEffects = 2_000_000

	// maxCalls is how many of the last calls are recorded one by one. The counts continue.
	maxCalls = 100_000

	// PageSize is how many records one page of an answer has: small, so that tests need paging.
	PageSize = 20

	// maxPages is how many pages the connector reads for one business key before it fails the
	// read. Thousands of records under one key do not answer whether it is there.
	maxPages = 100

	// BulkLimit is how many questions one lookup takes.
	BulkLimit = 50

	// maxLogLine limits one line of the log when it is read: two records of the largest size with
	// room for escapes.
	maxLogLine = 16 << 20

	// DefaultDelay is how late something happens that a fault makes late and
	// that names no delay. It is below the horizon and the recheck that the
	// classes declare.
	DefaultDelay = 2 * time.Second

	// DefaultWindow is how long a destination of class Native knows a key:
	// the day that payment services document.
	DefaultWindow = 24 * time.Hour

	// DefaultLag is how far the reads of class Lagging lag.
	DefaultLag = 2 * time.Second

	// DefaultRollback is the rollback that the classes declare. A process that
	// stood still for minutes is inside it.
	DefaultRollback = 8 * time.Minute
	// DefaultHorizon is the horizon that the classes declare.
	DefaultHorizon = 30 * time.Second

	// shutdownGrace is how long Run lets requests end that are being served.
	shutdownGrace = 2 * time.Second

	// readHeaderTimeout ends silent connections to Run.
	readHeaderTimeout = 10 * time.Second
)
