package verify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// fields returns decoded JSON, as in intents and observations; "" is nil.
func fields(t testing.TB, text string) intent.Fields {
	t.Helper()
	if text == "" {
		return nil
	}
	var f intent.Fields
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// describe returns a mismatch as one line: path, problem, want > got.
func describe(m verify.Mismatch) string {
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	switch m.Problem {
	case verify.NotThere:
		return fmt.Sprintf("%s %s: %s", m.Path, m.Problem, text(m.Want))
	case verify.NotExpected, verify.NotOurs:
		return fmt.Sprintf("%s %s: %s", m.Path, m.Problem, text(m.Got))
	}
	return fmt.Sprintf("%s %s: %s > %s", m.Path, m.Problem, text(m.Want), text(m.Got))
}

func describeAll(all []verify.Mismatch) []string {
	lines := []string{}
	for _, m := range all {
		lines = append(lines, describe(m))
	}
	return lines
}

type diffCase struct {
	reason string
	key    string
	expect string
	got    string
	change func(*intent.WriteIntent)
	want   []string
}

func (c diffCase) run(t *testing.T) {
	t.Helper()
	w := intent.WriteIntent{Key: fields(t, c.key), Expect: fields(t, c.expect)}
	if c.change != nil {
		c.change(&w)
	}
	got := describeAll(verify.Diff(w, nil, fields(t, c.got)))
	if diff := cmp.Diff(append([]string{}, c.want...), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", c.reason, diff)
	}
}

func TestDiffOfValues(t *testing.T) {
	for name, c := range map[string]diffCase{
		"as wanted": {reason: "key and expected fields are equal", key: `{"id":"A"}`, expect: `{"n":1}`, got: `{"id":"A","n":1}`},
		"extra members": {reason: "what was not requested does not count, nested or not",
			expect: `{"a":{"x":1}}`, got: `{"a":{"x":1,"y":2},"b":3}`},
		"key differs": {reason: "a record found by its stamp must still be the one under the key",
			key: `{"id":"A"}`, expect: `{"n":1}`, got: `{"id":"B","n":1}`, want: []string{`/id differs: "A" > "B"`}},
		"key and expect": {reason: "a field in both is one difference",
			key: `{"id":"A"}`, expect: `{"id":"A"}`, got: `{}`, want: []string{`/id not there: "A"`}},
		"1 and 1.0":    {reason: "numbers are what they denote", expect: `{"n":1,"z":0}`, got: `{"n":1.0e0,"z":-0.0}`},
		"1 and \"1\"":  {reason: "no silent coercion", expect: `{"n":1}`, got: `{"n":"1"}`, want: []string{`/n differs: 1 > "1"`}},
		"1 and true":   {reason: "no silent coercion", expect: `{"n":1}`, got: `{"n":true}`, want: []string{`/n differs: 1 > true`}},
		"far decimals": {reason: "no rounding through doubles", expect: `{"n":0.1}`, got: `{"n":0.10000000000000000001}`, want: []string{`/n differs: 0.1 > 0.10000000000000000001`}},
		"null":         {reason: "null is a value", expect: `{"a":null}`, got: `{"a":null}`},
		"null wanted, missing": {reason: "null and missing are two things",
			expect: `{"a":null}`, got: `{}`, want: []string{`/a not there: null`}},
		"null wanted, empty": {reason: "null and empty are two things",
			expect: `{"a":null,"b":null}`, got: `{"a":"","b":[]}`, want: []string{`/a differs: null > ""`, `/b differs: null > []`}},
		"empty wanted, null": {reason: "null and empty are two things",
			expect: `{"a":"","b":[],"c":{}}`, got: `{"a":null,"b":null,"c":null}`,
			want: []string{`/a differs: "" > null`, `/b differs: [] > null`, `/c differs: {} > null`}},
		"empty wanted, missing": {reason: "missing and empty are two things",
			expect: `{"a":"","c":{}}`, got: `{}`, want: []string{`/a not there: ""`, `/c not there: {}`}},
		"empty object": {reason: "an object in which nothing is wanted", expect: `{"a":{}}`, got: `{"a":{"x":1}}`},
		"nested": {reason: "places are JSON Pointers", expect: `{"a":{"b":{"c":1}}}`, got: `{"a":{"b":{"c":2,"d":1}}}`,
			want: []string{`/a/b/c differs: 1 > 2`}},
		"nested missing": {reason: "the whole of what is missing is named once", expect: `{"a":{"b":1}}`, got: `{"a":{}}`, want: []string{`/a/b not there: 1`}},
		"object and text": {reason: "another type is another value",
			expect: `{"a":{"b":1}}`, got: `{"a":"b"}`, want: []string{`/a differs: {"b":1} > "b"`}},
		"array":           {reason: "element by element", expect: `{"a":[1,"x",null]}`, got: `{"a":[1.0,"x",null]}`},
		"array in order":  {reason: "order counts unless a rule says otherwise", expect: `{"a":[1,2]}`, got: `{"a":[2,1]}`, want: []string{`/a/0 differs: 1 > 2`, `/a/1 differs: 2 > 1`}},
		"array too long":  {reason: "an array has the length wanted", expect: `{"a":[1]}`, got: `{"a":[1,1]}`, want: []string{`/a differs: [1] > [1,1]`}},
		"array too short": {reason: "an array has the length wanted", expect: `{"a":[1,2]}`, got: `{"a":[1]}`, want: []string{`/a differs: [1,2] > [1]`}},
		"empty array":     {reason: "an empty array is wanted empty", expect: `{"a":[]}`, got: `{"a":[1]}`, want: []string{`/a differs: [] > [1]`}},
		"array of objects": {reason: "members not named do not count there either",
			expect: `{"a":[{"x":1}]}`, got: `{"a":[{"x":1,"y":2}]}`},
	} {
		t.Run(name, c.run)
	}
}

func TestDiffOfPlaces(t *testing.T) {
	for name, c := range map[string]diffCase{
		"path escapes": {reason: "~ is ~0 and / is ~1 (RFC 6901)",
			expect: `{"a/b":{"c~d":1},"":2}`, got: `{"a/b":{"c~d":2}}`, want: []string{`/ not there: 2`, `/a~1b/c~0d differs: 1 > 2`}},
		"rules by escaped path": {reason: "rules are found by the pointer", expect: `{"a/b":"x"}`, got: `{"a/b":" x "}`,
			change: func(w *intent.WriteIntent) { w.Compare = map[string]intent.Comparison{"/a~1b": {{Name: "trim"}}} }},
		"ignored": {reason: "what is ignored is not compared", expect: `{"a":1,"b":1}`, got: `{"b":1}`,
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/a"} }},
		"ignored below": {reason: "nor is what lies below it", expect: `{"a":{"x":1},"b":1}`, got: `{"a":{"x":2},"b":1}`,
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/a"} }},
		"ignored member": {reason: "one member of an object", expect: `{"a":{"x":1,"y":1}}`, got: `{"a":{"y":2}}`,
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/a/x"} }, want: []string{`/a/y differs: 1 > 2`}},
		"ignored element": {reason: "one element of an array", expect: `{"a":[1,2]}`, got: `{"a":[9,2]}`,
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/a/0"} }},
		"ignored by half a name": {reason: "a name that begins the same is another field", expect: `{"ab":1}`, got: `{"ab":2}`,
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/a"} }, want: []string{`/ab differs: 1 > 2`}},
		"absent and gone": {reason: "absent is what must not be there", expect: `{"a":1}`, got: `{"a":1}`,
			change: func(w *intent.WriteIntent) { w.Absent = []string{"/b", "/a/c", "/d/0"} }},
		"absent and there": {reason: "null is there", expect: `{"a":1}`, got: `{"a":1,"b":null,"c":{"d":[1]}}`,
			change: func(w *intent.WriteIntent) { w.Absent = []string{"/b", "/c/d/0"} }, want: []string{`/b not expected: null`, `/c/d/0 not expected: 1`}},
		"no record fields": {reason: "a record that shows nothing lacks everything", key: `{"id":"A"}`, expect: `{"a":null}`, got: ``,
			want: []string{`/a not there: null`, `/id not there: "A"`}},
		"payload": {reason: "payload is sent and not verified", expect: `{"a":1}`, got: `{"a":1}`,
			change: func(w *intent.WriteIntent) { w.Payload = fields(t, `{"b":1}`) }},
	} {
		t.Run(name, c.run)
	}
}

func TestDiffPrecedence(t *testing.T) {
	trim, numeric, exact := intent.Comparison{{Name: "trim"}}, intent.Comparison{{Name: "numeric"}}, intent.Comparison{}
	cases := map[string]struct {
		reason          string
		intent, profile intent.Comparison
		want, got       string
		same            bool
	}{
		"neither":               {"without rules exactly", nil, nil, `"x"`, `" x"`, false},
		"the profile's":         {"the destination knows how it normalises", nil, trim, `"x"`, `" x"`, true},
		"the intent's":          {"the caller says how close is close enough", trim, nil, `"x"`, `" x"`, true},
		"the intent's wins":     {"rules do not add up", numeric, trim, `"x"`, `" x"`, false},
		"the intent's wins, 2":  {"rules do not add up", numeric, trim, `"1"`, `1.0`, true},
		"the intent is exact":   {"an empty list means exactly, whatever the profile", exact, trim, `"x"`, `" x"`, false},
		"the profile is exact":  {"an empty list means exactly", nil, exact, `"x"`, `" x"`, false},
		"rules of other fields": {"a rule is for one field", nil, nil, `"x"`, `"X"`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := intent.WriteIntent{Expect: fields(t, `{"a":`+c.want+`}`), Compare: map[string]intent.Comparison{"/b": {{Name: "fold"}}}}
			profile := map[string]intent.Comparison{"/c": {{Name: "fold"}}}
			if c.intent != nil {
				w.Compare["/a"] = c.intent
			}
			if c.profile != nil {
				profile["/a"] = c.profile
			}
			found := verify.Diff(w, profile, fields(t, `{"a":`+c.got+`}`))
			if same := len(found) == 0; same != c.same {
				t.Errorf("same is %t, want %t: %s: %v", same, c.same, c.reason, describeAll(found))
			}
		})
	}
}

func TestDiffIsBoundedAndSorted(t *testing.T) {
	expect := intent.Fields{}
	for i := range 500 {
		expect[fmt.Sprintf("f%03d", i)] = true
	}
	found := verify.Diff(intent.WriteIntent{Expect: expect}, nil, nil)
	if len(found) != 64 || !slices.IsSortedFunc(found, func(a, b verify.Mismatch) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%d mismatches, want the first 64 in order: %v", len(found), describeAll(found))
	}
	if found[63].Path != "/f063" {
		t.Errorf("the last is %s; want /f063, the cut being the same each time", found[63].Path)
	}
}

// A destination must not be able to make us compute 10^999999999.
func TestDiffDoesNotHangOnNumbers(t *testing.T) {
	long := strings.Repeat("9", 5000)
	cases := map[string]struct {
		reason    string
		want, got json.Number
		same      bool
	}{
		"huge exponents":      {"compared as they are written", "1e999999999", "1e999999998", false},
		"the same, huge":      {"the same text is the same number", "1e999999999", "1e999999999", true},
		"huge, other writing": {"what is too much work is not computed, and not equal", "1e99999", "10e99998", false},
		"tiny exponents":      {"compared as they are written", "1e-999999999", "0", false},
		"long":                {"compared as they are written", json.Number(long), json.Number(long + "9"), false},
		"large and exact":     {"any double is computed", "1e308", "10e307", true},
		"leading zeros":       {"they do not make an exponent large", "1e0000000000003", "1000", true},
		"no number":           {"a value that is no number equals itself alone", "abc", "abd", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			done := make(chan bool, 1)
			go func() {
				done <- len(verify.Diff(intent.WriteIntent{Expect: intent.Fields{"n": c.want}}, nil, intent.Fields{"n": c.got})) == 0
			}()
			select {
			case same := <-done:
				if same != c.same {
					t.Errorf("same is %t, want %t: %s", same, c.same, c.reason)
				}
			case <-time.After(time.Minute):
				t.Fatal("still computing")
			}
		})
	}
}

func TestDiffOfOtherTypes(t *testing.T) {
	for name, v := range map[string]any{"int": 1, "time": time.Now(), "list of strings": []string{"x"}, "function": func() {}} {
		w := intent.WriteIntent{Expect: intent.Fields{"a": v}}
		if found := verify.Diff(w, nil, intent.Fields{"a": v}); len(found) != 1 {
			t.Errorf("%s: %v; what Fields do not hold equals nothing, and nothing panics", name, describeAll(found))
		}
	}
}

func TestMismatchJSON(t *testing.T) {
	cases := map[string]struct {
		m    verify.Mismatch
		want string
	}{
		"differs from null":  {verify.Mismatch{Path: "/a", Problem: verify.Differs, Want: "x"}, `{"got":null,"path":"/a","problem":"differs","want":"x"}`},
		"null was wanted":    {verify.Mismatch{Path: "/a", Problem: verify.Differs, Got: "x"}, `{"got":"x","path":"/a","problem":"differs","want":null}`},
		"null is not there":  {verify.Mismatch{Path: "/a", Problem: verify.NotThere}, `{"path":"/a","problem":"not there","want":null}`},
		"null is there":      {verify.Mismatch{Path: "/a", Problem: verify.NotExpected}, `{"got":null,"path":"/a","problem":"not expected"}`},
		"another actor's":    {verify.Mismatch{Problem: verify.NotOurs, Got: "ord_1"}, `{"got":"ord_1","path":"","problem":"not ours"}`},
		"numbers stay exact": {verify.Mismatch{Path: "/n", Problem: verify.Differs, Want: json.Number("1.10"), Got: json.Number("1e2")}, `{"got":1e2,"path":"/n","problem":"differs","want":1.10}`},
	}
	for name, c := range cases {
		text, err := json.Marshal(c.m)
		if err != nil || string(text) != c.want {
			t.Errorf("%s: %s, %v; want %s: null and not there are distinguished", name, text, err, c.want)
		}
	}
}

// What a write would undo of another actor's changes is what it sets: also what it removes, what it sends
// without comparing it, and single members of an object. A delete would undo each of them.
func TestReplaced(t *testing.T) {
	w := intent.WriteIntent{Expect: fields(t, `{"a":1,"o":{"x":1}}`), Absent: []string{"/gone"}, Payload: fields(t, `{"p":1}`), Ignore: []string{"/ignored"}}
	before := fields(t, `{"a":0,"o":{"x":0,"y":0},"p":0,"other":0,"ignored":0,"at":0}`)
	for name, tt := range map[string]struct {
		after          string
		update, delete []string
	}{
		"nothing":                {`{"a":0,"o":{"x":0,"y":0},"p":0,"other":0,"ignored":1,"at":1}`, nil, nil},
		"a field that it sets":   {`{"a":7,"o":{"x":0,"y":0},"p":0,"other":0,"ignored":0,"at":0}`, []string{"/a"}, []string{"/a"}},
		"a member that it sets":  {`{"a":0,"o":{"x":7,"y":0},"p":0,"other":0,"ignored":0,"at":0}`, []string{"/o/x"}, []string{"/o"}},
		"the member beside it":   {`{"a":0,"o":{"x":0,"y":7},"p":0,"other":0,"ignored":0,"at":0}`, nil, []string{"/o"}},
		"what it removes":        {`{"a":0,"o":{"x":0,"y":0},"p":0,"other":0,"ignored":0,"at":0,"gone":7}`, []string{"/gone"}, []string{"/gone"}},
		"what it sends":          {`{"a":0,"o":{"x":0,"y":0},"p":7,"other":0,"ignored":0,"at":0}`, []string{"/p"}, []string{"/p"}},
		"what it does not name":  {`{"a":0,"o":{"x":0,"y":0},"p":0,"other":7,"ignored":0,"at":0}`, nil, []string{"/other"}},
		"a field that was taken": {`{"o":{"x":0,"y":0},"p":0,"other":0,"ignored":0,"at":0}`, []string{"/a"}, []string{"/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for write, want := range map[intent.WriteType][]string{intent.Update: tt.update, intent.Delete: tt.delete} {
				w.Write = write
				var got []string
				for _, m := range verify.Replaced(w, []string{"/at"}, before, fields(t, tt.after)) {
					got = append(got, m.Path)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s would replace %v, want %v", write, got, want)
				}
			}
		})
	}
}
