package simulated

import "time"

const (
	// maxBody bounds the body of a request: an order is small.
	maxBody = 1 << 20

	// maxFields bounds the fields of one order, which are copied at every
	// change.
	maxFields = 256

	// maxOrderID bounds an order's id: it stands in URLs.
	maxOrderID = 200

	// MaxEffects is how many effects a world holds. They are the oracle, so
	// none is ever forgotten; a world that is full refuses writes instead.
	MaxEffects = 2_000_000

	// maxCalls is how many of the last calls are remembered one by one. The
	// counts go on.
	maxCalls = 100_000

	// maxFaults bounds the vices that are on at once.
	maxFaults = 256

	// PageSize is how many records one page of an answer holds: small, so that
	// paging is met in tests.
	PageSize = 20

	// maxPages is how many pages the connector reads for one business key
	// before it gives the read up. Thousands of records under one key are no
	// answer to "is it there".
	maxPages = 100

	// BulkLimit is how many questions one lookup takes.
	BulkLimit = 50

	// maxLogLine bounds one line of the log when it is read: two records of
	// the largest size with room for escapes.
	maxLogLine = 16 << 20

	// DefaultDelay is how late something happens that a fault makes late and
	// that names no delay. It is below the horizon and the recheck that the
	// classes declare.
	DefaultDelay = 2 * time.Second

	// DefaultWindow is how long a destination of class Native knows a key:
	// the day that payment services document.
	DefaultWindow = 24 * time.Hour

	// DefaultLag is how far the reads of class Lagging are behind.
	DefaultLag = 2 * time.Second

	// DefaultRollback is the rollback that the classes declare. A process that
	// stood still for minutes is inside it.
	DefaultRollback = 8 * time.Minute
	// DefaultHorizon is the horizon that the classes declare.
	DefaultHorizon = 30 * time.Second

	// shutdownGrace is how long Run lets requests end that are being served.
	shutdownGrace = 2 * time.Second

	// readHeaderTimeout ends connections to Run that say nothing.
	readHeaderTimeout = 10 * time.Second
)
