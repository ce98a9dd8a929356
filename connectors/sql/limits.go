package sql

import "time"

const (
	// maxIdentifier is the longest name in bytes: PostgreSQL cuts longer ones
	// to this in silence, and two columns would become one.
	maxIdentifier = 63

	// maxRows is how many rows a read of one key takes before it is given up
	// as an error: an intent declares 10,000 at most, and a key that matches
	// more is none.
	maxRows = 10_001

	// maxText is the longest text of one value in bytes; an intent holds 1 MiB.
	maxText = 1 << 20

	// maxServerText is how much of the server's own words goes into an error.
	maxServerText = 200

	// bulkLimit is how many queries one bulk read takes: one index look-up
	// each, in one statement that stays far inside a read time-out.
	bulkLimit = 100

	// defaultConnections is how many connections are open at a time for
	// writes, and as many for reads: PostgreSQL allows 100 to everybody.
	defaultConnections = 4

	// askConnections is how many connections ask the primary how far its log
	// is: a question of half a millisecond.
	askConnections = 2

	// defaultStandbyWait is how long a read waits for a standby to replay what
	// the primary has. A healthy one lags by milliseconds.
	defaultStandbyWait = 2 * time.Second

	// commitMargin is what the horizon adds to the time in which a COMMIT must
	// arrive, for the server to carry it out: writing the log to disk is not
	// bounded by any setting, and takes milliseconds.
	commitMargin = 30 * time.Second

	// cleanup is how long a ROLLBACK may take before its connection is thrown
	// away instead; either ends the transaction.
	cleanup = time.Second

	// firstLook and lastLook are the shortest and the longest pause between two
	// looks at a standby that lags.
	firstLook = 2 * time.Millisecond
	lastLook  = 100 * time.Millisecond
)
