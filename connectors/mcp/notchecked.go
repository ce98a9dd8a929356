package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// unchecked is an argument that is sent and never compared, and the line of the
// contract that says so.
type unchecked struct {
	path path
	line int
}

// covered lists the paths whose values are compared, or mean something to readback:
// into the arguments, or into one record of them where there are several.
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
	look := func(at []string, doc any, covered ...path) {
		uncovered(nil, doc, append(covered, all...), func(names []string) { found[pointer(at, names)] = false })
		for _, p := range all {
			if _, there := p.get(doc); there && len(p.names) > 0 {
				found[pointer(at, p.names)] = true
			}
		}
	}
	if !w.each.set {
		look(nil, args, w.covered()...)
	} else {
		around := []path{w.each}
		if w.passes != nil {
			around = append(around, w.passes.argument)
		}
		look(nil, args, around...)
		elements, _ := listAt(args, w.each)
		for _, e := range elements {
			if !w.within.set {
				look(w.each.names, e, w.covered()...)
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
			look(w.each.names, e, outer...)
			inner, _ := listAt(e, w.within)
			for _, i := range inner {
				look(slices.Concat(w.each.names, w.within.names), i, w.covered()...)
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

// Refused lists the arguments of a tool that writes, as its server declares them,
// with which a call is refused: nothing compares them, and the contract does not say
// that nothing has to.
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

// schema is as much of a JSON Schema as says which arguments there are.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
}

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

// UnmarshalJSON takes a schema of true or false for one that says nothing.
func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// sample is a value with every member that the schema names. Of what it does not
// say more, the members are not known: there are none.
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
// nothing, and the one that was meant is refused at every call.
func (w *write) knowsArguments(t *sdk.Tool) error {
	if len(w.notChecked) == 0 || w.each.set { // of a list the schema names only the list
		return nil
	}
	schema, err := argumentsOf(t)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrWithdrawn, t.Name, err)
	}
	if len(schema.Properties) == 0 {
		return nil // the schema does not name the arguments
	}
	for _, u := range w.notChecked {
		if _, there := schema.Properties[u.path.names[0]]; !there {
			return fmt.Errorf("%w: %s: line %d of the contract has not_checked: %s, which is no argument of the tool; want one of %v", ErrWithdrawn, t.Name, u.line, u.path.names[0], slices.Sorted(maps.Keys(schema.Properties)))
		}
	}
	return nil
}
