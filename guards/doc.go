// Package guards keeps sends within what a destination accepts and what an operator allows: rate,
// circuit breaker, concurrency and stops, shared by all workers through the notes of their
// ledger.
//
// Guards never stop read-back, rechecks or settling of earlier sends. The package does not send
// and does not know the content of a write. It never makes a send permissible: it can only hold
// one back. Reads count as calls under way, and wait only for a free slot.
//
// # What is shared, and how
//
// Every worker uses a copy of the notes that is at most half a second old when a send passes.
// Each send refreshes it, with one read for all concurrent requests. If the notes cannot be read,
// nothing passes once the copy is three quarters of a second old. A note is changed only if no
// other worker changed it since (a lost race is tried again a bounded number of times), and none
// is ever removed. All times in notes are on the ledger's clock, which each worker estimates from
// its readings: "not before" uses the earliest possible time, "not beyond" the latest.
//
// An unreadable note is treated as its worst case: a stop holds; a breaker is open, a rate paused
// and all slots are taken, each for a bounded time from when the note was written, after which it
// is written anew.
//
// # Rate
//
// The note has the time of the next permit. A worker takes as many permits at once as it has
// sends that wait for one, and under load a few more. It must use them within a second (and a
// twentieth of the rate's period) of their time; the rate at which permits are dealt out
// compensates for that. So no window of the period sees more sends pass than the rate allows,
// across all workers, and at least nine tenths of the rate can be used. Permits that a dead
// worker took are lost. An answer with a Retry-After, or one that says "not now" without a time,
// pauses the destination for all workers; it is published at once and known everywhere within
// half a second.
//
// # Circuit breaker
//
// The state machine of package gobreaker keeps all of its state in one process, and its shared
// variant holds a lock across the call it protects. Neither fits workers that share only a
// ledger, so the states are divided. While the breaker is closed, each worker has its own
// gobreaker, fed with its own sends: the library counts in a rolling window and decides when to
// trip, which costs no commit. Once one of them trips, the note is the shared state: since when
// the breaker is open, for all workers, and when a probe may be sent. Half open is a permission
// in that note which one worker takes, and which expires if that worker dies. The result of the
// probe closes the breaker or keeps it open for twice as long. After an open period every worker
// starts with a new gobreaker, so that old failures no longer count. A worker sees only its own
// share of the failures, so many workers with few sends each trip later than one with all of
// them.
//
// Failures are sends of unknown fate and those that did not get out. A refusal is an answer, so
// the destination works; the rate handles throttling. Codes are not examined: what "503" or "53"
// means differs between destinations, and their connectors have already mapped it to the fate.
//
// # Concurrency
//
// Sends and reads take slots. If the settings name no number, each worker has its own, and there
// is no note. Otherwise the note records which worker has how many slots until when. Within its
// slots a worker passes calls without a commit; slots that were unused for a second are returned.
// A slot is used only while its lease outlasts the call, so a dead worker's slots are free again
// when its last call must have ended: after the longer time-out and at most half a minute. A
// worker frozen in the middle of a call for longer than that can be one too many.
//
// The pre-state is read under the slot of its send. A read after a send comes before all waiting
// sends of its worker: a send that was not read back is uncertain. Such a read that gets no slot
// is put back, and keeps its priority until shortly after the time at which it was to ask again.
// No caller waits for a slot while it holds another.
//
// # Stops
//
// A stop ([Stop], [Release]) holds the sends of a tenant, a destination, a tool, a combination of
// them, or all. Each scope has a note with who stopped and released it last, when and why. A send
// that passed before the stop was set can still leave, within a second.
package guards
