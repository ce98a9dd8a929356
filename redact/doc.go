// Package redact keeps sensitive values out of what is stored, logged and shown:
// it knows which values of a write are sensitive (by its intent, its destination
// and by patterns), seals them for the ledger, so that only the engine can open
// them again, and names them by keyed digests everywhere else, so that equal
// values can still be told to be equal.
//
// It does not know where values travel: whoever stores, logs or shows asks it.
package redact
