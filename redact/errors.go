package redact

import "errors"

// Errors that callers can distinguish.
var (
	// ErrKey: a key or a pattern that a vault cannot use.
	ErrKey = errors.New("unusable redaction key or pattern")
	// ErrNoKey: a sealed value names a key that this vault does not have, or there is no vault at
	// all. Another process, or this one with the key, can open it.
	ErrNoKey = errors.New("the key that sealed this is not here")
	// ErrToken: an apparent token is invalid, was altered, or belongs to another write or tenant.
	ErrToken = errors.New("not a sealed value of this write")
)
