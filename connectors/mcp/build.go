package mcp

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// build makes the arguments of a call: those that the intent carries, or those
// that follow from its key and what it expects.
func (w *write) build(in intent.WriteIntent) (intent.Fields, error) {
	given, err := carriedBy(in)
	if err != nil || given != nil {
		return given, err
	}
	for _, s := range w.expect {
		if s.replace != nil {
			return nil, noPlace("/payload/"+carried, "/payload has no %s: the tool %s cannot be called without", carried, w.tool)
		}
	}
	if w.kind.each {
		return w.buildEach(in)
	}
	args := map[string]any{}
	for _, name := range w.kind.keys {
		if s := w.key[name]; s.argument() && !s.path.put(args, in.Key[name]) {
			return nil, noPlace("/key/"+name, "/key/%s has no place in the arguments of %s", name, w.tool)
		}
	}
	for _, part := range []struct {
		name   string
		fields intent.Fields
	}{{"expect", in.Expect}, {"payload", in.Payload}} {
		for _, name := range slices.Sorted(maps.Keys(part.fields)) {
			if err := w.place(args, in, part.name, name, part.fields[name]); err != nil {
				return nil, err
			}
		}
	}
	return args, nil
}

// place puts one field into the arguments.
func (w *write) place(args map[string]any, in intent.WriteIntent, part, name string, v any) error {
	s, known := w.expect[name]
	key, inKey := in.Key[name]
	switch {
	case inKey && declared.Same(key, v):
		return nil
	case known && s.fixed && declared.Same(s.value, v):
		return nil
	case known && s.before != "":
		return nil
	case known && s.argument() && s.path.put(args, v):
		return nil
	case known && s.fixed:
		return misfit("/"+part+"/"+name, s.value, "/%s/%s cannot be chosen: %s always has it otherwise", part, name, w.tool)
	}
	return noPlace("/"+part+"/"+name, "/%s/%s has no place in the arguments of %s; it has %s", part, name, w.tool, listOf(w.expect))
}

func listOf(m map[string]source) string {
	text := ""
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if text == "" {
		return "none"
	}
	return text
}

// carriedBy is the arguments that an intent carries, nil for none.
func carriedBy(in intent.WriteIntent) (intent.Fields, error) {
	if v, there := in.Payload[carried]; there {
		m, ok := object(v)
		if !ok || len(in.Payload) > 1 {
			return nil, noPlace("/payload/"+carried, "/payload/%s is no object, or does not stand alone", carried)
		}
		return maps.Clone(m), nil
	}
	v, there := in.Key[carried]
	if !there {
		return nil, nil
	}
	var args intent.Fields
	text, ok := v.(string)
	if !ok || json.Unmarshal([]byte(text), &args) != nil || args == nil {
		return nil, aboutText("/key/"+carried, v, "{}", arguments("/key/%s is no JSON object as text", carried))
	}
	return args, nil
}

// aboutText is an error about the value at a place that accepts other texts, such as the example,
// and nothing else.
func aboutText(path string, v any, example string, err error) error {
	if _, isText := v.(string); isText {
		return connectors.WrongValue(path, example, err)
	}
	return connectors.WrongField(path, err)
}

// buildEach makes the list of records of a call.
func (w *write) buildEach(in intent.WriteIntent) (intent.Fields, error) {
	all, err := w.kind.keysOf(in)
	if err != nil {
		return nil, err
	}
	records, _ := object(in.Expect[eachRecords])
	var outers, inners []any // inners of the last outer, where there are two levels
	for i, e := range all {
		fields, _ := object(records[e.label])
		inner, outer, err := w.raise(e, fields)
		if err != nil {
			return nil, err
		}
		if !w.within.set {
			outers = append(outers, inner)
			continue
		}
		if i > 0 && len(outers) > 0 && w.joins(outers[len(outers)-1], outer) {
			inners = append(inners, inner)
		} else {
			inners = []any{inner}
			outers = append(outers, outer)
		}
		if !w.within.put(outers[len(outers)-1].(map[string]any), inners) {
			return nil, arguments("%s has no place in the arguments of %s", w.within.text(), w.tool)
		}
	}
	args := map[string]any{}
	if !w.each.put(args, outers) {
		return nil, arguments("%s has no place in the arguments of %s", w.each.text(), w.tool)
	}
	return args, nil
}

// joins reports whether a record is in the same outer element as the one before it.
func (w *write) joins(last, next any) bool {
	without := map[string]any{}
	for name, v := range last.(map[string]any) {
		if len(w.within.names) != 1 || name != w.within.names[0] {
			without[name] = v
		}
	}
	return declared.Same(without, next)
}

// raise makes the element of one record, and what is around it.
func (w *write) raise(e element, fields map[string]any) (inner any, outer any, err error) {
	in, out := map[string]any{}, map[string]any{}
	var whole any
	put := func(s source, name string, v any) error {
		switch {
		case !s.argument():
			return nil
		case s.outer && s.path.put(out, v):
			return nil
		case !s.outer && len(s.path.names) == 0:
			whole = v
			return nil
		case !s.outer && s.path.put(in, v):
			return nil
		}
		return arguments("%s has no place in the arguments of %s", name, w.tool)
	}
	for _, name := range w.kind.keys {
		if err := put(w.key[name], name, e.key[name]); err != nil {
			return nil, nil, err
		}
	}
	for name, v := range fields {
		if _, isKey := e.key[name]; isKey {
			continue
		}
		s, known := w.expect[name]
		if !known {
			return nil, nil, arguments("/expect/%s/%s/%s has no place in the arguments of %s", eachRecords, e.label, name, w.tool)
		}
		if err := put(s, name, v); err != nil {
			return nil, nil, err
		}
	}
	if whole != nil {
		return whole, out, nil
	}
	return in, out, nil
}
