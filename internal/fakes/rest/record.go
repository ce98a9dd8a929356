package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// storing is a plan that leaves after where before was (nil: nothing). The member at path, names with
// dots between, can be dropped or stored in capitals.
func storing(collection, id string, before, after Object, path string, answer func(stored Object) Answer) Plan {
	p := Plan{Collection: collection, ID: id, After: after, Create: before == nil, Answer: answer}
	p.spoils(before, path)
	return p
}

// spoils makes the member at path the one that is dropped, which leaves what was there before, or
// stored in capitals.
func (p *Plan) spoils(before Object, path string) {
	names := strings.Split(path, ".")
	last := names[len(names)-1]
	at := func(o Object) map[string]any {
		m := map[string]any(o)
		for _, name := range names[:len(names)-1] {
			m, _ = m[name].(map[string]any)
		}
		return m
	}
	p.Drop = func(stored Object) { at(stored)[last] = at(before)[last] }
	p.Normalise = func(stored Object) {
		m := at(stored)
		if text, ok := m[last].(string); ok {
			m[last] = strings.ToUpper(text)
		}
	}
}

// again makes the second record of a duplicate: a copy, with what fresh gives it.
func (p Plan) again(fresh func(now View) (id string, members Object)) Plan {
	p.Duplicate = func(stored Object, now View) (string, Object) {
		id, members := fresh(now)
		maps.Copy(stored, members.Clone())
		return id, stored
	}
	return p
}

// removing is a plan after which a record is gone.
func removing(collection, id string, a Answer) Plan {
	return Plan{Collection: collection, ID: id, Answer: func(Object) Answer { return a }}
}

// shows answers with the record.
func shows(status int) func(Object) Answer {
	return func(stored Object) Answer { return Answer{Status: status, Body: stored.Shown()} }
}

// visible are the objects that pass, without the fake's own members.
func visible(all []Object, pass func(Object) bool) []Object {
	found := []Object{}
	for _, o := range all {
		if pass == nil || pass(o) {
			found = append(found, o.Shown())
		}
	}
	return found
}

// slice is a list from an offset, at most n.
func slice(all []Object, from, n int) []Object {
	from = max(0, min(from, len(all)))
	return all[from:min(len(all), from+n)]
}

// objectAt is an object within decoded JSON, nil where there is none.
func objectAt(v any, path ...any) map[string]any {
	o, _ := at(v, path...).(map[string]any)
	return o
}

// at is the value at a path of names and indexes, nil where there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, isObject := v.(map[string]any)
			if own, ok := v.(Object); ok {
				o, isObject = own, true
			}
			if !isObject {
				return nil
			}
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// textAt is the text at a path, "" where there is none.
func textAt(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

// listAt is the list at a path.
func listAt(v any, path ...any) []any {
	list, _ := at(v, path...).([]any)
	return list
}

// strs are the values of a list as text.
func strs(list []any) []string {
	all := make([]string, 0, len(list))
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// same reports whether two values are equal as text.
func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// numbered is a number of the fake's as text.
func numbered(now View) string { return fmt.Sprint(now.Next()) }

// instant is a time as most of these APIs write it.
func instant(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// only keeps the members with these names.
func only(o Object, names []string) Object {
	for name := range o {
		if !slices.Contains(names, name) {
			delete(o, name)
		}
	}
	return o
}
