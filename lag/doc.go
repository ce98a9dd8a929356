// Package lag learns how long after a send its effect becomes visible, and plans when to read.
//
// A [Book] keeps one sketch of observed lags for each destination, kind of record and way of
// reading. It gives the best time of the first read after a send, and of the next ones: where
// waiting longer costs more than the read that it may save. A lag is never observed, only that an
// effect was absent at one read and present at the next, so the learned values are intervals. Now
// and then a read is made early on purpose, or the learned lag could never decrease. When lags
// change, everything is forgotten and learned anew at the standard pace.
//
// Workers share what they learn through the notes of their ledger, added up.
//
// A book only places reads. It knows no intent, no observation and no verdict: a sketch that is
// wrong, lost or forged makes reads too early or too late, and never changes their meaning.
// Bounds that a verdict depends on (settle time, horizon) are declared, not learned.
package lag
