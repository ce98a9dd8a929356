package redact

import "errors"

// Errors that callers can tell apart.
var (
	// ErrKey: a key or a pattern that a vault cannot be made with.
	ErrKey = errors.New("unusable redaction key or pattern")
	// ErrNoKey: what is sealed names a key that this vault does not have, or there
	// is no vault at all. Another process, or this one with the key, can open it.
	ErrNoKey = errors.New("the key that sealed this is not here")
	// ErrToken: what looks like a token is none, was altered, or belongs to another
	// write or tenant.
	ErrToken = errors.New("not a sealed value of this write")
)
