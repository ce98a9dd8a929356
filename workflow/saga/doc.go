// Package saga carries out an ordered set of writes so that in the end all of
// them are done, or those that were are undone, or a person knows.
//
// A [Plan] is checked before anything is sent: what can be undone comes before
// the pivot, what is repeated until it succeeds after it, the hardest to take
// back last. A [Runner] keeps each saga as a paper in the ledger and decides its
// next move from that paper and the records of its writes alone, so that any
// process can go on where another one died. A move is on disk before anything
// of it is done: the paper, the reservation of the step's write and how it will
// be undone in one filing, which fails when somebody else was quicker.
//
// The package never sends and never reads a destination: the engine carries each
// write, and each undoing, as it carries any other. It does not know what a
// write does; that a step can be undone it takes from its destination's profile,
// or from the plan.
package saga
