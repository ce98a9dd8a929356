package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

func key(id string, b byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{b}, KeySize)} }

func vault(t testing.TB, keys []Key, patterns ...Pattern) *Vault {
	t.Helper()
	v, err := New(keys, Options{Patterns: patterns})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var cards = Pattern{"card", regexp.MustCompile(`\b4[0-9]{15}\b`)}

func fields(t testing.TB, text string) intent.Fields {
	t.Helper()
	var f intent.Fields
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// sample is an intent with sensitive values of every kind.
func sample(t testing.TB) intent.WriteIntent {
	t.Helper()
	return intent.WriteIntent{
		Tenant: "acme", Workflow: "wf-1", Tool: "pay", Destination: "crm", Kind: "order", Write: intent.Create,
		Key:       fields(t, `{"iban":"DE02120300000000202051","line":1}`),
		Expect:    fields(t, `{"iban":"DE02120300000000202051","amount":129.5,"vip":true,"address":{"street":"Birkenweg 9","zip":null},"note":"call Birkenweg 9 first"}`),
		Payload:   fields(t, `{"cards":["4111111111111111",{"n":4242424242424242}]}`),
		Sensitive: []string{"/iban", "/amount", "/vip", "/address", "/cards/1/nothing"},
		Context:   map[string]string{"model": "m-1", "said": "pay DE02120300000000202051 now"},
	}
}

func TestNewRefusesWhatCannotBeAKey(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		keys     []Key
		patterns []Pattern
		want     string
	}{
		"none":          {"nothing could be sealed", nil, nil, "there is no key"},
		"short":         {"a password is no key", []Key{{"a", []byte("secret")}}, nil, `"a" has 6 bytes; want 32`},
		"zeros":         {"a file that was never filled", []Key{key("a", 0)}, nil, "all zeros"},
		"id":            {"it is part of a token", []Key{key("a:b", 1)}, nil, `the id is "a:b"`},
		"twice":         {"which one opens?", []Key{key("a", 1), key("a", 2)}, nil, `"a" is there twice`},
		"the same":      {"a rotation that is none, and an id that opens nothing of its own", []Key{key("a", 1), key("b", 1)}, nil, `"b" is the same key as "a"`},
		"pattern":       {"its finds would have no name", []Key{key("a", 1)}, []Pattern{{"", cards.Regexp}}, "want a name"},
		"empty pattern": {"everything would be sensitive", []Key{key("a", 1)}, []Pattern{{"x", regexp.MustCompile(`x*`)}}, "finds the empty text"},
	} {
		_, err := New(tc.keys, Options{Patterns: tc.patterns})
		if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s (%s): %v; want %q", name, tc.reason, err, tc.want)
		}
	}
}

func TestIntentIsSealedAndOpened(t *testing.T) {
	v, w := vault(t, []Key{key("k1", 1)}, cards), sample(t)
	stored, err := v.Scope("acme", "wr_1").SealIntent(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"DE0212", "129.5", "Birkenweg", "4111111111111111", "4242424242424242"} {
		if bytes.Contains(stored, []byte(secret)) {
			t.Errorf("%s is in %s", secret, stored)
		}
	}
	outside := regexp.MustCompile(Prefix+`[^"]*`).ReplaceAll(stored, nil) // ciphertext has every short word at times
	for _, secret := range []string{"true", "zip"} {
		if bytes.Contains(outside, []byte(secret)) {
			t.Errorf("%s is in %s", secret, outside)
		}
	}
	shut, err := intent.DecodeStored(stored)
	if err != nil {
		t.Fatalf("what is sealed is no intent any more: %v", err)
	}
	if shut.Key["line"] != json.Number("1") || shut.Context["model"] != "m-1" {
		t.Errorf("more is sealed than is sensitive: %s", stored)
	}
	got, err := v.Scope("acme", "wr_1").OpenIntent(stored)
	if err != nil {
		t.Fatal(err)
	}
	want := w
	want.Sensitive, want.Context = Marks(w.Sensitive), got.Context
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if digestOf(t, w) != digestOf(t, got) {
		t.Error("the digest of what was opened is another one")
	}
	if shown := got.Context["said"]; !strings.HasPrefix(shown, "pay redacted:") || !strings.HasSuffix(shown, " now") {
		t.Errorf("the context says %q", shown)
	}
	if s := string(Shown(stored)); strings.Contains(s, Prefix) || !strings.Contains(s, `"amount":"redacted:`) {
		t.Errorf("shown: %s", s)
	}
}

func digestOf(t *testing.T, w intent.WriteIntent) string {
	t.Helper()
	d, err := w.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTokensCannotBeMoved(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)})
	token, err := v.Scope("acme", "wr_1").Seal("secret value")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Scope("acme", "wr_1").OpenName(token); got != "secret value" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	parts := strings.Split(token, ":")
	altered := strings.Join([]string{parts[0], parts[1], strings.Repeat("0", 64), parts[3]}, ":")
	for name, tc := range map[string]struct {
		reason string
		vault  *Vault
		tenant string
		write  string
		token  string
		want   error
	}{
		"other write":   {"it is bound to its write", v, "acme", "wr_2", token, ErrToken},
		"other tenant":  {"and to its tenant", v, "other", "wr_1", token, ErrToken},
		"other digest":  {"what is compared belongs to what is sealed", v, "acme", "wr_1", altered, ErrToken},
		"cut":           {"half a token", v, "acme", "wr_1", token[:len(token)-1], ErrToken},
		"longer":        {"strict parsing", v, "acme", "wr_1", token + "=", ErrToken},
		"no token":      {"it only begins so", v, "acme", "wr_1", Prefix + "x", ErrToken},
		"other key":     {"the id of another key", vault(t, []Key{key("k2", 1)}), "acme", "wr_1", token, ErrNoKey},
		"no vault":      {"nothing to open it with", nil, "acme", "wr_1", token, ErrNoKey},
		"another k1":    {"an id was given twice", vault(t, []Key{key("k1", 2)}), "acme", "wr_1", token, ErrToken},
		"upper-case id": {"ids are exact", v, "acme", "wr_1", strings.Replace(token, "k1", "K1", 1), ErrNoKey},
	} {
		got, err := tc.vault.Scope(tc.tenant, tc.write).OpenName(tc.token)
		if !errors.Is(err, tc.want) || got != "" {
			t.Errorf("%s (%s): %q, %v; want %v", name, tc.reason, got, err, tc.want)
		}
		if _, err := tc.vault.Scope(tc.tenant, tc.write).Open(json.RawMessage(`{"a":["` + tc.token + `"]}`)); !errors.Is(err, tc.want) {
			t.Errorf("%s in a document (%s): %v; want %v", name, tc.reason, err, tc.want)
		}
	}
}

func TestRotation(t *testing.T) {
	before := vault(t, []Key{key("old", 1)})
	after := vault(t, []Key{key("new", 2), key("old", 1)})
	token, _ := before.Scope("acme", "wr_1").Seal("v")
	if got, err := after.Scope("acme", "wr_1").OpenName(token); got != "v" || err != nil {
		t.Errorf("%q, %v; an older key opens", got, err)
	}
	if token, _ = after.Scope("acme", "wr_1").Seal("v"); !strings.HasPrefix(token, Prefix+"new:") {
		t.Errorf("%s; the first key seals", token)
	}
}

func TestDigestsCompare(t *testing.T) {
	v := vault(t, []Key{key("k", 1)})
	digest := func(tenant, write string, value any) string { return v.Scope(tenant, write).Digest(value) }
	if digest("acme", "wr_1", "x") != digest("acme", "wr_2", "x") {
		t.Error("equal values of two writes cannot be recognised as equal")
	}
	if digest("acme", "w", json.Number("1.0")) != digest("acme", "w", json.Number("1")) {
		t.Error("one number has two digests")
	}
	for name, other := range map[string]string{
		"tenant": digest("other", "wr_1", "1"), "type": digest("acme", "wr_1", json.Number("1")), "null": digest("acme", "wr_1", nil),
		"key": vault(t, []Key{key("k", 2)}).Scope("acme", "wr_1").Digest("1"),
	} {
		if other == digest("acme", "wr_1", "1") {
			t.Errorf("another %s has the same digest", name)
		}
	}
	one, _ := v.Scope("acme", "w").Seal("x")
	two, _ := v.Scope("acme", "w").Seal("x")
	if one == two {
		t.Error("sealed twice, and the same: the nonce is not random")
	}
	if ShownText(one) != ShownText(two) || len(ShownText(one)) != len(ShownPrefix)+16 {
		t.Errorf("shown as %q and %q", ShownText(one), ShownText(two))
	}
}

func TestObservationIsSealed(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)}, cards)
	seen := connectors.Observation{Records: []connectors.Record{{
		Ref: "orders/DE02120300000000202051", URL: "https://x.test/?q=de02120300000000202051", Version: "7", Stamp: "rb-x",
		Fields: fields(t, `{"iban":"DE02120300000000202051","4111111111111111":"a name","note":"rbs1:like a token","n":7,"sum":4111111111111111}`),
	}}}
	s := v.Scope("acme", "wr_1", []string{"/iban"})
	sealed, err := s.SealObservation(seen)
	if err != nil {
		t.Fatal(err)
	}
	if low := strings.ToLower(string(sealed)); strings.Contains(low, "de0212") || strings.Contains(low, "4111111111111111") || strings.Contains(low, "like a token") {
		t.Errorf("in the clear: %s", sealed)
	}
	if !strings.Contains(string(sealed), `"version":"7","stamp":"rb-x"`) || !strings.Contains(string(sealed), `"n":7`) {
		t.Errorf("more is sealed than is sensitive: %s", sealed)
	}
	plain, err := v.Scope("acme", "wr_1").Open(sealed)
	if err != nil {
		t.Fatal(err)
	}
	var got connectors.Observation
	if err := json.Unmarshal(plain, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seen, got); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestWithoutKeys(t *testing.T) {
	var none *Vault
	w := sample(t)
	if _, err := none.Scope("acme", "wr_1").SealIntent(w); !errors.Is(err, ErrNoKey) || !errors.Is(err, intent.ErrInvalid) {
		t.Errorf("an intent that marks fields: %v", err)
	}
	w.Sensitive = nil
	if _, err := none.Scope("acme", "wr_1", []string{"/iban"}).SealIntent(w); !errors.Is(err, ErrNoKey) {
		t.Errorf("a destination that marks fields: %v", err)
	}
	plain, err := none.Scope("acme", "wr_1").SealIntent(w)
	encoded, _ := w.Encode()
	if err != nil || !bytes.Equal(plain, encoded) {
		t.Errorf("%s, %v; want the intent as it is", plain, err)
	}
	read := connectors.Observation{Records: []connectors.Record{{Fields: intent.Fields{"a": "rbs1:x"}}}}
	if _, err := none.Scope("acme", "wr_1").SealObservation(read); !errors.Is(err, ErrNoKey) {
		t.Errorf("what looks like a token was kept: %v", err)
	}
	if got := none.Scope("acme", "wr_1").SealName("rbs1:x"); got != "" {
		t.Errorf("a name that looks like a token was kept: %q", got)
	}
}
