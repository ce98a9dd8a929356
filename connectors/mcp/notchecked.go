package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// unchecked is an argument that is sent and never compared, and the line of the contract that
// declares it.
type unchecked struct {
	path path
	line int
}

// covered lists the paths whose values are compared or used by readback: into the arguments, or
// into one record of them where there are several.
func (w *write) covered() []path {
	all := []path{w.ref, w.stamp, w.idempotency}
	if w.passes != nil {
		all = append(all, w.passes.argument)
	}
	for _, sources := range []map[string]source{w.key, w.expect, w.require} {
		for _, s := range sources {
			switch {
			case s.replace != nil:
				all = append(all, s.replace.each)
			case !s.outer:
				all = append(all, s.path)
			}
		}
	}
	return slices.DeleteFunc(all, func(p path) bool { return !p.set })
}

// notCompared lists the arguments that no read is compared with, as JSON Pointers:
// those that the contract lists, and the others.
func (w *write) notCompared(args map[string]any) (listed, others []string) {
	var all []path
	for _, u := range w.notChecked {
		all = append(all, u.path)
	}
	found := map[string]bool{} // whether the contract lists it
	reading := func(at []string, doc any, covered ...path) {
		uncovered(nil, doc, append(covered, all...), func(names []string) { found[pointer(at, names)] = false })
		for _, p := range all {
			if _, there := p.get(doc); there && len(p.names) > 0 {
				found[pointer(at, p.names)] = true
			}
		}
	}
	if !w.each.set {
		reading(nil, args, w.covered()...)
	} else {
		around := []path{w.each}
		if w.passes != nil {
			around = append(around, w.passes.argument)
		}
		reading(nil, args, around...)
		elements, _ := listAt(args, w.each)
		for _, e := range elements {
			if !w.within.set {
				reading(w.each.names, e, w.covered()...)
				continue
			}
			outer := []path{w.within}
			for _, sources := range []map[string]source{w.key, w.expect} {
				for _, s := range sources {
					if s.outer {
						outer = append(outer, s.path)
					}
				}
			}
			reading(w.each.names, e, outer...)
			inner, _ := listAt(e, w.within)
			for _, i := range inner {
				reading(slices.Concat(w.each.names, w.within.names), i, w.covered()...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name] {
			listed = append(listed, name)
		} else {
			others = append(others, name)
		}
	}
	return listed, others
}

// uncovered visits the members of a document that no path leads to or into.
func uncovered(at []string, doc any, covered []path, visit func([]string)) {
	below := len(at) == 0
	for _, p := range covered {
		if len(p.names) <= len(at) && slices.Equal(p.names, at[:len(p.names)]) {
			return
		}
		below = below || len(p.names) > len(at) && slices.Equal(p.names[:len(at)], at)
	}
	if list, ok := doc.([]any); ok && below && len(at) > 0 {
		for i, e := range list {
			uncovered(append(slices.Clone(at), strconv.Itoa(i)), e, covered, visit)
		}
		return
	}
	m, ok := doc.(map[string]any)
	if !ok || !below {
		visit(at)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		uncovered(append(slices.Clone(at), name), m[name], covered, visit)
	}
}

func pointer(parts ...[]string) string {
	var p intent.Pointer
	for _, name := range slices.Concat(parts...) {
		p = p.AppendToken(name)
	}
	return string(p)
}

// Refused lists the arguments of a write tool, as its server declares them, with which a call is
// refused: nothing compares them, and the contract does not exempt them.
func (c *Contract) Refused(t *sdk.Tool) []string {
	w, writes := c.tools[t.Name]
	schema, err := argumentsOf(t)
	if !writes || err != nil {
		return nil
	}
	args, _ := schema.sample().(map[string]any)
	_, others := w.notCompared(args)
	return others
}

// schema is the part of a JSON Schema that lists the arguments.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Type       any                `json:"type"`

	open   bool // it allows members that it does not declare here, in words of its own
	closed bool // it forbids them
}

// elsewhere are the words of JSON Schema that can declare more members.
var elsewhere = []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "additionalProperties"}

func argumentsOf(t *sdk.Tool) (*schema, error) {
	s := new(schema)
	text, err := json.Marshal(t.InputSchema)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("the properties of its input schema: %w", err)
	}
	return s, nil
}

// UnmarshalJSON reads a schema of true or false as one without members.
func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain schema
	if err := json.Unmarshal(text, (*plain)(s)); err != nil {
		return err
	}
	var words map[string]json.RawMessage
	if err := json.Unmarshal(text, &words); err != nil {
		return err
	}
	if s.closed = string(words["additionalProperties"]) == "false"; s.closed {
		delete(words, "additionalProperties")
	}
	s.open = slices.ContainsFunc(elsewhere, func(word string) bool { return words[word] != nil })
	return nil
}

// sample is a value with every member that the schema names. An object without further schema has
// no members.
func (s *schema) sample() any {
	switch {
	case s == nil:
		return map[string]any{}
	case s.Items != nil:
		return []any{s.Items.sample()}
	}
	all := map[string]any{}
	for name, below := range s.Properties {
		all[name] = below.sample()
	}
	return all
}

// NotChecked lists the arguments of a tool that are sent and never compared.
func (c *Contract) NotChecked(tool string) []string {
	w, ok := c.tools[tool]
	if !ok {
		return nil
	}
	var all []string
	for _, u := range w.notChecked {
		all = append(all, pointer(u.path.names))
	}
	return all
}

// NotChecked lists what a call sends and no read is compared with.
func (c *Connector) NotChecked(in intent.WriteIntent) []string {
	_, w, err := c.find(in)
	if err != nil {
		return nil // of a tool without a contract nothing is ever verified
	}
	var all []string
	for name := range in.Payload {
		if name != carried {
			all = append(all, pointer([]string{name}))
		}
	}
	if args, err := carriedBy(in); err == nil {
		listed, others := w.notCompared(args)
		all = append(all, append(listed, others...)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// knowsArguments fails with [ErrWithdrawn] where the contract excuses an argument
// from being compared that the tool does not have: a name that is mistyped excuses
// nothing, and the one that was meant is refused at every call. Where one call writes
// several records, the name may be of the arguments or of an element of the list.
func (w *write) knowsArguments(t *sdk.Tool) error {
	if len(w.notChecked) == 0 {
		return nil
	}
	top, err := argumentsOf(t)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrWithdrawn, t.Name, err)
	}
	for _, u := range w.notChecked {
		level, in := top, path{}
		known, have := level.has(u.path.names)
		wanted := []string{strings.Join(have, ", ")}
		for _, list := range []path{w.each, w.within} {
			if known || !list.set {
				break
			}
			level, in.names = level.elementAt(list.names), slices.Concat(in.names, list.names)
			known, have = level.has(u.path.names)
			if len(have) > 0 {
				wanted = append(wanted, strings.Join(have, ", ")+" in an element of "+in.text())
			}
		}
		if !known {
			return fmt.Errorf("%w: %s: line %d of the contract has not_checked: %s, which is no argument of the tool; want one of %s", ErrWithdrawn, t.Name, u.line, u.path.text(), strings.Join(wanted, ", or of "))
		}
	}
	return nil
}

// has reports whether a value of the schema can have a member: one that is declared,
// or any where the schema does not declare all. Otherwise it lists those that are.
func (s *schema) has(names []string) (known bool, declared []string) {
	for i, name := range names {
		switch {
		case s == nil || s.open || s.isObject() && !s.closed && len(s.Properties) == 0:
			return true, nil
		case s.Items != nil && name == firstElement:
			s = s.Items
			continue
		case !s.isObject() && i > 0:
			return false, []string{path{names: names[:i]}.text()}
		case !s.isObject():
			return false, nil
		}
		below, there := s.Properties[name]
		if !there {
			for _, other := range slices.Sorted(maps.Keys(s.Properties)) {
				declared = append(declared, path{names: append(slices.Clone(names[:i]), other)}.text())
			}
			return false, declared
		}
		s = below
	}
	return true, nil
}

// isObject reports whether a value of the schema may be an object.
func (s *schema) isObject() bool {
	switch t := s.Type.(type) {
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return s.Items == nil
}

// elementAt is the schema of the elements of a list, nil where it is not declared.
func (s *schema) elementAt(names []string) *schema {
	for _, name := range names {
		if s == nil {
			return nil
		}
		s = s.Properties[name]
	}
	if s == nil {
		return nil
	}
	return s.Items
}
