// Package audit chains the events of a ledger, tenant by tenant, by their
// digests, signs how far the chain has come, and finds the first event that was
// altered, is missing or stands elsewhere.
//
// A chain alone proves only that the ledger agrees with itself: whoever can
// write there can make another one. It proves more where its heads are kept by
// somebody else. The package does not look at destinations (package eval does).
package audit
