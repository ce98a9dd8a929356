package intent

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-playground/validator/v10"
)

// checkIntent checks the rules that a struct tag cannot express.
func checkIntent(level validator.StructLevel) {
	w := level.Current().Interface().(WriteIntent)
	r := reporter{level}
	if checkValues(r, w) {
		checkAgreement(r, w)
		checkIgnore(r, w)
		checkAbsent(r, w)
	}
	checkKey(r, w)
	checkWrite(r, w)
	checkCompare(r, w)
	checkContext(r, w.Context)
	if w.OnMismatch == MismatchCompensate && w.Reversibility != Compensable {
		r.report("/on_mismatch", "is compensate for a write that is not compensable", `escalate or retry, or "reversibility": "compensable"`)
	}
	if w.OnMismatch == MismatchRepair && w.Write == Delete {
		r.report("/on_mismatch", "is repair for a delete, which stores nothing", "escalate or retry")
	}
	if year := w.Deadline.UTC().Year(); year < 1 || year > 9999 {
		r.reportf("/deadline", "a time in the years 1 to 9999", "is in the year %d", year)
	}
}

// checkKey: the destination is queried for the record by these values.
func checkKey(r reporter, w WriteIntent) {
	if w.Key != nil && len(w.Key) == 0 {
		r.report("/key", "is missing or empty", wantKey)
	}
	if len(w.Key) > MaxKeyMembers {
		r.reportf("/key", fmt.Sprintf("at most %d", MaxKeyMembers), "has %d members", len(w.Key))
		return
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
		case map[string]any:
			r.report(at, "is an object", wantScalar)
		case []any:
			r.report(at, "is an array", wantScalar)
		}
	}
}

const wantKey = "at least one field by which the record can be looked up"

const wantScalar = "a string that is not empty, a number or a boolean; a record cannot be looked up by anything else"

// checkWrite: which parts are allowed for which write.
func checkWrite(r reporter, w WriteIntent) {
	switch w.Write {
	case Create, Update, Upsert:
		if len(w.Expect) == 0 {
			r.report("/expect", "is missing or empty", "at least one field that a later read must find; without one nothing could be verified")
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

// checkAgreement: the parts of one intent must not contradict each other.
func checkAgreement(r reporter, w WriteIntent) {
	for _, part := range w.parts()[1:] {
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
	left, err1 := canonical(a)
	right, err2 := canonical(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}

// ignored reports whether the place, as a whole, is ignored.
func (w WriteIntent) ignored(at Pointer) bool {
	return slices.ContainsFunc(w.Ignore, func(p string) bool { return Pointer(p).Contains(at) })
}

// checkIgnore: something must be left to verify.
func checkIgnore(r reporter, w WriteIntent) {
	for i, p := range w.Ignore {
		for name := range w.Key {
			field := Pointer("").AppendToken(name)
			if Pointer(p).Contains(field) || field.Contains(Pointer(p)) {
				r.reportf(element("/ignore", i), "a field that is not in the key", "names %s, which is a key field", strconv.Quote(clip(p)))
			}
		}
	}
	for i, p := range w.Absent {
		if w.ignored(Pointer(p)) {
			r.reportf(element("/absent", i), "a path that is not ignored", "names %s, which is ignored", strconv.Quote(clip(p)))
		}
	}
	if len(w.Expect) > 0 && !w.compared("", map[string]any(w.Expect)) {
		r.report("/ignore", "covers everything that is expected", "at least one expected field that is compared; otherwise nothing could be verified")
	}
}

// compared reports whether anything at the place or below it is compared.
func (w WriteIntent) compared(at Pointer, v any) bool {
	if w.ignored(at) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if w.compared(at.AppendToken(name), member) {
				return true
			}
		}
		return len(v) == 0
	case []any:
		for i, e := range v {
			if w.compared(element(at, i), e) {
				return true
			}
		}
		return len(v) == 0
	}
	return true
}

func element(at Pointer, i int) Pointer { return at.AppendToken(strconv.Itoa(i)) }

// checkAbsent: a field cannot be expected and absent.
func checkAbsent(r reporter, w WriteIntent) {
	for i, p := range w.Absent {
		if _, ok := Lookup(w.Expect, p); ok {
			r.reportf(element("/absent", i), "a field that is not expected", "names %s, which is expected", strconv.Quote(clip(p)))
		}
		if _, ok := Lookup(w.Key, p); ok {
			r.reportf(element("/absent", i), "a field that is not in the key", "names %s, which is a key field", strconv.Quote(clip(p)))
		}
	}
}
