package verify_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// FuzzDiff: for any record and intent, nothing panics, a record equals itself under any rules,
// and the result is deterministic.
func FuzzDiff(f *testing.F) {
	for _, seed := range []struct{ want, got, rules, path string }{
		{`{"a":1}`, `{"a":1.0}`, `[]`, "/a"},
		{`{"a":null,"b":""}`, `{"b":null}`, `[{"rule":"empty"}]`, "/b"},
		{`{"a":{"b/c":[1,{"d":"x"}]}}`, `{"a":{"b/c":[1,{"d":" X"}]}}`, `[{"rule":"trim"},{"rule":"fold"}]`, "/a/b~1c/1/d"},
		{`{"t":"2026-01-01"}`, `{"t":"2026-01-01T00:00:00+01:00"}`, `[{"rule":"time","precision":"24h","zone":"Europe/Berlin"}]`, "/t"},
		{`{"n":1e999}`, `{"n":1e999999999}`, `[{"rule":"string"},{"rule":"numeric","tolerance":"0.5"}]`, "/n"},
		{`{"s":[1,[2],{"x":3}]}`, `{"s":[{"x":3.0},1,[2],1]}`, `[{"rule":"set"}]`, "/s"},
		{`{"h":"a<b &amp; <!--"}`, `{"h":"<p>a&lt;b &amp;amp;"}`, `[{"rule":"unescape"},{"rule":"text"},{"rule":"crlf"}]`, "/h"},
		{`{"":{"":[[],{}]}}`, `[]`, `null`, ""},
	} {
		f.Add([]byte(seed.want), []byte(seed.got), []byte(seed.rules), seed.path)
	}
	f.Fuzz(func(t *testing.T, want, got, rules []byte, path string) {
		var a, b intent.Fields
		var c intent.Comparison
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil || json.Unmarshal(rules, &c) != nil {
			return // not JSON of the forms that are compared
		}
		w := intent.WriteIntent{Expect: a, Compare: map[string]intent.Comparison{path: c}}
		if found := verify.Diff(w, nil, a); len(found) != 0 {
			t.Errorf("%s differs from itself under %s at %q: %v", want, rules, path, found)
		}
		w.Absent = []string{path}
		once, again := verify.Diff(w, nil, b), verify.Diff(w, nil, b)
		if !reflect.DeepEqual(once, again) {
			t.Errorf("two answers:\n%v\n%v", once, again)
		}
		before := intent.WriteIntent{Write: intent.Update, Expect: a, Payload: b}
		obs := strong(named(record(t, "", `{}`), "A"))
		obs.Records[0].Fields = b
		for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			before.Write = write
			k := verify.Case{Intent: before, Before: &obs, Seen: obs}
			if j := verify.Judge(k); (write == intent.Update || write == intent.Upsert) && j.Verdict != verify.Verified && j.Verdict != verify.Stale {
				t.Errorf("a record that is as before is %s: %v", j.Verdict, j.Mismatches)
			}
			verify.JudgeBefore(k)
		}
	})
}

// BenchmarkDiff30 measures one comparison of a record of thirty fields, three of them under
// rules.
func BenchmarkDiff30(b *testing.B) {
	w := intent.WriteIntent{Key: intent.Fields{"id": "A-1"}, Expect: intent.Fields{}, Compare: map[string]intent.Comparison{}}
	got := intent.Fields{"id": "A-1", "etag": "x", "updated": "2026-01-01T00:00:00Z"}
	for i := range 24 {
		w.Expect[fmt.Sprintf("text_%d", i)] = "some value of a common length"
		got[fmt.Sprintf("text_%d", i)] = "some value of a common length"
	}
	for i := range 3 {
		w.Expect[fmt.Sprintf("number_%d", i)] = json.Number("199900")
		got[fmt.Sprintf("number_%d", i)] = json.Number("199900.0")
	}
	for name, values := range map[string][2]any{
		"trimmed": {"Ada Lovelace", "Ada Lovelace "},
		"at":      {"2026-03-01T10:00:00Z", "2026-03-01T11:00:00+01:00"},
		"amount":  {json.Number("19.99"), "19.990"},
	} {
		w.Expect[name], got[name] = values[0], values[1]
	}
	w.Compare["/trimmed"] = intent.Comparison{{Name: intent.RuleTrim}}
	w.Compare["/at"] = intent.Comparison{{Name: intent.RuleTime}}
	w.Compare["/amount"] = intent.Comparison{{Name: intent.RuleNumeric}}
	b.ReportAllocs()
	for b.Loop() {
		if found := verify.Diff(w, nil, got); len(found) != 0 {
			b.Fatal(found)
		}
	}
}
