package intent

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// encodeOptions write JSON with its numbers as they stand.
//
// omitempty means what encoding/json has taught everybody: 0 and false are
// left out.
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

// Canonical is the canonical JSON of a value (RFC 8785): members sorted by
// their UTF-16 code units, no white space, numbers as the shortest decimal of
// an IEEE double. 1, 1.0 and 1e0 are the same, and so are 0 and -0. Strings are
// taken as they are: text that differs only in Unicode normalisation differs.
//
// It takes what [Normalize] takes. A number that a double cannot hold
// (9007199254740993, 1e400) is an [InvalidError], since two numbers would
// otherwise become one.
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

// clip shortens text from outside for a message.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%.*s… (%d bytes)", most, s, len(s))
}
