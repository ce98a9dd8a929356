package sql

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// maxText is the longest text of one value in bytes; an intent holds 1 MiB.
const maxText = 1 << 20

// Type is how the values of a column are written, read and compared.
type Type string

// The types. The zero value counts as Text.
const (
	Text      Type = "text"        // exact
	Char      Type = "char"        // char(n): blanks at the end are not kept, so none may be written
	CaseFold  Type = "citext"      // letter case does not count
	Integer   Type = "integer"     // any size; beyond 2⁵³ intents write it as a string
	Numeric   Type = "numeric"     // exact, compared by value
	Float     Type = "float"       // as near as the column's precision allows, then exact
	Bool      Type = "bool"        // true or false
	UUID      Type = "uuid"        // hyphened; letter case does not count
	Timestamp Type = "timestamptz" // RFC 3339 with an offset; to the microsecond
	LocalTime Type = "timestamp"   // 2006-01-02T15:04:05, without an offset; to the microsecond
	Date      Type = "date"        // 2006-01-02
	JSON      Type = "json"        // json and jsonb; an update sets the members it names
	Bytes     Type = "bytes"       // Base64
	Array     Type = "array"       // PostgreSQL only; element by element
	Other     Type = "other"       // enums, intervals, ranges: the text that the database writes
)

// types lists them all.
func types() []Type {
	return []Type{Text, Char, CaseFold, Integer, Numeric, Float, Bool, UUID, Timestamp, LocalTime, Date, JSON, Bytes, Array, Other}
}

// keys reports whether a column of the type can be in a key.
func (t Type) keys() bool {
	switch t {
	case JSON, Array, Float, Bytes:
		return false
	}
	return true
}

// comparison is how values of the type are compared; nil is exactly.
func (t Type) comparison() intent.Comparison {
	switch t {
	case CaseFold, UUID:
		return intent.Comparison{{Name: intent.RuleFold}}
	case Integer, Numeric, Float:
		return intent.Comparison{{Name: intent.RuleNumeric}}
	case Timestamp, LocalTime:
		return intent.Comparison{{Name: intent.RuleTime, Precision: "1us"}}
	}
	return nil
}

// value is one value as it is sent. Text is PostgreSQL's own form of it.
type value struct {
	column Column
	null   bool
	text   string
	// plain is what the intent has.
	plain any
}

// encode brings a value of an intent into the form of its column. Nothing is
// coerced: what the column would change is refused.
func encode(path string, c Column, v any) (value, error) {
	out := value{column: c, plain: v}
	if v == nil {
		out.null = true
		return out, nil
	}
	text, want := "", ""
	switch c.Type {
	case JSON, Array:
		text, want = structured(c.Type, v)
	case Integer, Numeric, Float:
		text, want = number(c.Type, v)
	case Bool:
		b, ok := v.(bool)
		if text = fmt.Sprint(b); !ok {
			want = "true or false"
		}
	default:
		s, ok := v.(string)
		if text = s; !ok {
			want = "a string"
		} else {
			want = textProblem(c.Type, s)
		}
	}
	switch {
	case want != "":
		return value{}, c.misfit(v, unusable(path, "does not fit the column", want))
	case strings.ContainsRune(text, 0) || len(text) > maxText:
		return value{}, c.misfit(v, unusable(path, "has a NUL or too many bytes", fmt.Sprintf("at most %d bytes without NUL", maxText)))
	}
	if out.text = text; c.Type == Bytes {
		raw, _ := base64.StdEncoding.DecodeString(text) // was decoded before
		out.text = `\x` + hex.EncodeToString(raw)
	}
	return out, nil
}

// examples are values of the types that do not take every text.
var examples = map[Type]string{
	Integer: "1", Numeric: "1", Float: "1", UUID: "00000000-0000-4000-8000-000000000000", Timestamp: "2006-01-02T15:04:05Z",
	LocalTime: "2006-01-02T15:04:05", Date: "2006-01-02", Bytes: "AA==",
}

// misfit marks in an error about a value whether the column accepts others of its JSON type.
func (c Column) misfit(v any, err error) error {
	var at *connectors.FieldError
	if !errors.As(err, &at) {
		return err
	}
	var example any
	switch v.(type) {
	case string:
		if at.Value = c.Type != Bool && c.Type != Array; examples[c.Type] != "" {
			example = examples[c.Type]
		}
	case json.Number:
		if at.Value = slices.Contains([]Type{Integer, Numeric, Float}, c.Type); at.Value {
			example = json.Number("1")
		}
	case []any:
		at.Value = c.Type == Array || c.Type == JSON
	case map[string]any:
		at.Value = c.Type == JSON
	}
	at.Example = example
	return err
}

var uuidForm = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// textProblem is what is accepted as a text of the type, "" if s is valid.
func textProblem(t Type, s string) string {
	fits := func(ok bool, want string) string {
		if ok {
			return ""
		}
		return want
	}
	parses := func(form string) bool {
		_, err := time.Parse(form, s)
		return err == nil
	}
	switch t {
	case Char:
		return fits(!strings.HasSuffix(s, " "), "text without blanks at its end, which the column does not keep")
	case UUID:
		return fits(uuidForm.MatchString(s), "a uuid with hyphens")
	case Timestamp:
		return fits(parses(time.RFC3339Nano), "a time with its offset, 2006-01-02T15:04:05Z")
	case LocalTime:
		return fits(parses("2006-01-02T15:04:05.999999999"), "a time without an offset, 2006-01-02T15:04:05")
	case Date:
		return fits(parses(time.DateOnly), "a date, 2006-01-02")
	case Bytes:
		raw, err := base64.StdEncoding.Strict().DecodeString(s)
		return fits(err == nil && base64.StdEncoding.EncodeToString(raw) == s, "bytes as Base64 with padding")
	}
	return ""
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,5})?$`)

// number is the text of a number, whole for an integer.
func number(t Type, v any) (text, want string) {
	switch v := v.(type) {
	case json.Number:
		text = string(v)
	case string:
		text = v
	}
	if !numberForm.MatchString(text) {
		return "", "a number, or one written as a string"
	}
	if t != Integer {
		return text, ""
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || len(r.Num().String()) > 20 {
		return "", "a whole number of at most 19 digits"
	}
	return r.Num().String(), ""
}

func structured(t Type, v any) (text, want string) {
	if t == Array {
		list, ok := v.([]any)
		if !ok {
			return "", "an array"
		}
		var b strings.Builder
		if !arrayLiteral(&b, list) {
			return "", "an array of strings, numbers, booleans, null or arrays"
		}
		return b.String(), ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", "JSON"
	}
	return string(raw), ""
}

// arrayLiteral writes an array as PostgreSQL reads it. Every text is quoted:
// NULL, blanks and braces are text then.
func arrayLiteral(b *strings.Builder, list []any) bool {
	b.WriteByte('{')
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		switch v := v.(type) {
		case nil:
			b.WriteString("NULL")
		case bool, json.Number:
			fmt.Fprint(b, v)
		case string:
			b.WriteString(`"` + quoteElement.Replace(v) + `"`)
		case []any:
			if !arrayLiteral(b, v) {
				return false
			}
		default:
			return false
		}
	}
	b.WriteByte('}')
	return true
}

var quoteElement = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// decode brings what PostgreSQL's to_jsonb made of a value into the form of
// intents: it writes bytea as \x and hex digits.
func decode(c Column, v any) (any, error) {
	if c.Type != Bytes || v == nil {
		return v, nil
	}
	s, _ := v.(string)
	digits, ok := strings.CutPrefix(s, `\x`)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return nil, fmt.Errorf("%w: column %q does not show bytes", errUnreadable, c.Name)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
