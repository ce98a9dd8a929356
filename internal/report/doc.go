// Package report puts what the ledger knows into words for a person at a
// terminal: the life of one write ([Life]), a list of writes ([List]), those
// that wait for a person ([Waiting]), and one outcome ([Outcome]). [JSON] is
// the same for machines.
//
// Whatever came from destinations, models or callers is passed through [Safe]
// first: no text of theirs can move the cursor, colour the screen or turn the
// direction of writing.
//
// The package decides nothing and reads no ledger: it is given what it writes.
// It does not know how wide the terminal is.
package report
