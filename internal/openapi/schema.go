package openapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// deepest bounds how far the parts of a schema are followed: they may contain themselves.
const deepest = 4

// member is one property of an object, or one parameter.
type member struct {
	name     string
	schema   *openapi3.Schema
	required bool
}

// flat is a schema together with its parts: all of allOf, and the first alternative that says anything.
func flat(ref *openapi3.SchemaRef, depth int) *openapi3.Schema {
	all := &openapi3.Schema{}
	if ref == nil || ref.Value == nil || depth > deepest {
		return all
	}
	*all = *ref.Value
	all.Properties, all.Required = maps.Clone(all.Properties), slices.Clone(all.Required)
	parts := slices.Clone(all.AllOf)
	for _, several := range []openapi3.SchemaRefs{all.OneOf, all.AnyOf} {
		if i := slices.IndexFunc(several, func(one *openapi3.SchemaRef) bool { return kind(flat(one, depth+1)) != "" }); i >= 0 {
			parts = append(parts, several[i])
		}
	}
	for _, part := range parts {
		p := flat(part, depth+1)
		if all.Properties == nil {
			all.Properties = openapi3.Schemas{}
		}
		maps.Copy(all.Properties, p.Properties)
		all.Required = append(all.Required, p.Required...)
		all.Type, all.Items, all.Format = cmp.Or(all.Type, p.Type), cmp.Or(all.Items, p.Items), cmp.Or(all.Format, p.Format)
		if len(all.Enum) == 0 {
			all.Enum = p.Enum
		}
	}
	return all
}

// kind is the type of what a flat schema describes, "" where it does not say.
func kind(s *openapi3.Schema) string {
	for _, typ := range s.Type.Slice() {
		if typ != "null" {
			return typ
		}
	}
	if len(s.Properties) > 0 {
		return "object"
	}
	return ""
}

func scalar(m member) bool {
	return slices.Contains([]string{"string", "integer", "number", "boolean"}, kind(m.schema))
}

// items is the schema of the elements of a list; it says nothing where that is none.
func items(s *openapi3.Schema) *openapi3.Schema { return flat(s.Items, 0) }

// members are the properties of an object, required ones first.
func members(s *openapi3.Schema) []member {
	var all []member
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			ref := s.Properties[name]
			if ref != nil && ref.Value != nil && !ref.Value.Deprecated && slices.Contains(s.Required, name) == required {
				all = append(all, member{name, flat(ref, 0), required})
			}
		}
	}
	return all
}

// first is the first of some names that a member has, in whatever style it is spelled.
func first(all []member, names ...string) (member, bool) {
	for _, n := range names {
		if i := slices.IndexFunc(all, func(m member) bool { return n != "" && snake(m.name) == n }); i >= 0 {
			return all[i], true
		}
	}
	return member{}, false
}

// same is the member with that name, or with the same words in another style: what is sent as To may
// be shown as to.
func same(all []member, name string) (member, bool) {
	if i := slices.IndexFunc(all, func(m member) bool { return m.name == name }); i >= 0 {
		return all[i], true
	}
	return first(all, snake(name))
}

// content is the flat schema of JSON, or else of a form; nil for neither.
func content(c openapi3.Content) (s *openapi3.Schema, form bool) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != nil && (strings.HasPrefix(name, "application/json") || strings.Contains(name, "+json")) {
			return flat(c[name].Schema, 0), false
		}
	}
	if m := c["application/x-www-form-urlencoded"]; m != nil {
		return flat(m.Schema, 0), true
	}
	return nil, false
}

// ids are the names by which a record is known to its API, the likeliest first.
var ids = []string{"id", "sid", "uid", "uuid", "gid", "guid", "key", "sys_id", "message_id", "ts", "number"}

// enclosed is the record in an answer or a body, and the member that an API may wrap it in: one that has
// a wanted member, or, where none is named, that is alone.
func enclosed(s *openapi3.Schema, wanted ...string) (wrapper string, record *openapi3.Schema) {
	all := members(s)
	if _, ok := first(all, wanted...); ok {
		return "", s
	}
	for _, m := range all {
		inner := members(m.schema)
		if _, ok := first(inner, wanted...); ok || len(wanted) == 0 && len(all) == 1 && len(inner) > 1 {
			return m.name, m.schema
		}
	}
	return "", s
}

// search is the JSONPath of the first member that fits, of the root or of one of its members; "" for none.
func search(s *openapi3.Schema, fits func(member) bool) (string, member) {
	all := members(s)
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return "$" + step(all[i].name), all[i]
	}
	for _, m := range all {
		inner := members(m.schema)
		if i := slices.IndexFunc(inner, fits); i >= 0 {
			return "$" + step(m.name) + step(inner[i].name), inner[i]
		}
	}
	return "", member{}
}
