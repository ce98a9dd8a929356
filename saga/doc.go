// Package saga carries out an ordered set of writes. In the end all of them are done, or the
// completed ones are undone, or the saga is in review.
//
// A [Plan] is checked before anything is sent: what can be undone comes before the pivot, what is
// repeated until it succeeds after it, the hardest to take back last. A [Runner] keeps each saga
// as a document in the ledger and decides its next move only from that document and the records
// of its writes, so that any process can continue after another one died. A move is on disk
// before anything of it is done: one commit holds the document, the reservation of the step's
// write and how it will be undone, and fails when another actor committed first.
//
// The package never sends and never reads a destination: the engine carries each write, and each
// undoing, as it carries any other. Whether a step can be undone comes from its destination's
// profile, or from the plan.
package saga
