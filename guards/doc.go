// Package guards keeps sends within what a destination takes and what an
// operator allows: rate, concurrency, circuit breaker and stops, shared by all
// workers through the ledger.
package guards
