// Package saga carries out an ordered set of writes that is to happen as a whole
// or not at all: forward through compensable writes and a pivot to retryable
// ones, or back through the compensations of what was done.
//
// Every move is in the ledger before it is made. The package sends nothing
// itself: package engine makes each write, and each undoing, as a write of its
// own. It does not know what a destination cannot undo beyond what its profile
// and the plan say.
package saga
