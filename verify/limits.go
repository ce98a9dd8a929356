package verify

import "time"

const (
	// maxNumberText is the longest number compared by value. Money and
	// measures have a few dozen digits; a double at its longest about 1,100.
	maxNumberText = 1200
	// maxExponentDigits keeps exponents below 1,000: enough for any double
	// (308), and a power of ten that is computed in no time.
	maxExponentDigits = 3
	// MaxMismatches is how many differences one judgement carries at most: a
	// person reads the first few, a record in the ledger must stay small.
	MaxMismatches = 64
	// maxPaths and maxPath bound the fields that the reason of a judgement names, and
	// the path of each in bytes: the rest is in the list of differences.
	maxPaths = 5
	maxPath  = 80
	// maxPanicText bounds what is kept of a connector's panic.
	maxPanicText = 256
	// defaultCalls bounds the reads of one destination and kind that are under
	// way at once through a coalescer: enough that a few that hang hold nobody
	// up, few enough not to weigh on a destination that has become slow.
	defaultCalls = 8
	// defaultWindow bounds how long a read waits for company: a person does not
	// notice it, and a second read of the same write costs more.
	defaultWindow = 50 * time.Millisecond
	// minWindow is what a read waits for company where calls take no time worth
	// mentioning.
	minWindow = time.Millisecond
	// windowShare is the part of a usual call that a read waits for company. It
	// makes reads at most a quarter slower, and as a new call begins at most so
	// often, keeps about four under way however many are asked for.
	windowShare = 4
	// usualAtFirst is what a call is taken to need before one has ended: a
	// request over a network to a service that looks something up.
	usualAtFirst = 100 * time.Millisecond
	// usualShare is the part that the latest call has in what calls usually
	// take.
	usualShare = 8
	// bulkRest is how long after a bulk read that failed the next ones do not
	// grow. Where none works at all, it costs two queries in so long one
	// failed read.
	bulkRest = 10 * time.Second
	// minNamed is how many letters a value must have to be looked for in what was
	// said of a bulk read: shorter ones stand in any text.
	minNamed = 4
)
