package intent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func jsonNumber(s string) json.Number { return json.Number(s) }

// Intents built in Go can hold what JSON text cannot.
func TestValidateGoValues(t *testing.T) {
	const wantValue = "; want nil, bool, string, json.Number, []any or map[string]any; intent.Normalize and intent.From convert"
	cyclic := map[string]any{}
	cyclic["me"] = cyclic
	wide := map[string]any{}
	for range MaxDepth / 2 {
		wide = map[string]any{"a": wide, "b": wide, "c": wide}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*WriteIntent)
		want   []string
	}{
		"valid":         {"the sample is", func(*WriteIntent) {}, nil},
		"int":           {"its spelling is not decided", func(w *WriteIntent) { w.Expect["n"] = 5 }, []string{"/expect/n is a Go int" + wantValue}},
		"float, nested": {"the same", func(w *WriteIntent) { w.Payload["x"] = []any{map[string]any{"f": 1.5}} }, []string{"/payload/x/0/f is a Go float64" + wantValue}},
		"time":          {"the same", func(w *WriteIntent) { w.Require["t"] = time.Time{} }, []string{"/require/t is a Go time.Time" + wantValue}},
		"typed map":     {"a lookup would not see into it", func(w *WriteIntent) { w.Expect["m"] = map[string]string{} }, []string{"/expect/m is a Go map[string]string" + wantValue}},
		"Fields inside": {"the same", func(w *WriteIntent) { w.Expect["m"] = Fields{} }, []string{"/expect/m is a Go intent.Fields" + wantValue}},
		"int in key":    {"the same", func(w *WriteIntent) { w.Key["n"] = 5 }, []string{"/key/n is a Go int" + wantValue}},
		"no number":     {"a json.Number can be any string", func(w *WriteIntent) { w.Expect["n"] = jsonNumber("1,5") }, []string{`/expect/n is "1,5", which is no JSON number; want a JSON number`}},
		"empty number":  {"the zero value", func(w *WriteIntent) { w.Expect["n"] = jsonNumber("") }, []string{`/expect/n is "", which is no JSON number; want a JSON number`}},
		"invalid UTF-8": {"a Go string can be any bytes", func(w *WriteIntent) { w.Expect["s"] = "a\xff" }, []string{"/expect/s is not valid UTF-8; want UTF-8 text; encode other bytes, for example as Base64"}},
		"invalid name":  {"the same", func(w *WriteIntent) { w.Expect["s\xff"] = 1 }, []string{`/expect has the member name "s\xff"; want 1 to 255 bytes of UTF-8 without control characters`}},
		"cyclic":        {"the traversal must end", func(w *WriteIntent) { w.Expect = Fields{"c": cyclic} }, []string{"/expect/c" + strings.Repeat("/me", 30) + " is nested too deep; want at most 32 levels"}},
		"wide":          {"the traversal must end soon", func(w *WriteIntent) { w.Expect["c"] = wide }, []string{"the intent has too many values; want at most 10000 in key, expect, payload and require together"}},
		"empty key":     {"not nil, and still nothing", func(w *WriteIntent) { w.Key = Fields{} }, []string{"/key is missing or empty; want at least one field by which the record can be looked up"}},
		"late deadline": {"RFC 3339 has four digits", func(w *WriteIntent) { w.Deadline = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, []string{"/deadline is in the year 10000; want a time in the years 1 to 9999"}},
		"seconds zone":  {"encoding is in UTC", func(w *WriteIntent) { w.Deadline = w.Deadline.In(time.FixedZone("LMT", 3208)) }, nil},
		"compensates":   {"the engine sets it", func(w *WriteIntent) { w.Compensates = strings.Repeat("a", 64) }, nil},
		"zero intent": {"everything at once, in order", func(w *WriteIntent) { *w = WriteIntent{} }, []string{
			"/destination is missing; want the name of a registered destination",
			"/key is missing or empty; want at least one field by which the record can be looked up",
			`/kind is missing; want the kind of record there ("order", "message")`,
			"/tenant is missing; want the name of the tenant that owns the write",
			"/tool is missing; want the name of the tool that is called",
			"/workflow is missing; want the name or ID of the workflow run",
			"/write is missing; want one of create, update, upsert, delete",
		}},
		"context": {"built in Go", func(w *WriteIntent) {
			w.Context = map[string]string{"a": "", "b": "x\ny", "c": "\xff", "": "v", "d": strings.Repeat("é", 129), "e": "Köln"}
		}, []string{
			"/context has a member without a name; want 1 to 255 bytes of UTF-8 without control characters",
			"/context/a is empty; want 1 to 256 bytes of UTF-8 without control characters",
			`/context/b is "x\ny"; want 1 to 256 bytes of UTF-8 without control characters`,
			`/context/c is "\xff"; want 1 to 256 bytes of UTF-8 without control characters`,
			"/context/d has 258 bytes; want 1 to 256 bytes of UTF-8 without control characters",
		}},
		"awkward path": {"names in paths are escaped, and brackets mean nothing", func(w *WriteIntent) { w.Expect["a/b~c[0].d"] = 5 }, []string{"/expect/a~1b~0c[0].d is a Go int" + wantValue}},
	} {
		t.Run(name, func(t *testing.T) {
			w := sample()
			tc.change(&w)
			if diff := cmp.Diff(tc.want, problemsOf(t, w.Validate())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A hostile intent must not write a megabyte of log.
func TestErrorTextIsBounded(t *testing.T) {
	w := sample()
	for i := range 5_000 {
		w.Expect[strings.Repeat("n", 200)+fmt.Sprint(i)] = i
	}
	err := w.Validate()
	problems := problemsOf(t, err)
	if len(problems) != maxValueProblems {
		t.Errorf("%d problems kept; want %d", len(problems), maxValueProblems)
	}
	if text := err.Error(); !strings.HasSuffix(text, "; and 80 more") {
		t.Errorf("the text ends %q", text[len(text)-40:])
	}
}

func TestComparisonValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		rules Comparison
		want  []string
	}{
		"none":    {nil, nil},
		"a chain": {Comparison{{Name: RuleTrim}, {Name: RuleFold}, {Name: RuleTime, Precision: "1ms", Zone: "America/New_York"}}, nil},
		"unknown": {Comparison{{Name: "near"}}, []string{`/0/rule is "near"; want one of trim, fold, crlf, unescape, text, empty, string, numeric, time, set`}},
		"misplaced": {Comparison{{Name: RuleSet}, {Name: RuleFold, Tolerance: "1"}}, []string{
			"/0 is set before the end of the list; want it as the last rule: it compares",
			`/1/tolerance is set on "fold", which does not use it; want it only on numeric`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problemsOf(t, tc.rules.Validate())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The struct tags repeat bounds of limits.go; they must be the same.
func TestTagsAgreeWithLimits(t *testing.T) {
	for field := range reflect.TypeFor[WriteIntent]().Fields() {
		if field.Type == reflect.TypeFor[[]string]() && !strings.HasPrefix(field.Tag.Get("validate"), fmt.Sprintf("max=%d,", MaxPaths)) {
			t.Errorf("%s: %s; want max=%d", field.Name, field.Tag.Get("validate"), MaxPaths)
		}
	}
	for _, rule := range []RuleName{RuleTrim, RuleFold, RuleCRLF, RuleUnescape, RuleText, RuleEmpty, RuleString, RuleNumeric, RuleTime, RuleSet} {
		if err := (Comparison{{Name: rule}}).Validate(); err != nil {
			t.Errorf("the rule %s is not known to its own tag: %v", rule, err)
		}
	}
}

// One validator serves every caller.
func TestValidateConcurrently(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			w := sample()
			w.Call = i
			if err := w.Validate(); err != nil {
				t.Error(err)
			}
			w.Tenant = ""
			if err := w.Validate(); err == nil {
				t.Error("an intent without a tenant passed")
			}
		})
	}
	all.Wait()
}

// Trap 34: null, missing and empty are three different things.
func TestLookup(t *testing.T) {
	f := Fields{
		"null": nil, "empty": "", "list": []any{"a", map[string]any{"x": nil}, []any{}}, "a/b": map[string]any{"m~n": true},
		"0": "zero", "object": map[string]any{},
	}
	for pointer, tc := range map[string]struct {
		value  any
		found  bool
		reason string
	}{
		"/null":                        {nil, true, "null is there"},
		"/missing":                     {nil, false, "missing is not"},
		"/empty":                       {"", true, "empty is there"},
		"/object":                      {map[string]any{}, true, "empty is there"},
		"/object/x":                    {nil, false, "nothing is in it"},
		"/null/x":                      {nil, false, "null holds nothing"},
		"/empty/x":                     {nil, false, "a string holds nothing"},
		"/list/0":                      {"a", true, "an element"},
		"/list/1/x":                    {nil, true, "null inside an element"},
		"/list/2":                      {[]any{}, true, "an empty array is there"},
		"/list/3":                      {nil, false, "past the end"},
		"/list/-":                      {nil, false, "the element after the last never is"},
		"/list/00":                     {nil, false, "RFC 6901 has no leading zeros"},
		"/list/+1":                     {nil, false, "nor signs"},
		"/list/-1":                     {nil, false, "nor signs"},
		"/list/x":                      {nil, false, "no index"},
		"/a~1b/m~0n":                   {true, true, "escapes"},
		"/a/b":                         {nil, false, "a slash in a name is escaped"},
		"/0":                           {"zero", true, "a member may look like an index"},
		"":                             {map[string]any(f), true, "the whole"},
		"null":                         {nil, false, "no pointer without a slash"},
		"/a~2b":                        {nil, false, "no such escape"},
		"/":                            {nil, false, "the member without a name"},
		"/list/1000000000000000000000": {nil, false, "no such index"},
	} {
		value, found := Lookup(f, pointer)
		if diff := cmp.Diff(tc.value, value); diff != "" || found != tc.found {
			t.Errorf("%q: found %v; want %v: %s\n%s", pointer, found, tc.found, tc.reason, diff)
		}
	}
	if _, found := Lookup(nil, "/a"); found {
		t.Error("nil fields hold nothing")
	}
	if p := Pointer("/a").AppendToken("b/c~d"); p != "/a/b~1c~0d" || !Pointer("/a").Contains(p) || Pointer("/a/b").Contains("/a/bc") {
		t.Errorf("pointers: %s", p)
	}
}
