// Package report formats what the ledger knows for a reader at a terminal: the life of
// one write ([Lifetime]), a list of writes ([List]), those that wait for a reviewer
// ([Waiting]), and one outcome ([Outcome]). [JSON] is the same for machines.
//
// All text from destinations, models or callers is passed through [Safe] first: none of
// it can move the cursor, colour the screen or change the direction of writing.
//
// The package decides nothing and reads no ledger: its callers pass in what it formats.
// It does not know the width of the terminal.
package report
