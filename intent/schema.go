package intent

import (
	"bytes"
	_ "embed" // for the schema
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of what [Decode] accepts, for tools that check
// or describe an intent before it is sent. Decode may still refuse what it accepts, for a
// reason that a schema cannot express: contradictory parts, numbers that a double cannot hold,
// repeated members, useless paths, sizes in bytes. What it refuses, Decode refuses.
func Schema() []byte { return bytes.Clone(schema) }
