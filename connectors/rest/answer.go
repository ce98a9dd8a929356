package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/connectors/httpsend"
)

// maxDepth is how deep an answer may nest. Rich text of real systems nests some dozens deep; it
// is traversed recursively.
const maxDepth = 128

// decode reads a body that is one JSON value: numbers exact, no member twice, nesting limited.
// Errors wrap errAnswer and repeat nothing of it.
func decode(a httpsend.Answer) (any, error) {
	if a.BodyErr != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, a.BodyErr)
	}
	text := jsontext.Value(a.Body)
	if depth(text) > maxDepth {
		return nil, fmt.Errorf("%w: it is nested more than %d deep", errAnswer, maxDepth)
	}
	if !text.IsValid() {
		return nil, fmt.Errorf("%w: it is not one JSON value with each member once", errAnswer)
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%w: it is not one JSON value", errAnswer)
	}
	return doc, nil
}

// depth is how deep a text nests, before anything is made of it.
func depth(text []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			now++
			deepest = max(deepest, now)
		case b == ']' || b == '}':
			now--
		}
	}
	return deepest
}
