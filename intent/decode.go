package intent

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeOptions refuse unknown members, repeated members and invalid UTF-8
// (the last two by default) and keep numbers exact.
var decodeOptions = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(decodeFields),
		json.UnmarshalFromFunc(decodeAny),
		json.UnmarshalFromFunc(decodeInt),
	)),
)

// Decode reads an intent that comes from outside, strictly, and validates it.
// Refused are unknown and repeated members (at every depth), null for anything
// but a value inside key, expect, payload or require, invalid UTF-8, text after
// the object, more than [MaxSize] bytes or [MaxDepth] levels, and a
// compensates, which only the engine sets. Numbers stay exact.
//
// Every error is an [InvalidError] and names the place.
func Decode(data []byte) (WriteIntent, error) {
	w, err := decode(data)
	if err != nil {
		return WriteIntent{}, err
	}
	if w.Compensates != "" {
		return WriteIntent{}, invalidAt("/compensates", "is set", "it left out; only the engine sets it")
	}
	if err := w.Validate(); err != nil {
		return WriteIntent{}, err
	}
	return w, nil
}

// DecodeStored reads an intent that [WriteIntent.Encode] wrote. It is as
// strict as [Decode] and permits compensates.
func DecodeStored(data []byte) (WriteIntent, error) {
	w, err := decode(data)
	if err != nil {
		return WriteIntent{}, err
	}
	if err := w.Validate(); err != nil {
		return WriteIntent{}, err
	}
	return w, nil
}

// Encode is the canonical JSON of the intent, as the ledger keeps it: defaults
// that were left out stay out, the deadline is in UTC. [DecodeStored] reads it
// back. The error is an [InvalidError] for values that canonical JSON cannot
// hold; an intent that passed [WriteIntent.Validate] gives none.
func (w WriteIntent) Encode() ([]byte, error) {
	if !w.Deadline.IsZero() {
		w.Deadline = w.Deadline.UTC()
	}
	return Canonical(w)
}

func decode(data []byte) (WriteIntent, error) {
	if len(data) > MaxSize {
		return WriteIntent{}, invalidAt("", fmt.Sprintf("has %d bytes", len(data)), fmt.Sprintf("at most %d", MaxSize))
	}
	if err := scan(data); err != nil {
		return WriteIntent{}, err
	}
	var w WriteIntent
	if err := json.Unmarshal(data, &w, decodeOptions); err != nil {
		return WriteIntent{}, explain(err)
	}
	w.tidy()
	return w, nil
}

// tidy gives every intent of one meaning one form in memory.
func (w *WriteIntent) tidy() {
	for _, f := range []*Fields{&w.Key, &w.Expect, &w.Payload, &w.Require} {
		if len(*f) == 0 {
			*f = nil
		}
	}
	if len(w.Absent) == 0 {
		w.Absent = nil
	}
	if len(w.Ignore) == 0 {
		w.Ignore = nil
	}
	if len(w.Compare) == 0 {
		w.Compare = nil
	}
	if !w.Deadline.IsZero() {
		w.Deadline = w.Deadline.UTC()
	}
}

// scan looks at the tokens before anything is built from them: the syntax, the
// depth, and nulls where only an omission means "default".
func scan(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if kind := dec.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return invalidAt("", "is "+kindName(kind), "an object")
	}
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) && dec.InputOffset() > 0 && dec.StackDepth() == 0 {
			return nil
		}
		if err != nil {
			return explain(err)
		}
		if dec.StackDepth() > MaxDepth {
			return invalidAt(dec.StackPointer(), "is nested too deep", fmt.Sprintf("at most %d levels", MaxDepth))
		}
		if token.Kind() == jsontext.KindNull && !mayBeNull(dec.StackPointer()) {
			return invalidAt(dec.StackPointer(), "is null", "a value, or the member left out")
		}
		if dec.StackDepth() == 0 && len(bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")) > 0 {
			return invalidAt("", "is followed by more text", "one object and nothing after it")
		}
	}
}

// mayBeNull: inside the four kinds of fields null is a value like others.
func mayBeNull(at Pointer) bool {
	first, rest, nested := strings.Cut(strings.TrimPrefix(string(at), "/"), "/")
	_ = rest
	switch first {
	case "key", "expect", "payload", "require":
		return nested
	}
	return false
}

func decodeFields(dec *jsontext.Decoder, f *Fields) error {
	if dec.PeekKind() == jsontext.KindNull {
		*f = nil
		return dec.SkipValue()
	}
	var m map[string]any
	if err := json.UnmarshalDecode(dec, &m); err != nil {
		return err
	}
	*f = m
	return nil
}

func decodeAny(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported
	}
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*v = stdjson.Number(text.String())
	return nil
}

// decodeInt takes every way of writing a whole number (1, 1.0, 1e0), since
// they are the same number, here as in the digest and in JSON Schema.
func decodeInt(dec *jsontext.Decoder, i *int) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported
	}
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	d, ok := parseDecimal(stdjson.Number(text.String()))
	if !ok || d.exponent < 0 || len(d.digits)+d.exponent > 18 {
		return &json.SemanticError{JSONKind: jsontext.KindNumber, JSONValue: text.Clone(), GoType: reflect.TypeFor[int](), Err: errNoInt}
	}
	n, err := strconv.Atoi("0" + d.digits + strings.Repeat("0", d.exponent))
	if d.negative {
		n = -n
	}
	*i = n
	return err
}

var errNoInt = errors.New("no whole number of at most 18 digits")

// explain turns an error of the JSON library into problem and remedy.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return invalidAt(syntactic.JSONPointer, "is there twice", "each member once")
	case errors.As(err, &syntactic):
		return invalidAt(syntactic.JSONPointer, fmt.Sprintf("is not valid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err), "JSON (RFC 8259) in UTF-8")
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return invalidAt(semantic.JSONPointer, "is not a member of an intent", "one of "+knownMembers(semantic.JSONPointer))
	case errors.As(err, &semantic):
		return invalidAt(semantic.JSONPointer, wrongType(semantic), wantType(semantic.GoType))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalidAt("", "ends too early", "one complete JSON object")
	}
	return invalidAt("", fmt.Sprintf("cannot be decoded: %v", err), "one JSON object")
}

func wrongType(e *json.SemanticError) string {
	if len(e.JSONValue) > 0 {
		return "is " + clip(e.JSONValue.String())
	}
	return "is " + kindName(e.JSONKind)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return "of another type"
}

func wantType(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	if t.PkgPath() == "time" && t.Name() == "Time" {
		return `a time in RFC 3339 ("2026-01-31T18:00:00Z")`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another type"
}

// knownMembers lists what may stand where an unknown member stood.
func knownMembers(at Pointer) string {
	t := reflect.TypeFor[WriteIntent]()
	if at.Parent() != "" {
		t = reflect.TypeFor[Rule]()
	}
	var names []string
	for field := range t.Fields() {
		if name := jsonName(field); name != "compensates" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// jsonName is the member name of a struct field.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
