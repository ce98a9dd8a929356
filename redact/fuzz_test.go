package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// FuzzSealOpen: a sealed value opens to the original, only for its own write; no string at a
// marked place is left in the sealed text, wherever else it occurred.
func FuzzSealOpen(f *testing.F) {
	f.Add(`{"a":"secret value","b":{"a":"xx secret value"},"n":12345.50,"c":[true,null,{"d":"4111111111111111"}]}`, "/a")
	f.Add(`{"a":{"b":[1,"two",{}]},"rbs1:x":"rbs1:y"}`, "/a/b/1")
	f.Add(`{"a~b":{"c/d":"Köln \u2028 Straße"},"z":"KÖLN \u2028 STRASSE"}`, "/a~0b/c~1d")
	f.Add(`{"a":1e400,"b":"1e400","":{"":"x"}}`, "/a")
	v := vault(f, []Key{key("k1", 1), key("k0", 9)}, cards)
	f.Fuzz(func(t *testing.T, text, path string) {
		var in intent.Fields
		if !utf8.ValidString(path) || !intent.Pointer(path).IsValid() || path == "" || json.Unmarshal([]byte(text), &in) != nil || in == nil {
			return
		}
		seen := connectors.Observation{Records: []connectors.Record{{Ref: "r/" + path, Fields: in}}}
		s := v.Scope("acme", "wr_1", []string{path})
		sealed, err := s.SealObservation(seen)
		if err != nil {
			t.Fatal(err)
		}
		noneLeft(t, sealed, in, path)
		plain, err := v.Scope("acme", "wr_1").Open(sealed)
		if err != nil {
			t.Fatalf("%s: %v", sealed, err)
		}
		var got connectors.Observation
		if err := json.Unmarshal(plain, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(seen, got); diff != "" {
			t.Errorf("opened (-want +got):\n%s", diff)
		}
		if Sealed(sealed) {
			for _, other := range []*Scope{v.Scope("acme", "wr_2"), v.Scope("acm", "ewr_1"), (*Vault)(nil).Scope("acme", "wr_1")} {
				if opened, err := other.Open(sealed); err == nil {
					t.Errorf("opened elsewhere: %s", opened)
				}
			}
		}
		if shown := Shown(sealed); bytes.Contains(shown, []byte(Prefix+"k1:")) || !json.Valid(shown) {
			t.Errorf("shown: %s", shown)
		}
	})
}

// noneLeft searches all values for the strings below a marked place.
func noneLeft(t *testing.T, sealed []byte, in intent.Fields, path string) {
	t.Helper()
	marked, there := intent.Lookup(in, path)
	if !there {
		return
	}
	var secrets, values []string
	strs(marked, &secrets)
	v, err := decoded(sealed)
	if err != nil {
		t.Fatal(err)
	}
	strs(v, &values)
	for _, secret := range secrets {
		if len([]rune(secret)) < minLiteral {
			continue
		}
		for _, value := range values {
			if !strings.HasPrefix(value, Prefix+"k1:") && strings.Contains(strings.ToLower(value), strings.ToLower(secret)) {
				t.Errorf("%q is left in %q of %s", secret, value, sealed)
			}
		}
	}
}

// strs lists all strings and numbers that are values.
func strs(v any, all *[]string) {
	switch v := v.(type) {
	case string:
		*all = append(*all, v)
	case json.Number:
		*all = append(*all, string(v))
	case map[string]any:
		for _, inner := range v {
			strs(inner, all)
		}
	case []any:
		for _, inner := range v {
			strs(inner, all)
		}
	}
}

var shownExpr = regexp.MustCompile(ShownPrefix + `[0-9a-f]{16}`)

// FuzzText: no sentence reveals a value, in any case, and a sentence without one is unchanged.
func FuzzText(f *testing.F) {
	f.Add("secret", "the Secret is secret", "x@y")
	f.Add("a\"b\\c", `{"x":"a\"b\\c"}`, "zz")
	f.Add("ſtraße", "STRASSE ſtraße Straße", "")
	f.Add("aaaa", "aaaaaaa", "aaa")
	v := vault(f, []Key{key("k1", 1)})
	f.Fuzz(func(t *testing.T, value, before, after string) {
		if !utf8.ValidString(value+before+after) || len([]rune(value)) < minLiteral || len(value) > maxLiteral {
			return
		}
		s := v.Scope("acme", "w", []string{"/a"})
		s.Learn(intent.Fields{"a": value})
		for _, way := range ways(value, false) {
			got := s.Text(before + way + after)
			rest := shownExpr.ReplaceAllString(got, "\x00") // digits of a digest and the text after it can match by chance
			if strings.Contains(strings.ToLower(rest), strings.ToLower(value)) {
				t.Errorf("%q contains %q", got, value)
			}
		}
		if got := s.Text(before); !s.Reveals(before) && got != before {
			t.Errorf("%q became %q, which hid nothing", before, got)
		}
	})
}

// FuzzToken: an invalid token is never opened, and never panics.
func FuzzToken(f *testing.F) {
	v := vault(f, []Key{key("k1", 1)})
	good, _ := v.Scope("acme", "w").Seal("x")
	f.Add(good)
	f.Add(Prefix + "k1:" + strings.Repeat("0", 64) + ":" + strings.Repeat("A", 38))
	f.Add(Prefix)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := v.Scope("acme", "w").OpenName(text)
		if strings.HasPrefix(text, Prefix) && err == nil && got != "x" {
			t.Errorf("%q was opened as %q", text, got)
		}
		_ = ShownText(text)
	})
}
