package verify

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
)

// Mismatch is one difference between the wanted and the observed values. Want and Got hold
// decoded JSON; Problem distinguishes null from not there.
type Mismatch struct {
	Path    string `json:"path"`    // JSON Pointer into the record, or "/count"
	Problem string `json:"problem"` // one of the Problem constants
	Want    any    `json:"want,omitempty"`
	Got     any    `json:"got,omitempty"`
}

// Recorded is a [Mismatch] as it is stored: its values are JSON, empty for one that is not there.
type Recorded struct {
	Path    string          `json:"path"`
	Problem string          `json:"problem"`
	Want    json.RawMessage `json:"want,omitempty"`
	Got     json.RawMessage `json:"got,omitempty"`
}

// Decode decodes stored mismatches; none is no error.
func Decode(stored json.RawMessage) (all []Recorded, err error) {
	if len(stored) > 0 {
		err = json.Unmarshal(stored, &all)
	}
	return all, err
}

// The problems of a field. Where no change was requested, want is the value before.
const (
	Differs     = "differs"      // there, with another value
	NotThere    = "not there"    // wanted, and not in the record
	NotExpected = "not expected" // there, and should not be
	Changed     = "changed"      // changed, though not requested
	Count       = "count"        // not the declared number of records
	NotOurs     = "not ours"     // under our key without our stamp
	More        = "more"         // ends a list that is cut
	Failed      = "failed"       // as declared, but the effect failed: got says why, in foreign words
)

// Diff compares a record with what the intent requires: its key, its expected fields, its
// absent fields. The intent's comparison of a field takes precedence over the destination's
// (byProfile). Without either, the field must be exactly equal. Members that the intent does
// not name are not compared. An array must have the wanted length. The result is empty when
// everything matches. It is sorted by path, and cut at a bound.
//
// Diff is pure. Both sides must hold values as [intent.Fields] says; a value of any other Go
// type equals nothing.
func Diff(w intent.WriteIntent, byProfile map[string]intent.Comparison, got intent.Fields) []Mismatch {
	d := differ{intent: w.Compare, profile: byProfile, ignore: placesOf(w.Ignore)}
	var found []Mismatch
	for _, want := range []intent.Fields{w.Key, w.Expect} {
		var r reporter
		a, b := d.object("", want, got)
		if len(a) > 0 { // go-cmp takes some microseconds also for nothing
			cmp.Equal(a, b, decodedJSON, cmp.Reporter(&r))
		}
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

// differs returns the difference at a path, in the values as written and read, before any rule
// normalised them.
func differs(path string, want, got intent.Fields) Mismatch {
	w, _ := intent.Lookup(want, path)
	g, there := intent.Lookup(got, path)
	if !there {
		return Mismatch{Path: path, Problem: NotThere, Want: w}
	}
	return Mismatch{Path: path, Problem: Differs, Want: w, Got: g}
}

// decodedJSON makes go-cmp compare decoded JSON: numbers by value. A value that is no decoded
// JSON equals nothing.
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

// same quickly reports most equal values as equal. Only the others go to go-cmp, which takes
// some microseconds for each value.
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

// reporter collects from go-cmp the JSON Pointers of the differences.
type reporter struct {
	path      cmp.Path
	differing []string
}

// PushStep, PopStep and Report implement go-cmp's reporter.
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

// bounded sorts the mismatches, removes duplicates between key and expect, and cuts the list.
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

// differ normalises the wanted and the observed values for comparison: the same members, under
// the rules of each.
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

// otherLength represents an array of another length than wanted: it differs as a whole.
type otherLength struct{}

// object keeps the wanted members that may differ; both maps are nil where there are none.
func (d *differ) object(at intent.Pointer, want, got map[string]any) (a, b map[string]any) {
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
			if a == nil {
				a, b = make(map[string]any), make(map[string]any)
			}
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
		x, y := want[i], want[i] // an ignored element matches
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
		found = changeAt(found, mayChange, intent.Pointer("").AppendToken(name), before, after)
	}
	return bounded(found)
}

// changeAt appends how a place differs between two readings of one record, if it does.
func changeAt(found []Mismatch, mayChange places, at intent.Pointer, before, after intent.Fields) []Mismatch {
	old, had := intent.Lookup(before, string(at))
	now, has := intent.Lookup(after, string(at))
	if unchanged(mayChange, at, orMissing(old, had), orMissing(now, has)) {
		return found
	}
	m := Mismatch{Path: string(at), Problem: Changed, Want: old, Got: now}
	switch {
	case !had:
		m.Problem = NotExpected
	case !has:
		m.Problem = NotThere
	}
	return append(found, m)
}

// Replaced lists what of the differences between two readings of one record a write would undo: a
// delete all of them, another write those in the places that it sets. It is pure.
func Replaced(w intent.WriteIntent, volatile []string, before, after intent.Fields) []Mismatch {
	mayChange := placesOf(w.Ignore, volatile)
	if w.Write == intent.Delete {
		return changes(mayChange, before, after)
	}
	var found []Mismatch
	for _, at := range leaves(leaves(slices.Clone(w.Absent), "", w.Expect), "", w.Payload) {
		found = changeAt(found, mayChange, intent.Pointer(at), before, after)
	}
	return bounded(found)
}

// Changes lists the unrequested differences between two readings of one record: all except the
// places that the intent names or ignores, and the given volatile places. It is pure.
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

// asObject returns the earlier reading of a present object. Setting a member of an object that
// was null or not there creates the object.
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

// named lists the places that an intent names, and may therefore change.
func named(w intent.WriteIntent) []string {
	all := slices.Concat(w.Ignore, w.Absent)
	for _, f := range []intent.Fields{w.Key, w.Expect, w.Payload} {
		all = leaves(all, "", f)
	}
	return all
}

// leaves lists the places of all values below an object: naming one member of a nested object
// does not name its others.
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

// MarshalJSON distinguishes null from not there: want is omitted only where nothing was wanted,
// got only where nothing was there.
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
