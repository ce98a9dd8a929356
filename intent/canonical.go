package intent

import (
	stdjson "encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/readback-go/readback/internal/visible"
)

// encodeOptions write JSON with its numbers unchanged.
//
// omitempty has the meaning of encoding/json: 0 and false are left out.
var encodeOptions = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.WithMarshalers(json.MarshalToFunc(
		func(enc *jsontext.Encoder, n stdjson.Number) error {
			if !isNumber(string(n)) {
				return fmt.Errorf("%q is no JSON number", clip(string(n)))
			}
			return enc.WriteValue(jsontext.Value(n))
		})),
)

// Canonical returns the canonical JSON of a value (RFC 8785): members sorted by their UTF-16
// code units, no white space, numbers as the shortest decimal of an IEEE double. 1, 1.0 and 1e0
// are the same, and so are 0 and -0. Strings are unchanged: texts that differ only in Unicode
// normalisation differ.
//
// It accepts what [Normalize] accepts. A number that a double cannot hold (9007199254740993,
// 1e400) is an [InvalidError], since two numbers would otherwise become one.
func Canonical(v any) ([]byte, error) {
	plain, err := normalize(v)
	if err != nil {
		return nil, err
	}
	if err := checkExact(nil, plain); err != nil {
		return nil, err
	}
	return canonical(plain)
}

func (w WriteIntent) canonical() ([]byte, error) {
	if text, ok := direct(&w); ok {
		return text, nil
	}
	return Canonical(w)
}

// direct is [Canonical] without the detour over decoded values, which only finds the place of a
// value that canonical JSON cannot hold. It reports whether it can hold all.
func direct(v any) ([]byte, bool) {
	text, err := json.Marshal(v, encodeOptions)
	if err != nil || !faithful(text) {
		return nil, false
	}
	value := jsontext.Value(text)
	return value, value.Canonicalize() == nil
}

// faithful reports whether canonical JSON keeps every number of a valid JSON text, and whether
// [Canonical] descends as deep.
func faithful(text []byte) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			if depth++; depth > maxNormalizedDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(text) && strings.IndexByte("+-.0123456789Ee", text[end]) >= 0 {
				end++
			}
			if !exact(stdjson.Number(text[i:end])) {
				return false
			}
			i = end - 1
		}
	}
	return true
}

func canonical(v any) ([]byte, error) {
	text, err := json.Marshal(v, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	value := jsontext.Value(text)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return value, nil
}

// checkExact finds the first number that canonical JSON would change.
func checkExact(at *place, v any) error {
	switch v := v.(type) {
	case stdjson.Number:
		if !exact(v) {
			return invalidAt(at.pointer(), fmt.Sprintf("is %s, which canonical JSON cannot hold exactly", clip(string(v))), wantExact)
		}
	case map[string]any:
		for name, member := range v {
			if err := checkExact(at.member(name), member); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range v {
			if err := checkExact(at.element(i), element); err != nil {
				return err
			}
		}
	}
	return nil
}

// clip shortens foreign text for a message.
func clip(s string) string {
	if cut := visible.Cut(s, 60); cut != s {
		return fmt.Sprintf("%s (%d bytes)", cut, len(s))
	}
	return s
}
