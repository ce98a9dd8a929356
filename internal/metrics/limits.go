package metrics

import "time"

const (
	// surveyEvery is how often scrapes make the ledger count at most: several
	// scrapers must not cost more than one.
	surveyEvery = 5 * time.Second
	// surveyTimeout bounds one count: a scrape that gets no numbers is better
	// than none at all.
	surveyTimeout = 3 * time.Second
	// readyTimeout bounds the question whether the ledger can be reached: those
	// who ask give up after a few seconds themselves.
	readyTimeout = 2 * time.Second
	// scrapeTimeout bounds one scrape: Prometheus gives up after 10 s by default.
	scrapeTimeout = 9 * time.Second
	// maxScrapes bounds the scrapes under way at once.
	maxScrapes = 4
	// headerTimeout, writeTimeout and idleTimeout bound what a slow client holds.
	headerTimeout = 5 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = time.Minute
	// maxHeader bounds the header of a request: nobody needs cookies here.
	maxHeader = 16 << 10
)

var (
	// callBuckets suit calls of APIs: from a neighbour on the same machine to
	// the longest time-out that people configure.
	callBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// lifeBuckets suit a write from its begin to its end: one that waits for a
	// rate limit or a person takes hours or days.
	lifeBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 86400}
	// readBuckets count reads: near one where the lag is known.
	readBuckets = []float64{0, 1, 2, 3, 5, 8, 13, 21, 50}
)
