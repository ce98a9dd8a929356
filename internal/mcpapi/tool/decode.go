package tool

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/jsonkind"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// maxText is the longest string that an argument may be, in characters, and
	// maxItems the longest list. An intent is at most a megabyte; a message or a
	// page of text is far below this.
	maxText  = 100_000
	maxItems = 1000
	// maxKeyText is the longest string in a business key or an operation, in characters:
	// they hold names and numbers, no texts.
	maxKeyText = 512
	// maxShown is how much of a wrong value is repeated.
	maxShown = 60
)

// numbers keep their digits, as in an intent.
var decodeOptions = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported
	}
	text, err := dec.ReadValue()
	if err == nil {
		*v = stdjson.Number(text.String())
	}
	return err
}))

// decode reads arguments strictly: one object, no repeated member, UTF-8. Empty input is
// no arguments.
func decode(data []byte) (map[string]any, *Problem) {
	if len(data) == 0 {
		return nil, nil
	}
	if len(data) > intent.MaxSize {
		return nil, &Problem{Problem: fmt.Sprintf("the arguments have %d bytes", len(data)), Want: fmt.Sprintf("at most %d", intent.MaxSize)}
	}
	if jsontext.Value(data).Kind() != jsontext.KindBeginObject {
		return nil, &Problem{Problem: "the arguments are no JSON object", Want: "an object of the arguments by name"}
	}
	if jsonkind.TooMany(data, 3*intent.MaxMembers) { // each has a name, and may be an object with an end
		return nil, &Problem{Problem: "the arguments have too many values", Want: fmt.Sprintf("at most %d", intent.MaxMembers)}
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all, decodeOptions); err != nil {
		return nil, &Problem{Problem: "the arguments cannot be read", Want: "one JSON object in UTF-8, each argument once"}
	}
	return all, nil
}

// values checks a model's arguments against the tool's.
func (t Tool) values(given map[string]any) []Problem {
	var problems []Problem
	var names []string
	for _, a := range t.Arguments {
		names = append(names, a.Name)
		v, there := given[a.Name]
		switch {
		case !there && a.Required:
			problems = append(problems, Problem{a.Name, "is missing", a.wanted()})
		case there:
			problems = append(problems, t.value(a, v)...)
		}
	}
	var strange []string
	for name := range given {
		if !slices.Contains(names, name) {
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	for _, name := range strange {
		want := "one of " + strings.Join(names, ", ")
		problems = append(problems, Problem{clip(name), "is no argument of this tool", want})
	}
	return problems
}

func (t Tool) value(a Argument, v any) []Problem {
	if v == nil {
		want := a.wanted()
		if !a.Required {
			want += ", or the argument left out"
		}
		return []Problem{{a.Name, "is null", want}}
	}
	if !a.Type.takes(v) {
		return []Problem{{a.Name, "is " + kindOf(v), a.wanted()}}
	}
	switch v := v.(type) {
	case string:
		return t.text(a, v)
	case []any:
		return a.list(v)
	}
	return nil
}

// text checks a string. A part of the key or of the operation must have one spelling: a
// blank at an end would name another record.
func (t Tool) text(a Argument, s string) []Problem {
	exact, most := t.exact(a.Name), maxText
	if exact {
		most = maxKeyText
	}
	switch n := utf8.RuneCountInString(s); {
	case n > most:
		return []Problem{{a.Name, fmt.Sprintf("has %d characters", n), fmt.Sprintf("at most %d", most)}}
	case len(a.Enum) > 0 && !slices.Contains(a.Enum, s):
		return []Problem{{a.Name, fmt.Sprintf("is %q", clip(s)), "one of " + strings.Join(a.Enum, ", ")}}
	case !exact:
	case s == "":
		return []Problem{{a.Name, "is empty", a.wanted()}}
	case strings.TrimSpace(s) != s:
		return []Problem{{a.Name, "has blanks at its ends", "it without them"}}
	case strings.Contains(s, "  "), strings.ContainsFunc(s, visible.Hidden):
		return []Problem{{a.Name, "has characters that cannot be seen, or blanks side by side", "letters, digits, signs and single blanks"}}
	case !norm.NFC.IsNormalString(s):
		return []Problem{{a.Name, "has letters in a decomposed form", "Unicode in its composed form (NFC)"}}
	}
	return nil
}

func (a Argument) list(all []any) []Problem {
	if len(all) > maxItems {
		return []Problem{{a.Name, fmt.Sprintf("has %d elements", len(all)), fmt.Sprintf("at most %d", maxItems)}}
	}
	for i, v := range all {
		if !a.itemType().takes(v) {
			return []Problem{{a.Name, fmt.Sprintf("has %s at place %d", kindOf(v), i), a.wanted()}}
		}
	}
	return nil
}

// takes reports whether a value is of a type.
func (t Type) takes(v any) bool {
	switch v := v.(type) {
	case string:
		return t == String
	case bool:
		return t == Boolean
	case stdjson.Number:
		return t == Number || t == Integer && whole(v)
	case []any:
		return t == Array
	case map[string]any:
		return t == Object
	}
	return false
}

// whole reports whether a number is whole, in any notation. A number with a large
// exponent is refused: no one would write a whole number so.
func whole(n stdjson.Number) bool {
	text := strings.ToLower(n.String())
	if _, after, ok := strings.Cut(text, "e"); ok && len(after) > 3 || len(text) > maxShown {
		return false
	}
	r, ok := new(big.Rat).SetString(n.String())
	return ok && r.IsInt()
}

// wanted describes a valid value of an argument.
func (a Argument) wanted() string {
	switch a.Type {
	case String:
		if len(a.Enum) > 0 {
			return "one of " + strings.Join(a.Enum, ", ")
		}
		return "text in quotes"
	case Integer:
		return "a whole number"
	case Number:
		return "a number"
	case Boolean:
		return "true or false"
	case Array:
		return "a list, each element " + Argument{Type: a.itemType()}.wanted()
	}
	return "an object"
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return fmt.Sprint(v)
	case stdjson.Number:
		return "the number " + clip(v.String())
	case []any:
		return "a list"
	}
	return "an object"
}

func clip(s string) string { return visible.Cut(s, maxShown) }
