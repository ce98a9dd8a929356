package intent

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const minimal = `{"tenant":"acme","workflow":"w","tool":"t","destination":"d","kind":"k","key":{"id":1},"write":"create","expect":%s}`

// problemsOf decodes and returns the problems, one line each.
func problemsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok {
		t.Fatalf("%v (%T) is no InvalidError", err, err)
	}
	var lines []string
	for _, p := range invalid.Problems {
		lines = append(lines, p.String())
	}
	return lines
}

func TestStoredKeyIsTheKey(t *testing.T) {
	for text, want := range map[string]Fields{
		`{"destination":"d","expect":{"key":{"id":"no"},"list":[{"key":1}]},"key":{"id":17,"of":{"mail":"a@b"}},"kind":"k"}`: {"id": jsonNumber("17"), "of": map[string]any{"mail": "a@b"}},
		`{"key":{}}`: {}, `{"key":"A-1"}`: nil, `{"key":null}`: nil, `{"kind":"key"}`: nil, `{}`: nil, `["key",{"id":1}]`: nil, `{"key":{"id":`: nil, `{"a"`: nil, ``: nil,
	} {
		if diff := cmp.Diff(want, StoredKey([]byte(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestDecodeKeepsValues(t *testing.T) {
	w, err := Decode([]byte(`{"tenant":"acme","workflow":"w","tool":"t","destination":"d","kind":"k","key":{"id":1.0},"write":"create",
		"expect":{"a":{"list":[1e2,"x",null,true,{"y":0.10}]}},"deadline":"2030-01-31T18:00:00+02:00","compare":{"/a~1b":[{"rule":"time","precision":"1s"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	n := func(s string) any { return jsonNumber(s) }
	want := WriteIntent{
		Tenant: "acme", Workflow: "w", Tool: "t", Destination: "d", Kind: "k", Key: Fields{"id": n("1")}, Write: Create,
		Expect:   Fields{"a": map[string]any{"list": []any{n("100"), "x", nil, true, map[string]any{"y": n("0.1")}}}},
		Deadline: time.Date(2030, 1, 31, 16, 0, 0, 0, time.UTC),
		Compare:  map[string]Comparison{"/a~1b": {{Name: RuleTime, Precision: "1s"}}},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each bound has an intent that just fits and one that does not.
func TestBounds(t *testing.T) {
	nest := func(levels int) string { // the intent and expect are two levels
		return `{"a":` + strings.Repeat("[", levels-2) + strings.Repeat("]", levels-2) + `}`
	}
	many := func(values int) string { // one for the key, one for the array
		return `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", values-2), ",") + `]}`
	}
	long := func(size int) string {
		return `{"a":"` + strings.Repeat("x", size-len(fmt.Sprintf(minimal, `{"a":""}`))) + `"}`
	}
	for name, tc := range map[string]struct {
		reason    string
		fits, not string
		want      string
	}{
		"depth":   {"recursion ends", nest(MaxDepth), nest(MaxDepth + 1), "nested too deep; want at most 32 levels"},
		"members": {"a comparison ends", many(MaxMembers), many(MaxMembers + 1), "the intent has too many values; want at most 10000 in key, expect, payload and require together"},
		"size":    {"the ledger keeps it", long(MaxSize), long(MaxSize + 1), "the intent has 1048577 bytes; want at most 1048576"},
		"bomb":    {"nothing is built from it", nest(MaxDepth), nest(MaxSize / 4), "nested too deep"},
		"grown":   {"numbers grow in canonical form", `{"a":1e20}`, `{"a":"` + strings.Repeat("x", 900_000) + `","b":[` + strings.TrimSuffix(strings.Repeat("1e20,", 9_000), ",") + `]}`, "bytes in canonical form; want at most 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(fmt.Appendf(nil, minimal, tc.fits)); err != nil {
				t.Errorf("what fits is refused (%s): %.200v", tc.reason, err)
			}
			_, err := Decode(fmt.Appendf(nil, minimal, tc.not))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %.300v; want %q: %s", err, tc.want, tc.reason)
			}
			if !errors.Is(err, ErrInvalid) {
				t.Error("the error is not ErrInvalid")
			}
		})
	}
}

// The depth is checked before the types: nothing deep is ever built.
func TestDepthOfWhatHasNoDepth(t *testing.T) {
	deep := `{"tenant":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`
	if err := second(Decode([]byte(deep))); err == nil || !strings.Contains(err.Error(), "is nested too deep") {
		t.Errorf("%d levels under tenant: %v", MaxDepth+1, err)
	}
}

// An intent with too many values is refused while it is read, whatever follows: nothing is
// built from it.
func TestTooManyAreRefusedWhileTheyAreRead(t *testing.T) {
	const broken = "%%" // is never reached
	many := func(open, value string) string {
		var b strings.Builder
		b.WriteString(open)
		for i := range 80_000 {
			fmt.Fprintf(&b, value+",", i)
		}
		return b.String() + broken
	}
	for name, c := range map[string]struct{ text, want string }{
		"members of a field": {many(`{"tenant":"acme","expect":{"a":{`, `"m%d":1`), "has too many values; want at most 10000 in key, expect, payload and require together"},
		"members of expect":  {many(`{"tenant":"acme","expect":{`, `"m%d":{}`), "has too many values; want at most 10000"},
		"over several parts": {many(`{"key":{"a":[`+strings.Repeat("1,", 5_000)+`1]},"payload":{"b":[`, `%d`), "has too many values; want at most 10000"},
		"of the intent":      {many(`{"tenant":"acme",`, `"m%d":1`), "has more than 64 members; want those of the contract alone"},
		"of a comparison":    {many(`{"tenant":"acme","compare":{`, `"/m%d":[]`), "/compare has too many values; want at most 20000 beside key"},
		"of a list of paths": {many(`{"tenant":"acme","ignore":[`, `"/m%d"`), "/ignore has too many values; want at most 20000 beside key"},
	} {
		if _, err := Decode([]byte(c.text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v; want %q", name, err, c.want)
		}
	}
	rules := `[` + strings.TrimSuffix(strings.Repeat(`{"rule":"time","precision":"1s"},`, MaxRules), ",") + `]`
	var compare strings.Builder // the allowed maximum is read
	for i := range MaxPaths {
		fmt.Fprintf(&compare, `"/a%d":%s,`, i, rules)
	}
	if err := scan([]byte(`{"compare":{` + strings.TrimSuffix(compare.String(), ",") + `}}`)); err != nil {
		t.Errorf("the largest comparison is refused: %v", err)
	}
}

// A long name above many values must not be copied once for each of them.
func TestLongNamesCostNothing(t *testing.T) {
	name := strings.Repeat("n", 500_000)
	data := fmt.Appendf(nil, minimal, `{"`+name+`":[`+strings.TrimSuffix(strings.Repeat("null,", MaxMembers-2), ",")+`]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(data)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("a member name of %d bytes passed: %v", len(name), err)
	}
	if allocated, most := after.TotalAlloc-before.TotalAlloc, uint64(100<<20); allocated > most {
		t.Errorf("%d bytes allocated for %d received; want at most %d", allocated, len(data), most)
	}
}

func TestCompensatesIsTheEnginesAlone(t *testing.T) {
	w := sample()
	w.Compensates = w.StructuralKey()
	encoded, err := w.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/compensates is set; want it left out; only the engine sets it"}, problemsOf(t, second(Decode(encoded)))); diff != "" {
		t.Errorf("from outside: %s", diff)
	}
	again, err := DecodeStored(encoded)
	if err != nil || again.Compensates != w.Compensates {
		t.Errorf("from the ledger: %q, %v", again.Compensates, err)
	}
}

func TestDecodeStoredIsStrictToo(t *testing.T) {
	for name, data := range map[string]string{
		"unknown member":  `{"tenant":"acme","more":1}`,
		"repeated member": `{"tenant":"acme","tenant":"acme"}`,
		"incomplete":      `{"tenant":"acme"}`,
	} {
		if _, err := DecodeStored([]byte(data)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEncodeStaysWhatItIs(t *testing.T) {
	w := sample()
	w.Deadline = w.Deadline.In(time.FixedZone("", 2*3600))
	got, err := w.Encode()
	want := `{"absent":["/old","/gone"],"call":2,"compare":{"/amount":[{"rule":"numeric","tolerance":"0.01"}]},"context":{"model":"m-1"},"correlation_id":"req-9","count":3,` +
		`"deadline":"2030-01-31T18:00:00Z","destination":"acme/crm","expect":{"amount":12.5},"idempotency_key":"wire:1","ignore":["/updated_at","/etag"],` +
		`"key":{"number":"A-17"},"kind":"order","on_mismatch":"retry","payload":{"notify":true},"require":{"status":"open"},"reversibility":"compensable",` +
		`"risk":"log","sensitive":["/amount"],"step":"order-17","tenant":"acme","tool":"create_order","workflow":"wf_1a2b","write":"upsert"}`
	if string(got) != want || err != nil {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
	checkStable(t, sample())
}

func second[A, B any](_ A, b B) B { return b }

// Parse is as strict about the text as Decode, and leaves what is missing to be filled in.
func TestParse(t *testing.T) {
	w, err := Parse([]byte(`{"tool":"charge","key":{"n":1.50}}`))
	if err != nil || w.Tool != "charge" || w.Tenant != "" || fmt.Sprint(w.Key["n"]) != "1.50" {
		t.Errorf("%+v, %v", w, err)
	}
	for name, text := range map[string]string{
		"null": `{"tenant":null}`, "an empty name": `{"tenant":""}`, "a member twice": `{"tool":"a","tool":"b"}`, "an unknown member": `{"tols":"a"}`,
		"no object": `[]`, "more after it": `{}{}`, "what the engine sets": `{"compensates":"a"}`, "too large": `{"tool":"` + strings.Repeat("a", MaxSize) + `"}`,
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
