// Package sealed is a ledger as the gate and sagas see it where values are
// sealed: what they file is sealed on its way in, and what they read is as they
// filed it. Papers are sealed whole, since a step's input and output, and the
// plan of a saga, hold values under names that nobody has declared; a write that
// is taken up together with a paper is sealed as the engine seals its own, so
// that it can carry it on.
//
// It does not know what papers mean, and shows nobody anything.
package sealed
