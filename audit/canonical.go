package audit

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBuffer bounds a buffer that is kept for the next digest.
const maxBuffer = 64 << 10

// canonical is the canonical JSON (RFC 8785) of a struct, or of what a pointer to one points to.
// The struct may hold text, bools, whole numbers, times and bytes, lists of such structs, and
// such structs. The result equals that of slowly, made in one pass, because each event of each
// write is digested. It is written into buf, which is empty, if it is large enough.
func canonical(buf []byte, what any) ([]byte, error) {
	if text, err := appendStruct(buf, reflect.Indirect(reflect.ValueOf(what))); err == nil {
		return text, nil
	}
	return slowly(what)
}

// buffers hold canonical JSON that is only digested.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// digest is the SHA-256, in hex, over the canonical JSON of a struct, or of what a pointer to one
// points to.
func digest(what any) (string, error) {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	text, err := canonical((*b)[:0], what)
	if err != nil {
		return "", err
	}
	if cap(text) <= maxBuffer {
		*b = text
	}
	return rawDigest(text), nil
}

// slowly makes encoding/json's output of any value canonical.
func slowly(what any) ([]byte, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	value := jsontext.Value(text)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("audit: canonical JSON: %w", err)
	}
	return value, nil
}

// errSlowly reports that a value needs slowly: text that is not UTF-8, a number that a double
// cannot hold, a type with its own encoding.
var errSlowly = errors.New("this is made canonical slowly")

// member is a member of a struct, by its JSON name.
type member struct {
	name  string
	quote []byte // the name, quoted, and a colon
	field int
	omits rune // 'e': omitted if empty, 'z': omitted if zero, 0: never
	write func(b []byte, v reflect.Value) ([]byte, error)
}

var shapes sync.Map // []member by reflect.Type

// membersOf returns the members of a struct, in RFC 8785's order of their names, all of which are
// ASCII.
func membersOf(t reflect.Type) []member {
	if known, ok := shapes.Load(t); ok {
		return known.([]member)
	}
	var all []member
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		m := member{name: name, quote: strconv.AppendQuoteToASCII(nil, name), field: i, write: writerOf(f.Type)}
		m.quote = append(m.quote, ':')
		switch {
		case options == "omitempty":
			m.omits = 'e'
		case options == "omitzero":
			m.omits = 'z'
		case options != "":
			m.write = writeSlowly
		}
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" {
			m.write = writeSlowly
			m.omits = 0
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	shapes.Store(t, all)
	return all
}

func appendStruct(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '{')
	first := true
	for _, m := range membersOf(v.Type()) {
		f := v.Field(m.field)
		if m.omits == 'z' && zero(f) || m.omits == 'e' && empty(f) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		if b, err = m.write(append(b, m.quote...), f); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// zero is omitzero's condition.
func zero(v reflect.Value) bool {
	if t, ok := reflect.TypeAssert[time.Time](v); ok {
		return t.IsZero()
	}
	return v.IsZero()
}

// empty is omitempty's condition.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	texterType    = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

func writerOf(t reflect.Type) func([]byte, reflect.Value) ([]byte, error) {
	switch {
	case t == timeType:
		return writeTime
	case t.Implements(marshalerType) || t.Implements(texterType) || reflect.PointerTo(t).Implements(marshalerType):
		return writeSlowly
	}
	switch t.Kind() {
	case reflect.String:
		return writeText
	case reflect.Bool:
		return func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(b, v.Bool()), nil }
	case reflect.Int, reflect.Int64:
		return writeWhole
	case reflect.Struct:
		return appendStruct
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return writeBytes
		}
		if t.Elem().Kind() == reflect.Struct && t.Elem() != timeType {
			return writeList
		}
	}
	return writeSlowly
}

func writeSlowly(b []byte, _ reflect.Value) ([]byte, error) { return b, errSlowly }

func writeText(b []byte, v reflect.Value) ([]byte, error) { return jsontext.AppendQuote(b, v.String()) }

func writeWhole(b []byte, v reflect.Value) ([]byte, error) {
	const exact = 1 << 53
	if n := v.Int(); n < exact && n > -exact {
		return strconv.AppendInt(b, n, 10), nil
	}
	return b, errSlowly
}

func writeTime(b []byte, v reflect.Value) ([]byte, error) {
	t, ok := reflect.TypeAssert[time.Time](v)
	if !ok {
		return b, errSlowly
	}
	b, err := t.AppendText(append(b, '"'))
	return append(b, '"'), err
}

func writeBytes(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	b = base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes())
	return append(b, '"'), nil
}

func writeList(b []byte, v reflect.Value) (_ []byte, err error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendStruct(b, v.Index(i)); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}
