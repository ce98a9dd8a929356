// Package audit chains the events of a ledger, tenant by tenant, by their digests, signs the
// chain's heads, and finds the first event that was altered, is missing or is out of place.
//
// A chain alone proves only that the ledger agrees with itself: an actor that can write to the
// ledger can make another chain. It proves more if another party keeps its heads. The package
// does not read destinations (package eval does).
package audit
