package tool

import "encoding/json"

// InputSchema is the JSON Schema (draft 2020-12) of the arguments. [Tool.Intent] refuses
// all that it refuses, and also what a schema cannot express: repeated members, blanks at
// the ends of keys, values that are too large for an intent.
func (t Tool) InputSchema() json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for _, a := range t.Arguments {
		properties[a.Name] = t.propertyOf(a)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	schema := map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err) // strings, bools and whole numbers always marshal
	}
	return text
}

func (t Tool) propertyOf(a Argument) map[string]any {
	p := map[string]any{"type": string(a.Type), "description": a.Description}
	switch a.Type {
	case String:
		switch {
		case len(a.Enum) > 0:
			p["enum"] = a.Enum
		case t.exact(a.Name):
			p["minLength"], p["maxLength"] = 1, maxKeyText
		case a.To == reasonPlace:
			p["maxLength"] = maxReason
		default:
			p["maxLength"] = maxText
		}
	case Array:
		p["items"] = map[string]any{"type": string(a.itemType())}
		p["maxItems"] = maxItems
	}
	return p
}

func (a Argument) itemType() Type {
	if a.Items == "" {
		return String
	}
	return a.Items
}
