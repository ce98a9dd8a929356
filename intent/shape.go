package intent

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// role is the purpose of a struct field. A role that names a part of the intent is spelled as
// its member.
type role string

const (
	roleKey     role = "key"
	roleExpect  role = "expect"
	rolePayload role = "payload"
	roleRequire role = "require"
	roleIgnore  role = "ignore"
	roleNone    role = "-"
)

// markSensitive in a tag means expect, or follows a role and a comma.
const markSensitive = "sensitive"

const wantRole = `readback:"key", "expect", "payload", "require", "ignore", "sensitive" or "-", all but the last two with ",sensitive" besides`

// shape holds the tags of a struct, by member name.
type shape struct {
	role      role
	sensitive bool
	below     map[string]*shape
}

// readTag returns the role that a tag names, and whether the tag marks the value as sensitive.
func readTag(tag string) *shape {
	if tag == markSensitive {
		return &shape{role: roleExpect, sensitive: true}
	}
	name, marked := strings.CutSuffix(tag, ","+markSensitive)
	if marked && (name == "" || name == string(roleNone)) {
		name = tag // neither is a role
	}
	return &shape{role: role(name), sensitive: marked}
}

// shapeOf reads the tags of a struct type. The problems carry the path in the
// record.
func shapeOf(t reflect.Type) (*shape, []Problem) {
	r := shapeReader{}
	s := &shape{role: roleExpect}
	r.fields(s, t, nil, true)
	return s, r.problems
}

type shapeReader struct {
	open     []reflect.Type // structs being traversed: a type may contain itself
	problems []Problem
}

// fields reads the fields of a struct into s. Embedded structs come last, so that the outer
// field of a name wins, as in JSON.
func (r *shapeReader) fields(s *shape, t reflect.Type, at *place, top bool) {
	if slices.Contains(r.open, t) {
		if tagged(t, nil) {
			r.say(at, "is of a type that holds itself and has readback tags", `readback:"-" or "ignore" on the field, or a type without tags`)
		}
		return
	}
	r.open = append(r.open, t)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	var embedded []reflect.Type
	for field := range t.Fields() {
		tag, isTagged := field.Tag.Lookup("readback")
		name := jsonName(field)
		if inner := structOf(field.Type); field.Anonymous && name == "" && inner != nil {
			if isTagged {
				r.say(at.member(field.Name), "has the readback tag on an embedded struct", "the tag on its fields")
			}
			embedded = append(embedded, inner)
			continue
		}
		if !field.IsExported() || name == "-" {
			if isTagged {
				r.say(at.member(field.Name), "has a readback tag, and JSON does not show the field", "an exported field without json:\"-\"")
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		r.field(s, field, at.member(name), tag, top)
	}
	for _, inner := range embedded {
		r.fields(s, inner, at, top)
	}
}

func (r *shapeReader) field(s *shape, field reflect.StructField, at *place, tag string, top bool) {
	if _, outer := s.below[at.name]; outer {
		return
	}
	node := readTag(tag)
	switch node.role {
	case "":
		node.role = roleExpect
	case roleExpect, roleIgnore, roleNone:
	case roleKey, rolePayload, roleRequire:
		if !top {
			r.say(at, fmt.Sprintf("has the tag readback:%q in a nested struct", tag), `"expect", "ignore" or "-" there: the nested object is one field of the record`)
		}
	default:
		r.say(at, fmt.Sprintf("has the tag readback:%q", tag), wantRole)
	}
	if s.below == nil {
		s.below = make(map[string]*shape)
	}
	s.below[at.name] = node
	if node.role == roleIgnore || node.role == roleNone {
		return
	}
	if inner := structOf(field.Type); inner != nil {
		r.fields(node, inner, at, false)
	} else if inner := elementStruct(field.Type); inner != nil && tagged(inner, nil) {
		r.say(at, "has readback tags inside an array or a map", "the tag on the array or map itself: no path names a field of every element")
	}
}

func (r *shapeReader) say(at *place, problem, want string) {
	r.problems = append(r.problems, Problem{string(at.pointer()), problem, want})
}

// tagged reports whether a struct, or one below it, has readback tags. Open lists the structs
// being traversed.
func tagged(t reflect.Type, open []reflect.Type) bool {
	if slices.Contains(open, t) {
		return false
	}
	open = append(open, t)
	for field := range t.Fields() {
		if _, ok := field.Tag.Lookup("readback"); ok {
			return true
		}
		inner := structOf(field.Type)
		if inner == nil {
			inner = elementStruct(field.Type)
		}
		if inner != nil && tagged(inner, open) {
			return true
		}
	}
	return false
}

// structOf returns the struct that JSON shows as an object of its fields, or nil: a type with
// its own JSON encoding has none.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || writesItself(reflect.PointerTo(t)) {
		return nil
	}
	return t
}

func writesItself(t reflect.Type) bool {
	for _, own := range []reflect.Type{
		reflect.TypeFor[stdjson.Marshaler](), reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[encoding.TextMarshaler](),
	} {
		if t.Implements(own) {
			return true
		}
	}
	return false
}

// elementStruct returns the struct inside arrays, slices and maps, or nil.
func elementStruct(t reflect.Type) reflect.Type {
	inside := false
	for {
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			t, inside = t.Elem(), true
		case reflect.Pointer:
			t = t.Elem()
		case reflect.Struct:
			if !inside {
				return nil
			}
			return structOf(t)
		default:
			return nil
		}
	}
}
