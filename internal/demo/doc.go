// Package demo shows, in seconds and without anything to configure, what
// happens to 100 orders of $19.99 when answers get lost and workers get killed.
//
// [Run] makes five trials at the same time. In each, a worker writes 100 times
// to a destination of its own, and every fifth answer is lost after the
// destination has done what it was asked:
//
//   - naive retry: sends again when no answer came.
//   - a plain idempotency ledger: keeps a row for each order.
//   - the same ledger, while its worker is killed again and again.
//   - readback, with the same losses and the same kills.
//   - readback again, with messages appended over IMAP.
//
// The orders go to package simulated as a process of its own, in its hardest
// honest form: it deduplicates nothing (no idempotency key, no unique order
// id), its reads show all that it has done, and it keeps our stamps. The
// messages go to go-imap's server in the process of the demonstration. Workers
// are processes, and kills are SIGKILL at a known instruction: a worker tells
// at which point it is ([Child]) and goes on when it is told to, or not at all.
//
// What is counted is what the destination's own log, or the mailbox, holds. No
// worker is asked what it did, only what it believes.
//
// The package does not know destinations without strong reads, commits that
// come late, or networks other than loopback. Times are shorter than the
// defaults, so that leases of killed workers end while one watches; the
// rechecks that readback owes after its second sends come too late to be seen.
package demo
