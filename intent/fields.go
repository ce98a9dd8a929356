package intent

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// UnmarshalJSON decodes an object with its numbers kept exact, so that encoding/json, too,
// returns the values that Fields promise. It refuses repeated member names and invalid UTF-8.
// Null results in nil.
func (f *Fields) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, f, decodeOptions)
}

// Normalize converts Go values into the values that [Fields] hold: integers and floats become
// [json.Number], a time becomes its RFC 3339 text, a slice []any, a map or struct
// map[string]any, bytes Base64 text. Nil slices and maps become empty ones; nil pointers become
// null. Numbers too large for a double are kept: only [WriteIntent.Validate] refuses them.
//
// The result shares no memory with f. The error names the member by its path and is an
// [InvalidError]. It is returned for values that JSON cannot express (NaN, a channel, a
// [time.Duration], invalid UTF-8) and for endless values.
//
// [json.Number]: https://pkg.go.dev/encoding/json#Number
func Normalize(f Fields) (Fields, error) {
	if f == nil {
		return nil, nil
	}
	v, err := normalize(map[string]any(f))
	if err != nil {
		return nil, err
	}
	return Fields(v.(map[string]any)), nil
}

func normalize(v any) (any, error) {
	n := normalizer{left: maxNormalized}
	return n.value(nil, v, 0)
}

type normalizer struct{ left int }

func (n *normalizer) value(at *place, v any, depth int) (any, error) {
	if n.left--; n.left < 0 || depth > maxNormalizedDepth {
		return nil, invalidAt(at.pointer(), "holds too much, or itself", fmt.Sprintf("at most %d levels and %d values", maxNormalizedDepth, maxNormalized))
	}
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, invalidAt(at.pointer(), "is not valid UTF-8", wantUTF8)
		}
		return v, nil
	case stdjson.Number:
		if !isNumber(string(v)) {
			return nil, invalidAt(at.pointer(), fmt.Sprintf("is %q, which is no JSON number", string(v)), "a JSON number")
		}
		return v, nil
	case Fields:
		return n.object(at, v, depth)
	case map[string]any:
		return n.object(at, v, depth)
	case []any:
		return n.array(at, v, depth)
	}
	return n.other(at, v, depth)
}

func (n *normalizer) object(at *place, m map[string]any, depth int) (any, error) {
	out := make(map[string]any, len(m))
	for name, v := range m {
		if !utf8.ValidString(name) {
			return nil, invalidAt(at.pointer(), fmt.Sprintf("has the member name %q, which is not valid UTF-8", name), "UTF-8 text")
		}
		plain, err := n.value(at.member(name), v, depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = plain
	}
	return out, nil
}

func (n *normalizer) array(at *place, a []any, depth int) (any, error) {
	out := make([]any, len(a))
	for i, v := range a {
		plain, err := n.value(at.element(i), v, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = plain
	}
	return out, nil
}

// other converts through JSON text, so that every Go type means the same as its JSON form.
func (n *normalizer) other(at *place, v any, depth int) (any, error) {
	text, err := json.Marshal(v, encodeOptions)
	if err != nil {
		below, why := cause(err)
		return nil, invalidAt(at.pointer()+below, fmt.Sprintf("cannot be written as JSON (Go %T): %v", v, why), "a string, number, bool, null, array or object")
	}
	var plain any
	if err := json.Unmarshal(text, &plain, decodeOptions); err != nil {
		below, why := cause(err)
		return nil, invalidAt(at.pointer()+below, fmt.Sprintf("has JSON that cannot be read back (Go %T): %v", v, why), "JSON with each member once")
	}
	return n.value(at, plain, depth)
}

// cause returns the place and the innermost reason of an error of the JSON library, without the
// library's own wording around it.
func cause(err error) (Pointer, error) {
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		if semantic.Err == nil {
			return semantic.JSONPointer, fmt.Errorf("%v has no JSON form", semantic.GoType)
		}
		below, why := cause(semantic.Err)
		return semantic.JSONPointer + below, why
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return syntactic.JSONPointer, syntactic.Err
	}
	return "", err
}
