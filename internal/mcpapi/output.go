package mcpapi

import (
	_ "embed" // for the schema
	"encoding/json"
	"slices"
)

//go:embed output.json
var outputSchema []byte

// OutputSchema is the JSON Schema (draft 2020-12) of [Result], which every tool returns.
func OutputSchema() json.RawMessage { return slices.Clone(outputSchema) }
