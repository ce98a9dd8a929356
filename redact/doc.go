// Package redact keeps sensitive values out of what is stored, logged and shown:
// it knows which values of a write are sensitive (by its intent, its destination
// and by patterns), seals them for the ledger, so that only the engine can open
// them again, and names them by keyed digests everywhere else, so that equal
// values can still be told to be equal.
//
// A [Vault] holds the keys and the patterns. A [Scope] is what is about one write:
// what it seals cannot be opened as anything of another one. [Shown] and
// [ShownText] need no key.
//
// It does not know where values travel: whoever stores, logs or shows asks it.
// Nor does it find a value that somebody has encoded in another way than JSON,
// URLs and HTML do, or a part of one that is not its beginning.
package redact
