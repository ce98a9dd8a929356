package sealed

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/redact"
)

// Reveals reports whether a name, which is stored and shown in the clear, contains a sensitive
// value of a tenant.
func (s *Store) Reveals(tenant, name string) bool { return s.vault.Scope(tenant, "").Reveals(name) }

// Digests are those by which a search finds the sealed values that are a text.
func (s *Store) Digests(tenant, text string) []string { return s.vault.Digests(tenant, text) }

// Clean removes sensitive values from what v points to, at any depth: those that intents mark,
// those that destinations mark, and those that match a pattern. In sentences and documents it
// puts digests in their place; words of a type of their own, such as states, and times are
// unchanged. A field whose name says so (ID, URL, Key, Digest) holds a name: there, a value of
// one to three letters, which is part of many names, counts only if it is the whole name. A plain
// digest of a step's input is replaced by a keyed one.
func (s *Store) Clean(tenant string, v any, of ...intent.WriteIntent) {
	var marks [][]string
	for _, w := range of {
		marks = append(marks, w.Sensitive, s.marks(w.Destination, w.Kind))
	}
	scope := s.vault.Scope(tenant, "", marks...)
	if scope.Idle() {
		return
	}
	for _, w := range of {
		scope.LearnIntent(w)
	}
	cleaner{scope}.value(reflect.ValueOf(v))
}

// cleaner traverses values.
type cleaner struct{ scope *redact.Scope }

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[string]()
	timeType = reflect.TypeFor[time.Time]()
)

func (c cleaner) value(v reflect.Value) {
	switch {
	case !v.IsValid() || v.Type() == timeType:
	case v.Type() == rawType && v.CanSet():
		v.SetBytes(c.document(v.Bytes()))
	case v.Type() == textType && v.CanSet():
		v.SetString(c.scope.Text(v.String()))
	case v.Kind() == reflect.Pointer:
		c.value(v.Elem())
	case v.Kind() == reflect.Interface && !v.IsNil() && v.CanSet():
		c.any(v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported():
			case c.fingerprints(f.Name, v.Field(i)):
				v.Field(i).SetString(c.scope.Named(v.Field(i).String()))
			case !names.MatchString(f.Name) || !c.names(v.Field(i)):
				c.value(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice, v.Kind() == reflect.Array:
		for i := range v.Len() {
			c.value(v.Index(i))
		}
	case v.Kind() == reflect.Map:
		c.members(v)
	}
}

// names are the fields that hold a name, or a list of names.
var names = regexp.MustCompile(`(ID|IDs|URL|Key|Digest)$`)

// fingerprint is the plain digest of a step's input.
var fingerprint = regexp.MustCompile(`^[0-9a-f]{64}$`)

// fingerprints reports whether a field holds the digest of a step's input, or of a part of it
// that was another before: a guess could be tested against it.
func (c cleaner) fingerprints(name string, v reflect.Value) bool {
	return (name == "Digest" || name == "Expected" || name == "Received") && v.Type() == textType && v.CanSet() && fingerprint.MatchString(v.String())
}

// names reports whether a field holds names that reveal nothing.
func (c cleaner) names(v reflect.Value) bool {
	switch {
	case v.Type() == textType:
		return !c.scope.Names(v.String())
	case v.Kind() == reflect.Slice && v.Type().Elem() == textType:
		for i := range v.Len() {
			if c.scope.Names(v.Index(i).String()) {
				return false
			}
		}
		return true
	}
	return false
}

// any cleans a value in an interface: it is replaced by a clean copy.
func (c cleaner) any(v reflect.Value) {
	switch one := v.Interface().(type) {
	case string:
		v.Set(reflect.ValueOf(c.scope.Text(one)))
	case json.Number, []any, map[string]any:
		if clean, err := c.scope.SealValue("", one); err == nil {
			v.Set(reflect.ValueOf(shownValue(clean)))
		}
	default:
		fresh := reflect.New(v.Elem().Type()).Elem()
		fresh.Set(v.Elem())
		c.value(fresh)
		v.Set(fresh)
	}
}

// shownValue returns a decoded value with its tokens in display form.
func shownValue(v any) any {
	switch v := v.(type) {
	case string:
		return redact.ShownText(v)
	case []any:
		for i := range v {
			v[i] = shownValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[redact.ShownText(name)] = shownValue(inner)
		}
		return out
	}
	return v
}

func (c cleaner) members(v reflect.Value) {
	for _, name := range v.MapKeys() {
		one := reflect.New(v.Type().Elem()).Elem()
		one.Set(v.MapIndex(name))
		c.value(one)
		v.SetMapIndex(name, one)
	}
}

// document returns a JSON document in display form. One without anything sensitive is unchanged,
// to the byte.
func (c cleaner) document(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	sealed, err := c.scope.SealDocument(raw)
	switch {
	case err != nil: // not JSON, or nothing that can be sealed: treat it as text
		return json.RawMessage(c.scope.Text(string(raw)))
	case !redact.Sealed(sealed):
		return raw
	}
	return redact.Shown(sealed)
}

// decodeExact decodes JSON with its numbers exact.
func decodeExact(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
