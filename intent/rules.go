package intent

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-playground/validator/v10"
)

// checkIntent holds the rules that a struct tag cannot say.
func checkIntent(level validator.StructLevel) {
	w := level.Current().Interface().(WriteIntent)
	r := reporter{level}
	checkValues(r, w)
	checkKey(r, w)
	checkWrite(r, w)
	checkAgreement(r, w)
	checkIgnore(r, w)
	checkAbsent(r, w)
	checkCompare(r, w)
	if w.OnMismatch == MismatchCompensate && w.Reversibility != Compensable {
		r.reportf("/on_mismatch", `escalate or retry, or "reversibility": "compensable"`, "is compensate for a write that is not compensable")
	}
	if year := w.Deadline.UTC().Year(); year < 1 || year > 9999 {
		r.reportf("/deadline", "a time in the years 1 to 9999", "is in the year %d", year)
	}
}

// checkKey: a destination is asked for the record by these values.
func checkKey(r reporter, w WriteIntent) {
	if w.Key != nil && len(w.Key) == 0 {
		r.report("/key", "is empty", "at least one field by which the record can be looked up")
	}
	if len(w.Key) > MaxKeyMembers {
		r.reportf("/key", fmt.Sprintf("at most %d", MaxKeyMembers), "has %d members", len(w.Key))
	}
	for name, v := range w.Key {
		at := Pointer("/key").AppendToken(name)
		switch v := v.(type) {
		case nil:
			r.report(at, "is null", wantScalar)
		case string:
			if v == "" {
				r.report(at, "is empty", wantScalar)
			}
		case map[string]any, []any:
			r.report(at, "is an array or an object", wantScalar)
		}
	}
}

const wantScalar = "a string that is not empty, a number or a boolean; a record cannot be looked up by anything else"

// checkWrite: which parts belong to which write.
func checkWrite(r reporter, w WriteIntent) {
	switch w.Write {
	case Create, Update, Upsert:
		if len(w.Expect) == 0 {
			r.report("/expect", "is missing", "at least one field that a later read must find; without one nothing could be verified")
		}
	case Delete:
		if len(w.Expect) > 0 {
			r.report("/expect", "is set for a delete", "none: the record must be gone")
		}
		if len(w.Payload) > 0 {
			r.report("/payload", "is set for a delete", "none: nothing is written")
		}
		if len(w.Absent) > 0 {
			r.report("/absent", "is set for a delete", "none: the record must be gone as a whole")
		}
	}
	if w.Write == Create && len(w.Require) > 0 {
		r.report("/require", "is set for a create", "none: before a create there is no record")
	}
}

// checkAgreement: the parts of one intent must be able to be true together.
func checkAgreement(r reporter, w WriteIntent) {
	for _, part := range []struct {
		name   string
		fields Fields
	}{{"expect", w.Expect}, {"payload", w.Payload}, {"require", w.Require}} {
		for name, v := range part.fields {
			if key, ok := w.Key[name]; ok && !equal(key, v) {
				r.report(Pointer("/"+part.name).AppendToken(name), "differs from the field of that name in the key", "the same value, or the field left out")
			}
		}
	}
	for name := range w.Payload {
		if _, ok := w.Expect[name]; ok {
			r.report(Pointer("/payload").AppendToken(name), "is in expect too", "it in one of them: expect is verified, payload is not")
		}
	}
}

func equal(a, b any) bool {
	left, err1 := Canonical(a)
	right, err2 := Canonical(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}

// checkIgnore: what is ignored must leave something to verify.
func checkIgnore(r reporter, w WriteIntent) {
	covered := func(at Pointer) bool {
		return slices.ContainsFunc(w.Ignore, func(p string) bool { return Pointer(p).Contains(at) })
	}
	for i, p := range w.Ignore {
		for name := range w.Key {
			field := Pointer("").AppendToken(name)
			if Pointer(p).Contains(field) || field.Contains(Pointer(p)) {
				r.reportf(element("/ignore", i), "a field that is not in the key", "ignores %s, which is a key field", p)
			}
		}
	}
	for i, p := range w.Absent {
		if covered(Pointer(p)) {
			r.reportf(element("/absent", i), "it in one of them", "names %s, which is ignored", clip(p))
		}
	}
	if len(w.Ignore) > 0 && len(w.Expect) > 0 && !slices.ContainsFunc(leaves("", map[string]any(w.Expect)), func(at Pointer) bool { return !covered(at) }) {
		r.report("/ignore", "covers everything that is expected", "at least one expected field that is compared; otherwise nothing could be verified")
	}
}

// leaves lists the places of all values that hold no others.
func leaves(at Pointer, v any) []Pointer {
	var found []Pointer
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			found = append(found, leaves(at.AppendToken(name), member)...)
		}
	case []any:
		for i, e := range v {
			found = append(found, leaves(element(at, i), e)...)
		}
	}
	if len(found) == 0 {
		return []Pointer{at}
	}
	return found
}

func element(at Pointer, i int) Pointer { return at.AppendToken(fmt.Sprint(i)) }

// checkAbsent: a field cannot be expected and absent.
func checkAbsent(r reporter, w WriteIntent) {
	for i, p := range w.Absent {
		if _, ok := Lookup(w.Expect, p); ok {
			r.reportf(element("/absent", i), "a field that is not expected", "names %s, which is expected", clip(p))
		}
		if _, ok := Lookup(w.Key, p); ok {
			r.reportf(element("/absent", i), "a field that is not in the key", "names %s, which is a key field", clip(p))
		}
	}
}

// checkValues: only the values that Fields promise, within the bounds.
func checkValues(r reporter, w WriteIntent) {
	c := valueCheck{reporter: r, left: MaxMembers}
	for _, part := range []struct {
		at     Pointer
		fields Fields
	}{{"/key", w.Key}, {"/expect", w.Expect}, {"/payload", w.Payload}, {"/require", w.Require}} {
		c.object(part.at, part.fields, 2)
	}
	if c.left < 0 {
		r.reportf("", fmt.Sprintf("at most %d in key, expect, payload and require together", MaxMembers), "has too many values")
	}
}

type valueCheck struct {
	reporter
	left int
}

func (c *valueCheck) object(at Pointer, m map[string]any, depth int) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if c.left < 0 {
			return
		}
		c.name(at, name)
		c.value(at.AppendToken(name), m[name], depth)
	}
}

func (c *valueCheck) name(at Pointer, name string) {
	want := fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", MaxMemberName)
	switch {
	case name == "":
		c.report(at, "has a member without a name", want)
	case len(name) > MaxMemberName:
		c.reportf(at, want, "has a member name of %d bytes", len(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		c.reportf(at, want, "has the member name %q", name)
	}
}

func (c *valueCheck) value(at Pointer, v any, depth int) {
	if c.left--; c.left < 0 {
		return
	}
	switch v := v.(type) {
	case nil, bool:
	case string:
		if !utf8.ValidString(v) {
			c.report(at, "is not valid UTF-8", "UTF-8 text; encode other bytes, for example as Base64")
		}
	case stdjson.Number:
		if !isNumber(string(v)) {
			c.reportf(at, "a JSON number", "is %q, which is no JSON number", clip(string(v)))
		} else if !exact(v) {
			c.reportf(at, wantExact, "is %s, which canonical JSON cannot hold exactly", clip(string(v)))
		}
	case map[string]any:
		if c.deepEnough(at, depth) {
			c.object(at, v, depth+1)
		}
	case []any:
		if c.deepEnough(at, depth) {
			for i, e := range v {
				c.value(element(at, i), e, depth+1)
			}
		}
	default:
		c.reportf(at, "nil, bool, string, json.Number, []any or map[string]any; intent.Normalize and intent.From convert", "is a Go %T", v)
	}
}

// deepEnough reports whether there is room for one more level.
func (c *valueCheck) deepEnough(at Pointer, depth int) bool {
	if depth < MaxDepth {
		return true
	}
	c.reportf(at, fmt.Sprintf("at most %d levels", MaxDepth), "is nested too deep")
	return false
}
