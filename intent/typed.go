package intent

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// From fills an intent from a typed Go struct. The tag `readback` of a field declares the
// purpose of its value:
//
//	readback:"key"      part of the business key
//	readback:"expect"   sent, and must be found by a later read; the default
//	readback:"payload"  sent, and not verified
//	readback:"require"  must hold before the first send
//	readback:"ignore"   not sent, and neither compared nor collateral
//	readback:"-"        has no part in the write
//	readback:"sensitive" expected, and never kept or shown in the clear
//
// A field that is not expected is sensitive with ",sensitive" after its word
// (readback:"key,sensitive"). A field without the tag is expected, since verifying too much is
// noticed and verifying too little is not. Names, "-", omitempty and omitzero come from the
// json tag as in encoding/json. Fields of embedded structs count as the outer struct's. In a
// nested struct only expect, ignore and "-" are allowed, since the nested object is one field
// of the record; within arrays and maps none is.
//
// Values are converted by [Normalize]: nil slices are empty ones, nil pointers are null. A zero
// value is a value: use omitempty, omitzero or a pointer for fields that an update leaves
// alone.
//
// From keeps what base declares; the record must not set a field that base sets too. Base is
// not changed. Only the record's own values are validated: call [WriteIntent.Validate], or pass
// the intent to a function that does. The error is an [InvalidError] whose paths are those of
// the intent.
func From[T any](base WriteIntent, record T) (WriteIntent, error) {
	plan, members, err := readRecord(record)
	if err != nil {
		return WriteIntent{}, err
	}
	f := fill{w: base}
	f.copyParts()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f.add(plan, name, members[name])
	}
	for _, name := range slices.Sorted(maps.Keys(plan.below)) {
		f.list("", name, plan.below[name])
	}
	if err := invalid(f.problems); err != nil {
		return WriteIntent{}, err
	}
	return f.w, nil
}

// FieldsOf returns all members of a struct as [Fields], whatever their readback tags are, for a
// part with its own struct (a require, a payload). The error is an [InvalidError].
func FieldsOf[T any](record T) (Fields, error) {
	_, members, err := readRecord(record)
	return members, err
}

// fill is an intent under construction.
type fill struct {
	w        WriteIntent
	problems []Problem
}

// copyParts: base is the caller's, and a map is shared.
func (f *fill) copyParts() {
	for role, part := range f.parts() {
		plain, err := Normalize(*part)
		if inner, ok := errors.AsType[*InvalidError](err); ok {
			for _, p := range inner.Problems {
				f.problems = append(f.problems, Problem{"/" + string(role) + p.Path, p.Problem, p.Want})
			}
		}
		*part = plain
	}
	f.w.Ignore, f.w.Sensitive = slices.Clone(f.w.Ignore), slices.Clone(f.w.Sensitive)
}

func (f *fill) parts() map[role]*Fields {
	return map[role]*Fields{roleKey: &f.w.Key, roleExpect: &f.w.Expect, rolePayload: &f.w.Payload, roleRequire: &f.w.Require}
}

// add puts one member of the record where its tag says.
func (f *fill) add(plan *shape, name string, value any) {
	node, known := plan.below[name]
	if !known {
		f.problem(Pointer("/expect").AppendToken(name), "comes from no field of the struct", "plain fields; readback does not know this json option")
		return
	}
	part, ok := f.parts()[node.role]
	if !ok {
		return
	}
	if _, twice := (*part)[name]; twice {
		f.problem(Pointer("/"+string(node.role)).AppendToken(name), "is in the base intent too", "it in one of them")
		return
	}
	if *part == nil {
		*part = Fields{}
	}
	(*part)[name] = prune(node, value)
}

func (f *fill) problem(at Pointer, problem, want string) {
	f.problems = append(f.problems, Problem{string(at), problem, want})
}

// list lists the path of every field whose tag marks it as ignored or sensitive.
func (f *fill) list(above Pointer, name string, node *shape) {
	at := above.AppendToken(name)
	if node.sensitive && !slices.Contains(f.w.Sensitive, string(at)) {
		f.w.Sensitive = append(f.w.Sensitive, string(at))
	}
	if node.role == roleIgnore {
		if !slices.Contains(f.w.Ignore, string(at)) {
			f.w.Ignore = append(f.w.Ignore, string(at))
		}
		return
	}
	if node.role != roleExpect {
		return
	}
	for _, inner := range slices.Sorted(maps.Keys(node.below)) {
		f.list(at, inner, node.below[inner])
	}
}

// prune drops nested members that are ignored or not part of the write.
func prune(node *shape, value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for name, inner := range node.below {
		if member, there := object[name]; there && inner.role != roleExpect {
			delete(object, name)
		} else if there {
			object[name] = prune(inner, member)
		}
	}
	return object
}

// readRecord returns the shape of a struct and its members as JSON has them.
func readRecord(record any) (*shape, Fields, error) {
	v := reflect.ValueOf(record)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, nil, invalidAt("", fmt.Sprintf("is made from a Go %T", record), "a struct, or a pointer to one that is not nil")
	}
	plan, problems := shapeOf(v.Type())
	if len(problems) > 0 {
		return nil, nil, invalid(problems)
	}
	text, err := json.Marshal(v.Interface(), encodeOptions)
	if err != nil {
		at, why := cause(err)
		return nil, nil, invalidAt(plan.in(at), fmt.Sprintf("cannot be written as JSON (Go %s): %v", v.Type(), why), "a field that encoding/json can write; "+
			"give a time.Duration or the like as a string or number")
	}
	var members Fields
	if err := json.Unmarshal(text, &members, decodeOptions); err != nil {
		at, why := cause(err)
		return nil, nil, invalidAt(plan.in(at), fmt.Sprintf("is no JSON object of named members (Go %s): %v", v.Type(), why), "a struct with exported fields")
	}
	return plan, members, nil
}

// in returns the path in the intent for a path in the record.
func (s *shape) in(at Pointer) Pointer {
	first, _, _ := strings.Cut(strings.TrimPrefix(string(at), "/"), "/")
	if node, ok := s.below[first]; ok && node.role != roleNone {
		return Pointer("/"+string(node.role)) + at
	}
	return at
}
