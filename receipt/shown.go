package receipt

import (
	"encoding/json"

	"github.com/readback-go/readback/redact"
)

// shown is a JSON text with its sealed values replaced by keyed digests.
func shown(text []byte) []byte { return redact.Shown(json.RawMessage(text)) }
