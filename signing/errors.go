package signing

import (
	"errors"
	"fmt"
)

// The errors, to be asked for with errors.Is. Each message names what would be
// right.
var (
	// ErrKey: a key cannot be read, is of the wrong kind, or is not among those
	// trusted.
	ErrKey = errors.New("wrong key")
	// ErrEnvelope: what was given is no envelope of the form that is read here.
	ErrEnvelope = errors.New("no envelope")
	// ErrType: the payload is of another type than the one wanted.
	ErrType = errors.New("wrong payload type")
	// ErrSignature: the signature is not that of the key over this payload.
	ErrSignature = errors.New("wrong signature")
)

// clip shortens text from outside for a message.
func clip(s string) string {
	if len(s) <= clipped {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:clipped], len(s))
}
