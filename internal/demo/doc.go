// Package demo shows, in seconds and without configuration, what happens to 100 orders of $19.99
// when answers get lost and workers get killed.
//
// [Run] makes five trials at the same time. In each, a worker writes 100 times to a destination
// of its own, and every fifth answer is lost after the destination has executed the request:
//
//   - naive retry: sends again when no answer came.
//   - a plain idempotency ledger: keeps a row for each order.
//   - the same ledger, while its worker is killed again and again.
//   - readback, with the same losses and the same kills.
//   - readback again, with messages appended over IMAP.
//
// The orders go to package simulated as a process of its own, in its hardest honest form: it
// deduplicates nothing (no idempotency key, no unique order id), its reads show all that it has
// done, and it keeps our stamps. The messages go to go-imap's server in the process of the
// demonstration. Workers are processes, and kills are SIGKILL at a known instruction: a worker
// reports its point ([Child]) and continues when it is released, or not at all.
//
// The figures count the content of the destination's own log, or of the mailbox. Workers do not
// report what they did, only what they believe.
//
// The package does not know destinations without strong reads, commits that come late, or
// networks other than loopback. Times are shorter than the defaults, so that leases of killed
// workers end during the demonstration; the rechecks that readback needs after its second sends
// come too late to be seen.
package demo
