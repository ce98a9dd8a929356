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

// Tells reports whether a name, which is kept and shown as it is, tells a
// sensitive value of a tenant.
func (s *Store) Tells(tenant, name string) bool { return s.vault.Scope(tenant, "").Tells(name) }

// Clean takes sensitive values out of what v points to, at any depth: those that
// intents mark, those that destinations do, and what looks like a pattern. In
// sentences and documents stand digests then; words of a type of their own, such
// as states, and times stay. What a field names that is called so (ID, URL, Key,
// Digest) is a name: a value of one to three letters, which is part of many of them,
// counts only where it is all of it.
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

// cleaner walks values.
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
			if f := v.Type().Field(i); f.IsExported() && !(names.MatchString(f.Name) && c.names(v.Field(i))) {
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

// names are the fields that hold a name, or a list of them.
var names = regexp.MustCompile(`(ID|IDs|URL|Key|Digest)$`)

// names reports whether a field holds names that tell nothing.
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

// any is a value behind an interface: a clean copy takes its place.
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

// shownValue is a decoded value with its tokens as they are shown.
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

// document is a JSON document as it may be shown; one without anything sensitive
// stays as it is, to the byte.
func (c cleaner) document(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	sealed, err := c.scope.SealDocument(raw)
	switch {
	case err != nil: // no JSON, or nothing that can be sealed: it is a text then
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
