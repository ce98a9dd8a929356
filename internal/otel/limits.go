package otel

import "time"

const (
	// maxWaiting bounds the spans, and the events, that wait to be exported: about
	// a second of a busy server, and some 20 MB. What comes on top is dropped.
	maxWaiting = 8192
	// maxBatch bounds one request: below the 4 MiB that collectors take by default.
	maxBatch = 1024
	// batchEvery is how soon what ended is exported where little goes on.
	batchEvery = 2 * time.Second
	// exportTimeout bounds the delivery of one batch with all its repeats, and
	// firstRetry and longestRetry the pauses between these.
	exportTimeout = 30 * time.Second
	firstRetry    = time.Second
	longestRetry  = 10 * time.Second
	// shutdownTimeout bounds how long the program waits at its end for what was
	// not delivered yet.
	shutdownTimeout = 3 * time.Second
	// complainEvery is how often the log hears of trouble at most: a collector that
	// is down fails every few seconds.
	complainEvery = time.Minute
	// maxValue bounds the value of an attribute in bytes: arguments and results can
	// be long where they are told at all.
	maxValue = 16 << 10
	// maxComplaint bounds what a log line says of an error: it holds what the
	// receiver answered.
	maxComplaint = 300
)
