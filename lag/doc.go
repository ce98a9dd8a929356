// Package lag learns how long after a send its effect becomes visible, and
// says when to look.
//
// A [Book] keeps one sketch of observed lags for each destination, kind of
// record and way of reading. From it follows when the first look after a send
// is best made, and the next ones: where waiting longer costs more than the
// read that it may spare. A lag is never seen, only that an effect was not
// there yet at one look and was there at the next, so what is learned are
// intervals; now and then a look is made early on purpose, or what is learned
// could never come down. Where lags stop being like those before, all is
// forgotten and learned anew at the standard pace.
//
// Workers share what they learn through the notes of their ledger, added up.
//
// What a book says places reads and does nothing else. It knows no intent, no
// observation and no verdict: a sketch that is wrong, lost or forged makes reads
// come too early or too late, and never makes one mean something else. Bounds
// that a verdict rests on (settle time, horizon) are declared, not learned.
package lag
