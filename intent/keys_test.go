package intent

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample returns a valid intent with every member set.
func sample() WriteIntent {
	return WriteIntent{
		Tenant: "acme", Workflow: "wf_1a2b", Step: "order-17", Tool: "create_order", Call: 2,
		Destination: "acme/crm", Kind: "order", Key: Fields{"number": "A-17"}, Write: Upsert,
		Expect: Fields{"amount": json.Number("12.5")}, Absent: []string{"/old", "/gone"}, Payload: Fields{"notify": true},
		Require: Fields{"status": "open"}, Ignore: []string{"/updated_at", "/etag"},
		Compare: map[string]Comparison{"/amount": {{Name: RuleNumeric, Tolerance: "0.01"}}}, Count: 3,
		Risk: RiskLog, Reversibility: Compensable, OnMismatch: MismatchRetry,
		Deadline: time.Date(2030, 1, 31, 18, 0, 0, 0, time.UTC), IdempotencyKey: "wire:1", CorrelationID: "req-9",
		Sensitive: []string{"/amount"}, Context: map[string]string{"model": "m-1"},
	}
}

// changes has one change for every field of WriteIntent.
var changes = map[string]func(*WriteIntent){
	"Tenant":         func(w *WriteIntent) { w.Tenant = "other" },
	"Workflow":       func(w *WriteIntent) { w.Workflow = "wf_other" },
	"Step":           func(w *WriteIntent) { w.Step = "" },
	"Tool":           func(w *WriteIntent) { w.Tool = "other" },
	"Call":           func(w *WriteIntent) { w.Call = 3 },
	"Destination":    func(w *WriteIntent) { w.Destination = "other" },
	"Kind":           func(w *WriteIntent) { w.Kind = "invoice" },
	"Key":            func(w *WriteIntent) { w.Key = Fields{"number": "A-18"} },
	"Write":          func(w *WriteIntent) { w.Write = Update },
	"Expect":         func(w *WriteIntent) { w.Expect = Fields{"amount": json.Number("12.6")} },
	"Absent":         func(w *WriteIntent) { w.Absent = nil },
	"Payload":        func(w *WriteIntent) { w.Payload = nil },
	"Require":        func(w *WriteIntent) { w.Require = Fields{"status": nil} },
	"Ignore":         func(w *WriteIntent) { w.Ignore = []string{"/etag"} },
	"Compare":        func(w *WriteIntent) { w.Compare = map[string]Comparison{"/amount": {}} },
	"Count":          func(w *WriteIntent) { w.Count = 4 },
	"Risk":           func(w *WriteIntent) { w.Risk = RiskApprove },
	"Reversibility":  func(w *WriteIntent) { w.Reversibility = Retryable },
	"OnMismatch":     func(w *WriteIntent) { w.OnMismatch = MismatchCompensate },
	"Deadline":       func(w *WriteIntent) { w.Deadline = time.Time{} },
	"IdempotencyKey": func(w *WriteIntent) { w.IdempotencyKey = "" },
	"CorrelationID":  func(w *WriteIntent) { w.CorrelationID = "req-10" },
	"Sensitive":      func(w *WriteIntent) { w.Sensitive = []string{"/amount", "/number", "/nowhere"} },
	"Context":        func(w *WriteIntent) { w.Context = map[string]string{"model": "m-2"} },
	"Compensates":    func(w *WriteIntent) { w.Compensates = "5f2c" },
}

// Traps 1, 2 and 5: the structural key names the place of the write, nothing of its arguments,
// and the digest names the request and nothing else.
func TestWhatEachNameIsMadeFrom(t *testing.T) {
	structural := []string{"Tenant", "Workflow", "Step", "Tool", "Call", "Compensates"}
	neither := []string{"Deadline", "CorrelationID", "Sensitive", "Context"}
	before := sample()
	if err := before.Validate(); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[WriteIntent]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			change, ok := changes[field.Name]
			if !ok {
				t.Fatalf("no change for the new field %s: decide whether it is part of the digest", field.Name)
			}
			after := sample()
			change(&after)
			if err := after.Validate(); err != nil {
				t.Fatal(err)
			}
			inKey := slices.Contains(structural, field.Name)
			inDigest := !inKey && !slices.Contains(neither, field.Name)
			if changed := before.StructuralKey() != after.StructuralKey(); changed != inKey {
				t.Errorf("structural key changed: %v; want %v", changed, inKey)
			}
			if changed := before.Stamp() != after.Stamp(); changed != inKey {
				t.Errorf("stamp changed: %v; want %v", changed, inKey)
			}
			if changed := digest(t, before) != digest(t, after); changed != inDigest {
				t.Errorf("digest changed: %v; want %v", changed, inDigest)
			}
		})
	}
}

func digest(t *testing.T, w WriteIntent) string {
	t.Helper()
	d, err := w.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEqualIntentsHaveOneDigest(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*WriteIntent)
	}{
		"count 1":         {"1 is the default", func(w *WriteIntent) { w.Count = 1 }},
		"risk auto":       {"auto is the default", func(w *WriteIntent) { w.Risk = RiskAuto }},
		"pivot":           {"pivot is the default", func(w *WriteIntent) { w.Reversibility = Pivot }},
		"escalate":        {"escalate is the default", func(w *WriteIntent) { w.OnMismatch = MismatchEscalate }},
		"empty parts":     {"an empty part says nothing", func(w *WriteIntent) { w.Payload, w.Require = Fields{}, Fields{} }},
		"empty lists":     {"an empty list says nothing", func(w *WriteIntent) { w.Compare = map[string]Comparison{}; w.Require = nil }},
		"order of absent": {"a list of paths is a set", func(w *WriteIntent) { w.Absent = []string{"/b", "/a"} }},
		"order of ignore": {"a list of paths is a set", func(w *WriteIntent) { w.Ignore = []string{"/y", "/x"} }},
		"1.0":             {"trap 3: a number is its value", func(w *WriteIntent) { w.Expect["n"] = json.Number("1.0") }},
		"1e0":             {"trap 3: a number is its value", func(w *WriteIntent) { w.Expect["n"] = json.Number("1e0") }},
		"-0":              {"trap 3: minus zero is zero", func(w *WriteIntent) { w.Expect["z"] = json.Number("-0") }},
		"a Go int":        {"the value of a Go int is its number", func(w *WriteIntent) { w.Expect["n"] = 1 }},
		"default tolerance": {"0 is the default, however written", func(w *WriteIntent) {
			w.Compare = map[string]Comparison{"/n": {{Name: RuleNumeric, Tolerance: "0.00"}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			plain := func() WriteIntent {
				w := sample()
				w.Count, w.Risk, w.Reversibility, w.OnMismatch, w.Payload, w.Require, w.Compare = 0, "", "", "", nil, nil, nil
				w.Absent, w.Ignore = []string{"/a", "/b"}, []string{"/x", "/y"}
				w.Expect = Fields{"n": json.Number("1"), "z": json.Number("0")}
				if name == "default tolerance" {
					w.Compare = map[string]Comparison{"/n": {{Name: RuleNumeric}}}
				}
				return w
			}
			changed := plain()
			tc.change(&changed)
			if digest(t, plain()) != digest(t, changed) {
				t.Errorf("another digest, though %s", tc.reason)
			}
		})
	}
}

func TestDifferentIntentsHaveDifferentDigests(t *testing.T) {
	seen := map[string]string{}
	add := func(name string, expect Fields, change func(*WriteIntent)) {
		w := sample()
		w.Compare, w.Expect = nil, expect
		if change != nil {
			change(&w)
		}
		d := digest(t, w)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
	for name, value := range map[string]any{
		"null": nil, "empty string": "", "false": false, "zero": json.Number("0"), "zero string": "0", "one": json.Number("1"),
		"empty array": []any{}, "array of null": []any{nil}, "empty object": map[string]any{}, "object of null": map[string]any{"a": nil},
		"composed": "\u00e9", "decomposed": "e\u0301", "order": []any{"a", "b"}, "other order": []any{"b", "a"}, "a,b": []any{"a,b"},
	} {
		add(name, Fields{"a": value, "b": true}, nil)
	}
	add("missing", Fields{"b": true}, nil)
	add("moved to payload", Fields{"b": true}, func(w *WriteIntent) { w.Payload = Fields{"notify": true, "a": nil} })
	add("exact", Fields{"b": true}, func(w *WriteIntent) { w.Compare = map[string]Comparison{"/b": {}} })
	add("trim, fold", Fields{"b": true}, func(w *WriteIntent) {
		w.Compare = map[string]Comparison{"/b": {{Name: RuleTrim}, {Name: RuleFold}}}
	})
	add("fold, trim", Fields{"b": true}, func(w *WriteIntent) {
		w.Compare = map[string]Comparison{"/b": {{Name: RuleFold}, {Name: RuleTrim}}}
	})
	add("a zone", Fields{"b": true}, func(w *WriteIntent) {
		w.Compare = map[string]Comparison{"/b": {{Name: RuleTime, Zone: "Europe/Berlin"}}}
	})
}

// The names are on disk and at destinations: changing how they are made would make every
// earlier write a new one.
func TestNamesStayWhatTheyAre(t *testing.T) {
	w := sample()
	undo := w
	undo.Compensates = w.StructuralKey()
	got := map[string]string{
		"structural key":  w.StructuralKey(),
		"of compensation": undo.StructuralKey(),
		"digest":          digest(t, w),
		"stamp":           w.Stamp(),
		"send key":        SendKey(w.StructuralKey(), 0),
	}
	want := map[string]string{ // made by another program from the doc comments
		"structural key":  "8a53a14d45bed17d279825b4ad7962113414f374a8627bb32ba9051c867739d3",
		"of compensation": "95d0acbfeda71b1bae499354de282e80576eb53d89f3b60a5da32b248c22f902",
		"digest":          "42a1281e3ad1a644799db123bbf90a2d34da9e73f30ebd448f45a8ab40027d61",
		"stamp":           "rb-duo2ulwv2e6b76tnhexqmjazo6d2fe5k",
		"send key":        "rbk-pfl4pqerpasid6ytzadozhrlbsj5pkg5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Ambiguous concatenation would let one tenant name another's write.
func TestStructuralKeyKeepsPartsApart(t *testing.T) {
	seen := map[string]WriteIntent{}
	for _, w := range []WriteIntent{
		{Tenant: "a", Workflow: "b"}, {Tenant: "ab"}, {Workflow: "ab"}, {Tenant: "a", Step: "b"}, {Tenant: "a", Tool: "b"},
		{Tenant: "a,1:b"}, {Tenant: "1:a,", Workflow: "b"}, {Tenant: "a", Call: 1}, {Tenant: "a", Call: 11}, {Tenant: "a", Call: 1, Compensates: "1"},
		{Tenant: "a", Tool: "b1"}, {Tenant: "a", Tool: "b", Call: 1}, {Tenant: "a", Tool: "b", Compensates: "0"}, {Tenant: "a\xff"}, {Tenant: "a\ufffd"},
	} {
		key := w.StructuralKey()
		if other, ok := seen[key]; ok {
			t.Errorf("%+v and %+v have one structural key", w, other)
		}
		seen[key] = w
	}
}

func TestStampIsSafeWhereItIsWritten(t *testing.T) {
	stamp := sample().Stamp()
	if !regexp.MustCompile(`^rb-[a-z2-7]{32}$`).MatchString(stamp) {
		t.Errorf("stamp %q", stamp)
	}
	if a, err := mail.ParseAddress(stamp + "@example.org"); err != nil || a.Address != stamp+"@example.org" {
		t.Errorf("as a local part: %v, %v", a, err)
	}
}

func TestSendKeys(t *testing.T) {
	structural := sample().StructuralKey()
	seen := map[string]bool{}
	for generation := range 50 {
		key := SendKey(structural, generation)
		if key != SendKey(structural, generation) {
			t.Errorf("generation %d has two keys", generation)
		}
		if len(key) > 64 || seen[key] {
			t.Errorf("generation %d: key %q is too long or another's", generation, key)
		}
		seen[key] = true
	}
	other := sample()
	other.Call++
	if seen[SendKey(other.StructuralKey(), 0)] {
		t.Error("two writes have one send key")
	}
}

// The iteration order of maps must not matter.
func TestDigestDoesNotDependOnMemory(t *testing.T) {
	first := ""
	for range 20 {
		w := sample()
		w.Expect = Fields{}
		for i := range 40 {
			w.Expect[fmt.Sprint("f", i)] = maps.Clone(map[string]any{"x": "1", "y": "2", "z": "3"})
		}
		d := digest(t, w)
		if first == "" {
			first = d
		}
		if d != first {
			t.Fatal("one intent, two digests")
		}
	}
}

// Trap 3: another order and another spelling name the same write.
func TestNamesDoNotDependOnTheText(t *testing.T) {
	one, err1 := Decode([]byte(`{"tenant":"acme","workflow":"w","tool":"t","destination":"d","kind":"k","key":{"a":1,"b":"x"},"write":"create","expect":{"m":{"p":1,"q":2.50}}}`))
	two, err2 := Decode([]byte("\n{\"expect\":{\"m\":{\"q\":25e-1,\"\\u0070\":1.0}}, \"write\":\"create\",\"key\":{\"b\":\"\\u0078\",\"a\":1e0},\"kind\":\"k\",\"destination\":\"d\",\"count\":1,\"tool\":\"t\",\"call\":0,\"workflow\":\"w\",\"tenant\":\"acme\"} "))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if one.StructuralKey() != two.StructuralKey() || digest(t, one) != digest(t, two) {
		t.Errorf("two texts of one intent have two names:\n%+v\n%+v", one, two)
	}
}
