package orders

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
)

// overlay is a copy of an object with some members set. Objects inside are
// overlaid in their turn; null is a value like any other.
func overlay(under, over map[string]any) map[string]any {
	all := maps.Clone(under)
	if all == nil {
		all = map[string]any{}
	}
	for name, v := range over {
		was, okWas := all[name].(map[string]any)
		is, okIs := v.(map[string]any)
		if okWas && okIs {
			v = overlay(was, is)
		}
		all[name] = v
	}
	return all
}

// without is a copy of an object that lacks what the path names.
func without(object map[string]any, path []string) map[string]any {
	all := maps.Clone(object)
	if len(path) == 1 {
		delete(all, path[0])
		return all
	}
	if inner, ok := all[path[0]].(map[string]any); ok {
		all[path[0]] = without(inner, path[1:])
	}
	return all
}

// alter returns the fields as they get stored.
func alter(fields intent.Fields, met hits) intent.Fields {
	stored := maps.Clone(fields)
	if f, ok := met.get(DroppedField); ok {
		delete(stored, choose(fields, f.Field, func(any) bool { return true }))
	}
	if f, ok := met.get(NormalisedField); ok {
		name := choose(stored, f.Field, func(v any) bool { return normalise(v, f.How) != v })
		if v, ok := stored[name]; ok {
			stored[name] = normalise(v, f.How)
		}
	}
	return stored
}

// choose returns the field that is named, or else the last that will do. The
// key is never chosen: an order that lost it would be another one.
func choose(fields intent.Fields, named string, will func(any) bool) string {
	if named != "" {
		return named
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(fields))) {
		v := fields[name]
		_, isMap := v.(map[string]any)
		_, isList := v.([]any)
		if name != fieldOrderID && !isMap && !isList && will(v) {
			return name
		}
	}
	return ""
}

func normalise(v any, how string) any {
	switch v := v.(type) {
	case string:
		switch how {
		case "trim":
			return strings.TrimSpace(v)
		case "lower":
			return strings.ToLower(v)
		case "", "upper":
			return strings.ToUpper(v)
		}
	case json.Number:
		if how == "string" {
			return v.String()
		}
	}
	return v
}
