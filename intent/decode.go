package intent

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

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
		json.UnmarshalFromFunc(decodeTime),
	)),
)

// Decode parses an intent from outside, strictly, and validates it. It refuses unknown and
// repeated members (at every depth), invalid UTF-8, text after the object, more than [MaxSize]
// bytes or [MaxDepth] levels, null and "" for anything but a value inside key, expect, payload
// or require, a count of 0, and a compensates, which only the engine sets. Numbers keep their
// exact value and get the spelling of [WriteIntent.Encode] (1.50 becomes 1.5), so that an
// intent is the same when it arrives and when it is read from the ledger.
//
// Every error is an [InvalidError] and names the place.
func Decode(data []byte) (WriteIntent, error) {
	w, err := decode(data)
	if err != nil {
		return WriteIntent{}, err
	}
	if err := w.fromOutside(); err != nil {
		return WriteIntent{}, err
	}
	return w, nil
}

func (w WriteIntent) fromOutside() error {
	if w.Compensates != "" {
		return invalidAt("/compensates", "is set", "it left out; only the engine sets it")
	}
	return nil
}

// Parse is [Decode] without the validation, for an intent in which something is filled in before
// [WriteIntent.ValidForm] validates it. Its numbers stay as they are written.
func Parse(data []byte) (WriteIntent, error) {
	if err := strict(data); err != nil {
		return WriteIntent{}, err
	}
	w, err := parse(data)
	if err == nil {
		err = w.fromOutside()
	}
	if err != nil {
		return WriteIntent{}, err
	}
	return w, nil
}

// DecodeStored parses the output of [WriteIntent.Encode]. It is as strict as [Decode] and
// permits compensates.
func DecodeStored(data []byte) (WriteIntent, error) {
	return decode(data)
}

// StoredKey returns the business key in the output of [WriteIntent.Encode], without decoding the
// rest. Nil if there is no object as the key.
func StoredKey(data []byte) Fields {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		if name.String() != "key" {
			if d.SkipValue() != nil {
				return nil
			}
			continue
		}
		var key Fields
		if v, err := d.ReadValue(); err != nil || key.UnmarshalJSON(v) != nil {
			return nil
		}
		return key
	}
	return nil
}

// Encode returns the canonical JSON of the intent, as the ledger stores it: defaults that were
// left out stay out, and the deadline is in UTC. [DecodeStored] reads it back. The error is an
// [InvalidError] for values that canonical JSON cannot hold; an intent that passed
// [WriteIntent.Validate] causes none.
func (w WriteIntent) Encode() ([]byte, error) {
	if !w.Deadline.IsZero() {
		w.Deadline = w.Deadline.UTC()
	}
	return w.canonical()
}

// strict refuses a text before anything is built from it.
func strict(data []byte) error {
	if len(data) > MaxSize {
		return invalidAt("", fmt.Sprintf("has %d bytes", len(data)), fmt.Sprintf("at most %d", MaxSize))
	}
	return scan(data)
}

func decode(data []byte) (WriteIntent, error) {
	if err := strict(data); err != nil {
		return WriteIntent{}, err
	}
	w, err := parse(data)
	if err == nil {
		err = w.Validate()
	}
	if err != nil {
		return WriteIntent{}, err
	}
	w.respell()
	return w, nil
}

// parse decodes an intent, and checks only its types.
func parse(data []byte) (w WriteIntent, err error) {
	if err := json.Unmarshal(data, &w, decodeOptions); err != nil {
		return w, explain(err)
	}
	w.tidy()
	return w, nil
}

// tidy gives equivalent intents one form in memory.
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
	if len(w.Sensitive) == 0 {
		w.Sensitive = nil
	}
	if len(w.Context) == 0 {
		w.Context = nil
	}
	if !w.Deadline.IsZero() {
		w.Deadline = w.Deadline.UTC()
	}
}

// respell writes the numbers as [WriteIntent.Encode] does.
func (w *WriteIntent) respell() {
	for _, part := range w.parts() {
		respell(map[string]any(part.fields))
	}
}

func respell(v any) any {
	switch v := v.(type) {
	case stdjson.Number:
		if text, err := canonical(v); err == nil {
			return stdjson.Number(text)
		}
	case map[string]any:
		for name, member := range v {
			v[name] = respell(member)
		}
	case []any:
		for i, e := range v {
			v[i] = respell(e)
		}
	}
	return v
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

// decodeInt accepts every form of a whole number (1, 1.0, 1e0), since they are the same number,
// as in the digest and in JSON Schema.
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

// decodeTime accepts only RFC 3339. It refuses the year 1 of Go's zero time: it would mean "no
// deadline", and its sender may have meant a deadline long past.
func decodeTime(dec *jsontext.Decoder, t *time.Time) error {
	if dec.PeekKind() != jsontext.KindString {
		return errors.ErrUnsupported
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := token.String()
	if *t, err = time.Parse(time.RFC3339Nano, text); err != nil || t.IsZero() || !timeExpr.MatchString(text) {
		quoted, _ := jsontext.AppendQuote(nil, clip(text))
		return &json.SemanticError{JSONKind: jsontext.KindString, JSONValue: quoted, GoType: reflect.TypeFor[time.Time](), Err: errNoTime}
	}
	return nil
}

var (
	errNoInt  = errors.New("no whole number of at most 18 digits")
	errNoTime = errors.New("no time in RFC 3339")
)
