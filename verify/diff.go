package verify

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
)

// Mismatch is one difference between what was wanted and what was seen. Want
// and Got hold decoded JSON; Problem tells null and not there apart.
type Mismatch struct {
	Path    string `json:"path"`    // JSON Pointer into the record, or "/count"
	Problem string `json:"problem"` // one of the Problem constants
	Want    any    `json:"want,omitempty"`
	Got     any    `json:"got,omitempty"`
}

// What can be wrong with a field. Where nobody asked for a change, want is what
// was there before.
const (
	Differs     = "differs"      // there, with another value
	NotThere    = "not there"    // wanted, and not in the record
	NotExpected = "not expected" // there, and should not be
	Changed     = "changed"      // changed, though nobody asked for it
	Count       = "count"        // not the declared number of records
	NotOurs     = "not ours"     // under our key without our stamp
	Failed      = "failed"       // as declared, and it came to nothing: got says why, in foreign words
)

// Diff compares a record with what the intent wants of it: its key, its
// expected fields, its absent fields. The intent's comparison of a field wins
// over the destination's (byProfile); without either the field must be equal
// exactly. Members that the intent does not name are not looked at. An array
// needs the length that is wanted. The result is empty when all is as wanted,
// sorted by path, and cut at a bound.
//
// Diff is pure. Both sides must hold values as [intent.Fields] says; a value of
// any other Go type equals nothing.
func Diff(w intent.WriteIntent, byProfile map[string]intent.Comparison, got intent.Fields) []Mismatch {
	d := differ{intent: w.Compare, profile: byProfile, ignore: placesOf(w.Ignore)}
	var found []Mismatch
	for _, want := range []intent.Fields{w.Key, w.Expect} {
		var r reporter
		a, b := d.object("", want, got)
		cmp.Equal(a, b, decodedJSON, cmp.Reporter(&r))
		for _, p := range r.differing {
			found = append(found, differs(p, want, got))
		}
	}
	for _, p := range w.Absent {
		if v, there := intent.Lookup(got, p); there {
			found = append(found, Mismatch{Path: p, Problem: NotExpected, Got: v})
		}
	}
	return bounded(found)
}

// differs is the difference at a path, told in the values as they were written
// and read, before any rule brought them into a common form.
func differs(path string, want, got intent.Fields) Mismatch {
	w, _ := intent.Lookup(want, path)
	g, there := intent.Lookup(got, path)
	if !there {
		return Mismatch{Path: path, Problem: NotThere, Want: w}
	}
	return Mismatch{Path: path, Problem: Differs, Want: w, Got: g}
}

// decodedJSON makes go-cmp compare decoded JSON: numbers by the value they
// denote, and what is no decoded JSON equals nothing.
var decodedJSON = cmp.Options{
	cmp.Comparer(equalNumbers),
	cmp.FilterValues(notDecoded, cmp.Comparer(func(_, _ any) bool { return false })),
}

func notDecoded(a, b any) bool { return !decoded(a) || !decoded(b) }

func decoded(v any) bool {
	switch v.(type) {
	case nil, bool, string, json.Number, []any, map[string]any, missing, otherLength:
		return true
	}
	return false
}

// equal reports whether two decoded JSON values are the same.
func equal(a, b any) bool { return same(a, b) || cmp.Equal([]any{a}, []any{b}, decodedJSON) }

// same says at a glance of most equal values that they are, so that go-cmp has
// to be asked only about the others: it takes some microseconds for each value.
func same(a, b any) bool {
	switch a := a.(type) {
	case nil, bool, string:
		return a == b
	case json.Number:
		n, ok := b.(json.Number)
		return ok && equalNumbers(a, n)
	}
	return false
}

// reporter collects from go-cmp the JSON Pointers of what differs.
type reporter struct {
	path      cmp.Path
	differing []string
}

// PushStep, PopStep and Report are what go-cmp asks of a reporter.
func (r *reporter) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }
func (r *reporter) PopStep()                { r.path = r.path[:len(r.path)-1] }
func (r *reporter) Report(result cmp.Result) {
	if !result.Equal() {
		r.differing = append(r.differing, pointer(r.path))
	}
}

func pointer(path cmp.Path) string {
	var p intent.Pointer
	for _, step := range path {
		switch s := step.(type) {
		case cmp.MapIndex:
			p = p.AppendToken(s.Key().String())
		case cmp.SliceIndex:
			p = p.AppendToken(strconv.Itoa(s.Key()))
		}
	}
	return string(p)
}

// bounded sorts what was found, says what stands in key and expect once, and
// cuts it.
func bounded(found []Mismatch) []Mismatch {
	slices.SortStableFunc(found, func(a, b Mismatch) int {
		if a.Path != b.Path {
			return strings.Compare(a.Path, b.Path)
		}
		return strings.Compare(a.Problem, b.Problem)
	})
	found = slices.CompactFunc(found, func(a, b Mismatch) bool { return a.Path == b.Path && a.Problem == b.Problem })
	return found[:min(len(found), MaxMismatches)]
}

// places is a set of JSON Pointers. Walks go down from the root, so a place
// below one of the set is never reached.
type places map[string]bool

func placesOf(lists ...[]string) places {
	set := places{}
	for _, list := range lists {
		for _, p := range list {
			set[p] = true
		}
	}
	return set
}

// differ brings what was wanted and what was seen into a form that can be
// compared: the same members, under the rules of each.
type differ struct {
	intent, profile map[string]intent.Comparison
	ignore          places
}

func (d *differ) rules(path intent.Pointer) intent.Comparison {
	if c, ok := d.intent[string(path)]; ok {
		return c
	}
	return d.profile[string(path)]
}

// otherLength stands for an array that has not the length that is wanted: it
// differs as a whole.
type otherLength struct{}

// object keeps the members that are wanted and may differ.
func (d *differ) object(at intent.Pointer, want, got map[string]any) (a, b map[string]any) {
	a, b = make(map[string]any), make(map[string]any)
	for name, w := range want {
		path := at.AppendToken(name)
		if d.ignore[string(path)] {
			continue
		}
		g, there := got[name]
		if !there {
			g = missing{}
		}
		if x, y := d.value(path, w, g); !same(x, y) {
			a[name], b[name] = x, y
		}
	}
	return a, b
}

func (d *differ) value(path intent.Pointer, want, got any) (a, b any) {
	a, b = want, got
	if rules := d.rules(path); len(rules) > 0 {
		var same bool
		if a, b, same = align(rules, want, got); same {
			return want, want
		}
	}
	switch w := a.(type) {
	case map[string]any:
		if g, ok := b.(map[string]any); ok {
			return d.object(path, w, g)
		}
	case []any:
		switch g, ok := b.([]any); {
		case ok && len(g) == len(w):
			return d.array(path, w, g)
		case ok:
			return w, otherLength{}
		}
	}
	return a, b
}

func (d *differ) array(path intent.Pointer, want, got []any) (any, any) {
	a, b := make([]any, 0, len(want)), make([]any, 0, len(got))
	for i := range want {
		at := path.AppendToken(strconv.Itoa(i))
		x, y := want[i], want[i] // an element that is ignored is as it should be
		if !d.ignore[string(at)] {
			x, y = d.value(at, want[i], got[i])
		}
		a, b = append(a, x), append(b, y)
	}
	return a, b
}

// changes lists the members that differ between two readings of one record,
// apart from the places that may change.
func changes(mayChange places, before, after intent.Fields) []Mismatch {
	var found []Mismatch
	for name := range union(before, after) {
		path := intent.Pointer("").AppendToken(name)
		old, had := before[name]
		now, has := after[name]
		if unchanged(mayChange, path, orMissing(old, had), orMissing(now, has)) {
			continue
		}
		m := Mismatch{Path: string(path), Problem: Changed, Want: old, Got: now}
		switch {
		case !had:
			m.Problem = NotExpected
		case !has:
			m.Problem = NotThere
		}
		found = append(found, m)
	}
	return bounded(found)
}

// Changes lists what differs between two readings of one record, apart from the
// places that the intent names or ignores and those given, which change by
// themselves: what nobody asked to change. It is pure.
func Changes(w intent.WriteIntent, volatile []string, before, after intent.Fields) []Mismatch {
	return changes(placesOf(named(w), volatile), before, after)
}

func orMissing(v any, there bool) any {
	if !there {
		return missing{}
	}
	return v
}

// unchanged compares two readings of one value, parts of which may change.
func unchanged(mayChange places, path intent.Pointer, old, now any) bool {
	if mayChange[string(path)] {
		return true
	}
	switch after := now.(type) {
	case map[string]any:
		before, ok := asObject(old, after)
		return ok && unchangedMembers(mayChange, path, before, after)
	case []any:
		before, ok := old.([]any)
		if !ok || len(after) != len(before) {
			return false
		}
		for i := range before {
			if !unchanged(mayChange, path.AppendToken(strconv.Itoa(i)), before[i], after[i]) {
				return false
			}
		}
		return true
	}
	return equal(old, now)
}

// asObject is an earlier reading of what is an object now. To set a member of
// an object that was null or not there is to make the object.
func asObject(old any, now map[string]any) (map[string]any, bool) {
	if _, gone := old.(missing); (gone || old == nil) && len(now) > 0 {
		return nil, true
	}
	before, ok := old.(map[string]any)
	return before, ok
}

func unchangedMembers(mayChange places, path intent.Pointer, before, after map[string]any) bool {
	for name := range union(before, after) {
		old, had := before[name]
		now, has := after[name]
		if !unchanged(mayChange, path.AppendToken(name), orMissing(old, had), orMissing(now, has)) {
			return false
		}
	}
	return true
}

// named lists the places that an intent speaks of, and may therefore change.
func named(w intent.WriteIntent) []string {
	all := slices.Concat(w.Ignore, w.Absent)
	for _, f := range []intent.Fields{w.Key, w.Expect, w.Payload} {
		all = leaves(all, "", f)
	}
	return all
}

// leaves lists the places of all values below an object: naming one member of
// a nested object does not speak of its others.
func leaves(all []string, at intent.Pointer, m map[string]any) []string {
	for name, v := range m {
		path := at.AppendToken(name)
		if sub, ok := v.(map[string]any); ok && len(sub) > 0 {
			all = leaves(all, path, sub)
			continue
		}
		all = append(all, string(path))
	}
	return all
}

func union(a, b map[string]any) map[string]bool {
	names := make(map[string]bool, len(a)+len(b))
	for n := range a {
		names[n] = true
	}
	for n := range b {
		names[n] = true
	}
	return names
}

// MarshalJSON keeps null and not there apart: want is left out only where
// nothing was wanted, got only where nothing was there.
func (m Mismatch) MarshalJSON() ([]byte, error) {
	out := map[string]any{"path": m.Path, "problem": m.Problem}
	if m.Problem != NotExpected && m.Problem != NotOurs && m.Problem != Failed {
		out["want"] = m.Want
	}
	if m.Problem != NotThere {
		out["got"] = m.Got
	}
	return json.Marshal(out)
}
