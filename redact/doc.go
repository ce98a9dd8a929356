// Package redact keeps sensitive values out of what is stored, logged and shown. It determines
// which values of a write are sensitive (by its intent, its destination and by patterns). It
// seals them for the ledger, so that only the engine can open them again. Everywhere else it
// replaces them by keyed digests, so that equal values can still be recognised.
//
// A [Vault] holds the keys and the patterns. A [Scope] belongs to one write: what it seals cannot
// be opened as part of another write. [Shown] and [ShownText] need no key.
//
// The package does not know where values travel: callers that store, log or show values must use
// it. It does not find a value in an encoding other than those of JSON, URLs and HTML, or a part
// of a value that is not its beginning.
package redact
