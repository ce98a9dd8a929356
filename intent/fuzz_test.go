package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// FuzzDecode: no input causes a panic. Every refusal names places and remedies. An accepted
// intent passes the schema too, is stored and read back unchanged, and keeps its names.
func FuzzDecode(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		for _, file := range files(f, folder) {
			f.Add(read(f, file))
		}
	}
	schema := resolvedSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Decode(data)
		if err != nil {
			checkProblems(t, err)
			return
		}
		if err := schemaAccepts(schema, data); err != nil {
			t.Errorf("the schema refuses what Decode takes: %v", err)
		}
		checkStable(t, w)
	})
}

func checkProblems(t *testing.T, err error) {
	t.Helper()
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok || len(invalid.Problems) == 0 || !errors.Is(err, ErrInvalid) {
		t.Fatalf("%v (%T); want an InvalidError", err, err)
	}
	for _, p := range invalid.Problems {
		if !Pointer(p.Path).IsValid() || p.Problem == "" || p.Want == "" {
			t.Errorf("an incomplete problem: %+v", p)
		}
	}
}

// FuzzCanonical: canonical JSON of canonical JSON is itself, means the same value, and does not
// depend on the spelling of the value. That of an intent is the same as that of any value.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`null`, `-0`, `1.0`, `1e21`, `5e-324`, `"\u00e9\ud83d\ude00\u2028"`, `{"b":1,"a":[{"z":null,"y":0.10}],"":""}`,
		`{"\ud83d\ude00":1,"\ufb33":2}`, `9007199254740993`, `[[[]],{}]`, `1E400`, "\"\x7f\"", `0e99999999999999999999`,
		`["\"",1e400]`, `[1,{"a":-0.1234567890123456789}]`, strings.Repeat("[", maxNormalizedDepth) + strings.Repeat("]", maxNormalizedDepth),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := WriteIntent{Tenant: "acme", Expect: Fields{"value": json.RawMessage(data)}}
		fast, errFast := w.Encode()
		slow, errSlow := Canonical(w)
		if !bytes.Equal(fast, slow) || fmt.Sprint(errFast) != fmt.Sprint(errSlow) {
			t.Errorf("an intent with %s is encoded as %s (%v), and as any value as %s (%v)", data, fast, errFast, slow, errSlow)
		}
		once, err := Canonical(json.RawMessage(data))
		if err != nil {
			checkProblems(t, err)
			return
		}
		again, err := Canonical(json.RawMessage(once))
		if err != nil || !bytes.Equal(once, again) {
			t.Errorf("canonical of %s is %s (%v)", once, again, err)
		}
		var ordinary any // through doubles, as other programs read it
		if err := json.Unmarshal(data, &ordinary); err != nil {
			t.Fatalf("canonical JSON of what is no JSON: %q: %v", data, err)
		}
		respelled, err := json.MarshalIndent(ordinary, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		other, err := Canonical(json.RawMessage(respelled))
		if err != nil || !bytes.Equal(once, other) {
			t.Errorf("%s and %s are one value, and give\n%s\n%s (%v)", data, respelled, once, other, err)
		}
	})
}
