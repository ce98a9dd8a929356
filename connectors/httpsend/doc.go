// Package httpsend sends one HTTP request once and returns what is known about it.
//
// net/http has conveniences that harm a write whose fate matters: it follows redirects (turning a
// POST into a GET), silently resends a request that has an idempotency key when a kept connection
// dies, and reports an answer that was cut in the middle like one that never came. [Client]
// switches the first two off and distinguishes the rest, in the terms of package connectors: a
// write is answered, not sent, refused, throttled, or of unknown fate.
//
// The package does not know any destination, what a refusal's code means to it, or how to find a
// record again. It never retries, waits, or compares.
package httpsend
