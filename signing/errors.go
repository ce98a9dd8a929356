package signing

import (
	"errors"
	"strconv"

	"github.com/readback-go/readback/internal/visible"
)

// clipped is how much of an external text an error repeats, in bytes.
const clipped = 80

// The errors, for errors.Is. Each message names the correct value.
var (
	// ErrKey: a key cannot be read, is of the wrong kind, or is not trusted.
	ErrKey = errors.New("wrong key")
	// ErrEnvelope: the input is not an envelope in the supported format.
	ErrEnvelope = errors.New("no envelope")
	// ErrType: the payload has another type than the requested one.
	ErrType = errors.New("wrong payload type")
	// ErrSignature: the signature is not that of the key over this payload.
	ErrSignature = errors.New("wrong signature")
)

// clip shortens external text for a message.
func clip(s string) string { return strconv.Quote(visible.Cut(s, clipped)) }
