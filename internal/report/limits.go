package report

import "time"

const (
	// maxValue is how many characters of one value are shown: enough to tell
	// two apart, and a table stays a table. --json has all.
	maxValue = 72
	// maxFields is how many fields of one record are shown.
	maxFields = 40
	// maxRecords is how many records of one read are shown.
	maxRecords = 10
	// maxRows is how many differences are shown.
	maxRows = 40
	// maxText is how many characters of one sentence are shown; the ledger
	// keeps no longer ones.
	maxText = 600
	// wrapAt is where sentences in the table of events are broken.
	wrapAt = 72
	// cell is how many characters of a sentence stand in one line of a list.
	cell = 60
	// maxNamed is how many entries a survey of a ledger names.
	maxNamed = 100
	// maxQueues and maxEntries are how many rows of a status are shown. --json
	// has all.
	maxQueues  = 60
	maxEntries = 20
	// lateAfter is how long due work may wait before a person is told: workers
	// look several times a second, and a restart takes less.
	lateAfter = time.Minute
	// sealedLate is how long an event may wait to be sealed before a person is told:
	// sealing comes about once a second, a backlog of many thousand events takes
	// seconds, another worker takes over within half a minute, and who seals with a
	// timer does so every few minutes.
	sealedLate = 5 * time.Minute
)
