// Package guards keeps sends within what a destination takes and what an
// operator allows: rate, circuit breaker, concurrency and stops, shared by all
// workers through the notes of their ledger.
//
// It is asked about sends alone. What was sent is read back, checked again and
// settled whatever stands here. It does not send, it does not know what a write
// says, and it never makes a send permissible: it can only hold one back. Reads
// are neither counted nor held.
//
// # What is shared, and how
//
// Every worker goes by a copy of the notes that is at most half a second old
// when a send is let pass; asking about sends keeps it fresh, with one read for
// all who ask. When the notes cannot be read, nothing passes once the copy is
// three quarters of a second old. A note is changed only if nobody else changed
// it since (and a lost race is tried again a bounded number of times), and none
// is ever removed. All times in notes are on the ledger's clock, which each
// worker estimates from what it is told: "not before" counts on the earliest
// that the clock can show, "not beyond" on the latest.
//
// A note that cannot be read is taken at its worst: a stop holds; a breaker is
// open, a rate paused and all slots are taken, each for a bounded time from when
// the note was written, after which it is written anew.
//
// # Rate
//
// The note has the time of the next permit. A worker takes as many permits at
// once as it has sends that wait for one, and under load a few more, which it
// must use within a second (and a twentieth of the rate's period) of their time;
// the rate at which permits are dealt out makes up for that. So
// no window of the period sees more sends let pass than the rate allows, over
// all workers, and at least nine tenths of it can be used. Permits that a dead
// worker took are lost. An answer with a Retry-After, or one that says "not now"
// without a time, pauses the destination for everybody; it is published at once
// and known everywhere within half a second.
//
// # Circuit breaker
//
// The state machine of package gobreaker keeps all of its state in one process,
// and its shared variant holds a lock across the call it protects; neither fits
// workers that share nothing but a ledger. So the states are divided. While the
// breaker is closed, each worker has a gobreaker of its own, fed with its own
// sends: counting in a rolling window and deciding when to trip is the library's,
// and costs no commit. From the moment one of them trips, what is shared is the
// note: it says since when the breaker is open, for everybody, and when a probe
// may be sent. Half open is a permission in that note which one worker takes,
// and which comes back by time when that worker dies; what the probe found
// closes the breaker or keeps it open for twice as long. After an open period
// every worker starts with a new gobreaker, so that old failures count no more.
// A worker sees only its own share of the failures, so that many workers with
// few sends each trip later than one with all of them.
//
// Failures are sends of unknown fate and those that did not get out. A refusal
// is an answer, so the destination works; being throttled is the business of the
// rate. Codes are not looked at: what "503" or "53" means differs between
// destinations, and their connectors have said it by the fate already.
//
// # Concurrency
//
// The note says which worker has how many slots until when. Within its slots a
// worker lets sends pass without a commit; those that it did not need for a
// second go back. A slot is used only while its lease outlasts the send, so a
// dead worker's slots come back when its last send must have ended: after the
// send time-out and at most half a minute. A worker frozen in the middle of a
// send for longer than that can be one too many.
//
// # Stops
//
// A stop ([Stop], [Release]) holds the sends of a tenant, a destination, a tool,
// a combination of them, or all. Each scope has a note, which keeps who stopped
// and released it last, when and why. A send that was let pass before the stop
// was set can still leave, within a second.
package guards
