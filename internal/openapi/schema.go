package openapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// deepest bounds how far schemas are followed: they may contain themselves.
const deepest = 8

// member is one property of an object.
type member struct {
	name     string
	schema   *openapi3.Schema
	required bool
}

// members are the properties of an object, required ones first; chosen means that one of several
// alternatives was taken.
func members(s *openapi3.Schema) (all []member, chosen bool) {
	found := map[string]member{}
	chosen = collect(s, found, 0)
	all = slices.SortedFunc(maps.Values(found), func(a, b member) int {
		if a.required != b.required {
			return map[bool]int{true: -1, false: 1}[a.required]
		}
		return strings.Compare(a.name, b.name)
	})
	return all, chosen
}

func collect(s *openapi3.Schema, into map[string]member, depth int) (chosen bool) {
	if s == nil || depth > deepest {
		return false
	}
	for name, ref := range s.Properties {
		if ref != nil && ref.Value != nil && !ref.Value.Deprecated {
			m := into[name]
			into[name] = member{name, ref.Value, m.required || slices.Contains(s.Required, name)}
		}
	}
	for _, part := range s.AllOf {
		chosen = collect(part.Value, into, depth+1) || chosen
	}
	for _, name := range s.Required { // may be said apart from the property
		if m, ok := into[name]; ok {
			m.required = true
			into[name] = m
		}
	}
	for _, several := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf} {
		for _, one := range several {
			before := len(into)
			collect(one.Value, into, depth+1)
			if len(into) > before {
				chosen = chosen || len(several) > 1
				break
			}
		}
	}
	return chosen
}

// of is the member with that name.
func of(all []member, name string) (member, bool) {
	i := slices.IndexFunc(all, func(m member) bool { return m.name == name })
	if i < 0 {
		return member{}, false
	}
	return all[i], true
}

// same is the member with that name, or with the same words in another style: what is sent as To may
// be shown as to.
func same(all []member, name string) (member, bool) {
	if m, ok := of(all, name); ok {
		return m, true
	}
	return first(all, strings.Join(pieces(name), "_"))
}

// first is the first of some names that a member has, in whatever style it is spelled.
func first(all []member, names ...string) (member, bool) {
	for _, n := range names {
		for _, m := range all {
			if strings.Join(pieces(m.name), "_") == n {
				return m, true
			}
		}
	}
	return member{}, false
}

// is reports whether a schema is of that type, perhaps in one of its alternatives.
func is(s *openapi3.Schema, typ string) bool { return isDeep(s, typ, 0) }

func isDeep(s *openapi3.Schema, typ string, depth int) bool {
	if s == nil || depth > deepest {
		return false
	}
	if s.Type.Includes(typ) || s.Type == nil && typ == "object" && len(s.Properties) > 0 {
		return true
	}
	for _, part := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
		if isDeep(part.Value, typ, depth+1) {
			return true
		}
	}
	return false
}

func scalar(s *openapi3.Schema) bool {
	return is(s, "string") || is(s, "integer") || is(s, "number") || is(s, "boolean")
}

// items is the schema of the elements of a list, nil where it is none.
func items(s *openapi3.Schema) *openapi3.Schema {
	if s == nil {
		return nil
	}
	if s.Items != nil {
		return s.Items.Value
	}
	for _, part := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
		if part.Value != nil && part.Value.Items != nil {
			return part.Value.Items.Value
		}
	}
	return nil
}

// content is the schema of JSON, or else of a form.
func content(c openapi3.Content) (s *openapi3.Schema, kind string) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if m := c[name]; m != nil && (strings.HasPrefix(name, "application/json") || strings.Contains(name, "+json")) {
			return value(m.Schema), "body"
		}
	}
	if m := c["application/x-www-form-urlencoded"]; m != nil {
		return value(m.Schema), "form"
	}
	return nil, ""
}

func value(ref *openapi3.SchemaRef) *openapi3.Schema {
	if ref == nil {
		return nil
	}
	return ref.Value
}

// answer is the first answer of an operation whose status begins with a digit, or nil.
func answer(op *openapi3.Operation, digit string) *openapi3.Response {
	if op == nil || op.Responses == nil {
		return nil
	}
	all := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(status, digit) && all[status].Value != nil {
			return all[status].Value
		}
	}
	return nil
}

func answered(op *openapi3.Operation) *openapi3.Schema {
	r := answer(op, "2")
	if r == nil {
		return nil
	}
	s, kind := content(r.Content)
	if kind != "body" {
		return nil
	}
	return s
}

// ids are the names by which a record is known to its API, the likeliest first.
var ids = []string{"id", "sid", "uid", "uuid", "gid", "guid", "key", "sys_id", "message_id", "ts", "number"}

// enclosed is the object of an answer or a body that is the record, and the path to it from the root:
// an API may wrap it in one member.
func enclosed(s *openapi3.Schema, wanted ...string) (path string, record *openapi3.Schema) {
	all, _ := members(s)
	if _, ok := first(all, wanted...); ok {
		return "", s
	}
	for _, m := range all {
		if !is(m.schema, "object") {
			continue
		}
		inner, _ := members(m.schema)
		if _, ok := first(inner, wanted...); ok || len(wanted) == 0 && len(all) == 1 && len(inner) > 1 {
			return m.name, m.schema
		}
	}
	return "", s
}

// listed is where the records of an answer are, and one of them; found is false for a guess without ground.
func listed(s *openapi3.Schema, nouns []string) (path []string, record *openapi3.Schema, found bool) {
	if is(s, "array") && items(s) != nil {
		return nil, items(s), true
	}
	all, _ := members(s)
	names := append([]string{"data", "items", "results", "records", "entries", "values", "list"}, nouns...)
	var lists []member
	for _, m := range all {
		if e := items(m.schema); e != nil && is(m.schema, "array") && !scalar(e) {
			lists = append(lists, m)
		}
	}
	if m, ok := first(lists, names...); ok {
		return []string{m.name}, items(m.schema), true
	}
	if len(lists) > 0 {
		return []string{lists[0].name}, items(lists[0].schema), true
	}
	for _, m := range all { // one deeper
		inner, _ := members(m.schema)
		for _, n := range inner {
			if e := items(n.schema); e != nil && is(n.schema, "array") && !scalar(e) {
				return []string{m.name, n.name}, e, true
			}
		}
	}
	return []string{"items"}, nil, false
}

// search is the path of the first member that fits, the nearest to the root first.
func search(s *openapi3.Schema, fits func(member) bool) []string {
	type at struct {
		path []string
		s    *openapi3.Schema
	}
	for queue := []at{{nil, s}}; len(queue) > 0; queue = queue[1:] {
		here := queue[0]
		all, _ := members(here.s)
		for _, m := range all {
			path := append(slices.Clone(here.path), m.name)
			if fits(m) {
				return path
			}
			if len(path) < 3 && is(m.schema, "object") {
				queue = append(queue, at{path, m.schema})
			}
		}
	}
	return nil
}
