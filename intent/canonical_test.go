package intent

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCanonical(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     any
		want   string
	}{
		"order of RFC 8785": {"names sort by UTF-16 code unit, so 😀 comes before U+FB33", map[string]any{
			"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
			"\U0001f600": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis",
		}, "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		"escapes":        {"only what must be escaped is", "\u20ac$\u000f\nA'B\"\\\"/<>&\u2028", "\"€$\\u000f\\nA'B\\\"\\\\\\\"/<>&\u2028\""},
		"fraction":       {"shortest form", json.Number("4.50"), "4.5"},
		"small":          {"shortest form", json.Number("2e-3"), "0.002"},
		"large":          {"exponents as in ECMAScript", json.Number("1E30"), "1e+30"},
		"tiny":           {"exponents as in ECMAScript", json.Number("0.000000000000000000000000001"), "1e-27"},
		"1.0":            {"trap 3", json.Number("1.0"), "1"},
		"1e0":            {"trap 3", json.Number("1e0"), "1"},
		"-0":             {"trap 3", json.Number("-0.0e5"), "0"},
		"zero, huge exp": {"zero is zero", json.Number("0e999999999999999999999"), "0"},
		"long zeros":     {"written long, and exact", json.Number("1.50000000000000000000000000"), "1.5"},
		"2^53":           {"exact", json.Number("9007199254740992"), "9007199254740992"},
		"1e21":           {"a double names it", json.Number("1000000000000000000000"), "1e+21"},
		"nil":            {"null is a value", nil, "null"},
		"nested":         {"inner members sort too", map[string]any{"b": []any{map[string]any{"z": 1, "a": true}}, "a": nil}, `{"a":null,"b":[{"a":true,"z":1}]}`},
		"Go values":      {"what Normalize takes", Fields{"t": time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), "s": []string{"x"}, "i": uint8(7)}, `{"i":7,"s":["x"],"t":"2026-01-02T03:04:05.0000006Z"}`},
		"no composition": {"trap 3: RFC 8785 leaves Unicode as it is", "e\u0301", "\"e\u0301\""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Canonical(tc.in)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v\nwant %s: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for name, tc := range map[string]struct {
		reason string
		in     any
		path   string
	}{
		"2^53+1":        {"its double is 2^53", Fields{"a": []any{json.Number("9007199254740993")}}, "/a/0"},
		"large int64":   {"the same, from Go", Fields{"a": int64(math.MaxInt64)}, "/a"},
		"many digits":   {"its double is another number", Fields{"a/b": json.Number("0.1234567890123456789")}, "/a~1b"},
		"too large":     {"its double is infinite", json.Number("1e400"), ""},
		"too small":     {"its double is zero", json.Number("1e-400"), ""},
		"no number":     {"a json.Number can be any string", json.Number("1 "), ""},
		"empty number":  {"the zero value of json.Number", json.Number(""), ""},
		"hex number":    {"Go reads it, JSON does not", json.Number("0x10"), ""},
		"NaN":           {"JSON has none", Fields{"a": math.NaN()}, "/a"},
		"invalid UTF-8": {"replacing bytes would merge values", Fields{"a": []any{"\xff"}}, "/a/0"},
		"in a name":     {"replacing bytes would merge names", Fields{"a": map[string]any{"\xff": 1}}, "/a"},
		"in a Go slice": {"the same on the way over JSON text", Fields{"a": []string{"ok", "\xff"}}, "/a/1"},
		"without end":   {"a traversal must end", cyclic, "/self/self"},
		"a channel":     {"JSON has none", Fields{"a": make(chan int)}, "/a"},
		"twice":         {"raw JSON is checked too", Fields{"a": json.RawMessage(`{"x":1,"x":2}`)}, "/a/x"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Canonical(tc.in)
			invalid, ok := errors.AsType[*InvalidError](err)
			if !ok {
				t.Fatalf("got %s, %v; want an InvalidError: %s", got, err, tc.reason)
			}
			path := invalid.Problems[0].Path
			if name == "without end" {
				path = path[:len("/self/self")]
			}
			if path != tc.path {
				t.Errorf("path %q; want %q", path, tc.path)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	type inner struct {
		X int `json:"x,omitempty"`
	}
	text := "t"
	berlin := time.FixedZone("", 3600)
	got, err := Normalize(Fields{
		"int": 5, "int64": int64(math.MinInt64), "uint64": uint64(math.MaxUint64), "float": 0.1, "float32": float32(0.1),
		"number": json.Number("1.50"), "raw": json.RawMessage(` {"b":1.0} `), "time": time.Date(2026, 1, 2, 3, 4, 5, 0, berlin),
		"strings": []string{"a"}, "nil slice": []string(nil), "nil map": map[string]int(nil), "nil pointer": (*string)(nil), "pointer": &text,
		"nested": Fields{"m": map[string]any{"deep": []any{1, nil}}}, "struct": inner{}, "structs": []inner{{X: 1}}, "bytes": []byte("hi"), "null": nil, "empty": "",
		"beyond": json.Number("9007199254740993"), "write": Create,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := func(s string) json.Number { return json.Number(s) }
	want := Fields{
		"int": n("5"), "int64": n("-9223372036854775808"), "uint64": n("18446744073709551615"), "float": n("0.1"), "float32": n("0.1"),
		"number": n("1.50"), "raw": map[string]any{"b": n("1.0")}, "time": "2026-01-02T03:04:05+01:00",
		"strings": []any{"a"}, "nil slice": []any{}, "nil map": map[string]any{}, "nil pointer": nil, "pointer": "t",
		"nested": map[string]any{"m": map[string]any{"deep": []any{n("1"), nil}}}, "struct": map[string]any{}, "structs": []any{map[string]any{"x": n("1")}}, "bytes": "aGk=", "null": nil, "empty": "",
		"beyond": n("9007199254740993"), "write": "create",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f, err := Normalize(nil); f != nil || err != nil {
		t.Errorf("nil gives %v, %v; want nil", f, err)
	}
}

func TestNormalizeSharesNothing(t *testing.T) {
	in := Fields{"a": map[string]any{"b": []any{"x"}}}
	out, err := Normalize(in)
	if err != nil {
		t.Fatal(err)
	}
	out["a"].(map[string]any)["b"].([]any)[0] = "changed"
	if diff := cmp.Diff(Fields{"a": map[string]any{"b": []any{"x"}}}, in); diff != "" {
		t.Errorf("the caller's fields changed:\n%s", diff)
	}
}

// Evidence is encoded by encoding/json; its numbers must not become floats.
func TestFieldsStayExactInEncodingJSON(t *testing.T) {
	var got struct{ F, Null, Missing Fields }
	if err := json.Unmarshal([]byte(`{"F":{"n":9007199254740993,"o":{"m":[1.0]}},"Null":null}`), &got); err != nil {
		t.Fatal(err)
	}
	want := Fields{"n": json.Number("9007199254740993"), "o": map[string]any{"m": []any{json.Number("1.0")}}}
	if diff := cmp.Diff(want, got.F); diff != "" || got.Null != nil || got.Missing != nil {
		t.Errorf("%v %v\n%s", got.Null, got.Missing, diff)
	}
	if err := json.Unmarshal([]byte(`{"F":{"n":1,"n":2}}`), &got); err == nil {
		t.Error("a repeated member passed")
	}
}
