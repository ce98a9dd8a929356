package verify

import (
	"encoding/json"
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

// What can be wrong with a field.
const (
	Differs     = "differs"      // there, with another value
	NotThere    = "not there"    // wanted, and not in the record
	NotExpected = "not expected" // there, and should not be
	Changed     = "changed"      // changed, though nobody asked for it
	Count       = "count"        // not the declared number of records
	NotOurs     = "not ours"     // under our key without our stamp
)

// Diff compares a record with what the intent wants of it: its key, its
// expected fields, its absent fields. The intent's comparison of a field wins
// over the destination's (byProfile); without either the field must be equal
// exactly. Fields that the intent does not name are not looked at. The result
// is empty when all is as wanted, in the order of paths, and cut at a bound.
//
// Diff is pure. Both sides must hold values as [intent.Fields] says.
func Diff(w intent.WriteIntent, byProfile map[string]intent.Comparison, got intent.Fields) []Mismatch {
	d := differ{intent: w.Compare, profile: byProfile, ignore: w.Ignore}
	var r reporter
	for _, wanted := range []intent.Fields{w.Key, w.Expect} {
		a, b := d.object("", wanted, got)
		cmp.Equal(a, b, cmp.Reporter(&r), exactNumbers)
	}
	for _, p := range w.Absent {
		if v, there := intent.Lookup(got, p); there {
			r.add(Mismatch{Path: p, Problem: NotExpected, Got: v})
		}
	}
	return r.found
}

// exactNumbers compares numbers by the value they denote: 1 and 1.0 are equal,
// 0.1 and 0.1000000001 are not.
var exactNumbers = cmp.Comparer(equalNumbers)

// differ prepares both sides of a comparison.
type differ struct {
	intent, profile map[string]intent.Comparison
	ignore          []string
}

func (d differ) rules(path intent.Pointer) intent.Comparison {
	if c, ok := d.intent[string(path)]; ok {
		return c
	}
	return d.profile[string(path)]
}

func (d differ) ignored(path intent.Pointer) bool {
	for _, p := range d.ignore {
		if intent.Pointer(p).Contains(path) {
			return true
		}
	}
	return false
}

// object cuts what was seen down to the members that are wanted, so that what
// nobody asked about does not count, and aligns each pair under its rules.
func (d differ) object(at intent.Pointer, want, got map[string]any) (map[string]any, map[string]any) {
	a, b := make(map[string]any, len(want)), make(map[string]any, len(want))
	for name, w := range want {
		path := at.AppendToken(name)
		if d.ignored(path) {
			continue
		}
		g, there := got[name]
		if !there {
			g = missing{}
		}
		a[name], b[name] = d.pair(path, w, g)
	}
	return a, b
}

func (d differ) pair(path intent.Pointer, want, got any) (any, any) {
	if rules := d.rules(path); len(rules) > 0 {
		return align(rules, want, got)
	}
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			a, b := d.object(path, w, g)
			return a, b
		}
	case []any:
		if g, ok := got.([]any); ok && len(w) == len(g) {
			return d.array(path, w, g)
		}
	}
	return want, got
}

func (d differ) array(path intent.Pointer, want, got []any) (any, any) {
	a, b := make([]any, len(want)), make([]any, len(want))
	for i := range want {
		a[i], b[i] = d.pair(path.AppendToken(strconv.Itoa(i)), want[i], got[i])
	}
	return a, b
}

// reporter collects differences from go-cmp as path, want and got.
type reporter struct {
	path  cmp.Path
	found []Mismatch
}

func (r *reporter) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }
func (r *reporter) PopStep()                { r.path = r.path[:len(r.path)-1] }

func (r *reporter) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	want, got := r.path.Last().Values()
	m := Mismatch{Path: r.pointer(), Problem: Differs}
	if want.IsValid() {
		m.Want = want.Interface()
	}
	switch {
	case !got.IsValid(): // an array that is too short
		m.Problem = NotThere
	default:
		m.Got = got.Interface()
	}
	if !want.IsValid() {
		m.Problem = NotExpected
	}
	if _, gone := m.Got.(missing); gone {
		m.Problem, m.Got = NotThere, nil
	}
	r.add(m)
}

func (r *reporter) add(m Mismatch) {
	if len(r.found) < maxMismatches {
		r.found = append(r.found, m)
	}
}

func (r *reporter) pointer() string {
	var b strings.Builder
	for _, step := range r.path {
		switch s := step.(type) {
		case cmp.MapIndex:
			b.WriteString(string(intent.Pointer("").AppendToken(s.Key().String())))
		case cmp.SliceIndex:
			x, y := s.SplitKeys()
			b.WriteString("/" + strconv.Itoa(max(x, y)))
		}
	}
	return b.String()
}

// changes lists the fields that differ between two readings of one record,
// apart from those the write names, those it ignores and those the destination
// changes by itself.
func changes(w intent.WriteIntent, volatile []string, before, after intent.Fields) []Mismatch {
	d := differ{ignore: append(named(w), volatile...)}
	var r reporter
	for name := range union(before, after) {
		path := intent.Pointer("").AppendToken(name)
		if d.ignored(path) {
			continue
		}
		old, hadOld := before[name]
		now, hasNow := after[name]
		if d.unchanged(path, old, hadOld, now, hasNow) {
			continue
		}
		r.add(Mismatch{Path: string(path), Problem: Changed, Want: old, Got: now})
	}
	return r.found
}

// unchanged compares one member of two readings, below which some fields may
// be allowed to change.
func (d differ) unchanged(path intent.Pointer, old any, hadOld bool, now any, hasNow bool) bool {
	if d.ignored(path) {
		return true
	}
	before, okA := old.(map[string]any)
	after, okB := now.(map[string]any)
	if !okA || !okB {
		return hadOld == hasNow && cmp.Equal(old, now, exactNumbers)
	}
	for name := range union(before, after) {
		o, hadO := before[name]
		n, hasN := after[name]
		if !d.unchanged(path.AppendToken(name), o, hadO, n, hasN) {
			return false
		}
	}
	return true
}

// named lists the places that an intent speaks of.
func named(w intent.WriteIntent) []string {
	places := append([]string{}, w.Ignore...)
	places = append(places, w.Absent...)
	for _, f := range []intent.Fields{w.Key, w.Expect, w.Payload} {
		places = leaves(places, "", f)
	}
	return places
}

// leaves lists the places of all values below an object: naming one member of
// a nested object does not speak of its others.
func leaves(places []string, at intent.Pointer, m map[string]any) []string {
	for name, v := range m {
		path := at.AppendToken(name)
		if sub, ok := v.(map[string]any); ok && len(sub) > 0 {
			places = leaves(places, path, sub)
			continue
		}
		places = append(places, string(path))
	}
	return places
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
	if m.Problem != NotExpected && m.Problem != NotOurs {
		out["want"] = m.Want
	}
	if m.Problem != NotThere {
		out["got"] = m.Got
	}
	return json.Marshal(out)
}
