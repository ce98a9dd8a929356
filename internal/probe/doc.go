// Package probe measures a destination against what its profile declares.
//
// Against a sandbox account it writes marked sample records (package
// connectors, Sampler) through the connector, reads them back, and compares:
// how far each way of reading lags behind, whether the idempotency key and the
// unique key are honoured, whether a conditional write is refused when it
// should be, which fields come back changed and by which rule they are the same,
// whether stamps show, whether what was done can be undone. Afterwards it takes
// its records away, whatever happened, and lists those that it could not.
//
// A declaration that is too strong makes duplicates that nobody sees. So the
// report fails (Report.Weaker) where the destination is weaker than declared;
// where it is stronger, that is said and changes nothing: what was seen some
// times is no promise.
//
// It does not know how late a send may land (the horizon: no read can show
// that), for how long a key is remembered beyond the minutes of a run, or what a
// destination does under load. It decides nothing and never touches a record
// that is not its own.
package probe
