// Package probe measures a destination against what its profile declares.
//
// Against a sandbox account it writes marked sample records (package connectors, Sampler) through
// the connector, reads them back, and compares: how far each way of reading lags, whether the
// idempotency key and the unique key are honoured, whether a conditional write is refused when it
// should be, which fields come back changed and by which rule they are equal, whether stamps
// show, whether writes can be undone. Afterwards it always removes its records, and lists those
// that it could not remove.
//
// A declaration that is too strong makes undetected duplicates. So the report fails
// (Report.Weaker) if the destination is weaker than declared. If it is stronger, the report says
// so and nothing changes: a few measurements are no promise.
//
// It does not know how late a send may be applied (the horizon: no read can show that), how long
// a key is remembered beyond the minutes of a run, or what a destination does under load. It
// decides nothing and never changes a record that is not its own.
package probe
