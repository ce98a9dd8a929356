package mcpapi

import (
	_ "embed" // for the schemas
	"encoding/json"
	"slices"
)

//go:embed output.json
var answerSchema []byte

//go:embed outcome.json
var outcomeSchema json.RawMessage

// OutputSchema is the JSON Schema (draft 2020-12) of [Answer], which every tool that
// writes returns. A model reads it with each tool: it has few descriptions.
func OutputSchema() json.RawMessage { return slices.Clone(answerSchema) }
