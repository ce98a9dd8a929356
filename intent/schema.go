package intent

import (
	"bytes"
	_ "embed" // for the schema
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of what [Decode] takes, for tools
// that check or describe an intent before it is sent. What it accepts may still
// be refused for a reason that a schema cannot state: parts that contradict
// each other, numbers that a double cannot hold, repeated members, paths of no
// use, sizes in bytes. What it refuses, Decode refuses.
func Schema() []byte { return bytes.Clone(schema) }
