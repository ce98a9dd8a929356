package config_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/redact"
)

// goodKey is a key as `openssl rand -base64 32` prints one.
var goodKey = base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes for the tests!"))

func TestBadRedaction(t *testing.T) {
	const begin = "ledger: a.db\nredaction:\n"
	const keys = "  keys: [{id: k1, key_env: K1}]\n"
	const orders = "destinations:\n  orders:\n    type: simulated\n    url: http://127.0.0.1:1\n"
	tests := map[string]struct {
		reason, text string
		want         []string
	}{
		"unknown word":       {"a misspelt word must not be overlooked", "  kys: []\n", []string{":3: redaction.kys: is not known; did you mean keys?"}},
		"no id":              {"sealed values name their key", "  keys: [{key_env: K1}]\n", []string{":3: redaction.keys[0]: has no id; want a name that stays, such as 2026-11: sealed values contain it, and it names the key that opens them"}},
		"bad id":             {"a colon ends it in what is sealed", "  keys: [{id: 'a:b', key_env: K1}]\n", []string{":3: redaction.keys[0].id: is no id; want 1 to 32 letters, digits, - and _"}},
		"same id":            {"the key that opens would be ambiguous", "  keys:\n    - {id: a, key_env: K1}\n    - {id: a, key_env: K2}\n", []string{":5: redaction.keys[1].id: is that of the key in line 4 too; want another one: sealed values name their key by it"}},
		"no place":           {"a key is never written here", "  keys: [{id: a}]\n", []string{":3: redaction.keys[0]: has none of key_env, key_file and key_command; want one of them"}},
		"two places":         {"which counts", "  keys: [{id: a, key_env: A, key_file: b}]\n", []string{":3: redaction.keys[0].key_file: is given beside redaction.keys[0].key_env; want one of them"}},
		"pattern, no key":    {"it could not be sealed", "  patterns: [{name: card, regexp: '\\d{16}'}]\n", []string{":2: redaction.patterns: is set without redaction.keys, and nothing can be sealed without a key; want at least one, with an id, and key_env, key_file or key_command"}},
		"pattern, no name":   {"reviewers see it", keys + "  patterns: [{regexp: '\\d{16}'}]\n", []string{":4: redaction.patterns[0]: has no name; want one for people, such as e-mail"}},
		"pattern, same name": {"reviewers see it", keys + "  patterns: [{name: a, regexp: x}, {name: a, regexp: y}]\n", []string{":4: redaction.patterns[1].name: is that of the pattern in line 4 too; want another one"}},
		"no regexp":          {"it would match nothing", keys + "  patterns: [{name: card}]\n", []string{":4: redaction.patterns[0]: has no regexp; want what is sensitive, such as '\\b\\d{16}\\b'"}},
		"bad regexp":         {"it can never fit", keys + "  patterns: [{name: card, regexp: 'a('}]\n", []string{":4: redaction.patterns[0].regexp: is no regular expression: missing closing ): `a(`; want the syntax of Go's package regexp, without lookaround and back references"}},
		"lookaround":         {"Go has none", keys + "  patterns: [{name: card, regexp: '(?<=x)y'}]\n", []string{":4: redaction.patterns[0].regexp: is no regular expression: invalid named capture: `(?<=x)y`; want the syntax of Go's package regexp, without lookaround and back references"}},
		"fits all":           {"everything would be sealed", keys + "  patterns: [{name: card, regexp: '\\d*'}]\n", []string{":4: redaction.patterns[0].regexp: fits a text that is empty, and so every text; want at least one character that it needs"}},
		"path":               {"a name is no path", keys + orders + "    sensitive: [card]\n", []string{":8: destinations.orders.sensitive[0]: is \"card\"; want the path of a field, a JSON Pointer such as /card/number"}},
		"the whole":          {"nothing could be compared", keys + orders + "    sensitive: ['/']\n", []string{":8: destinations.orders.sensitive[0]: is \"/\"; want the path of a field, a JSON Pointer such as /card/number"}},
		"key is not set":     {"it must be there before anything is recorded", "  keys: [{id: a, key_env: NONE}]\n", []string{":3: redaction.keys[0]: key_env: the environment variable NONE is not set, or empty"}},
		"key is short":       {"it could be guessed", "  keys: [{id: a, key_env: SHORT}]\n", []string{":3: redaction.keys[0]: the key has 5 bytes; want 32 random bytes, as `openssl rand -base64 32` prints them"}},
		"key is no key":      {"a word is none", "  keys: [{id: a, key_env: WORD}]\n", []string{":3: redaction.keys[0]: the key is no base64; want 32 random bytes, as `openssl rand -base64 32` prints them"}},
		"key of zeros":       {"it is not random", "  keys: [{id: a, key_env: ZEROS}]\n", []string{":3: redaction.keys[0]: the key is one byte again and again; want 32 random bytes, as `openssl rand -base64 32` prints them"}},
	}
	env := environment("K1", goodKey, "K2", goodKey, "SHORT", "c2hvcnQ=", "WORD", "correct horse!", "ZEROS", base64.StdEncoding.EncodeToString(make([]byte, 32)))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, problems(t, begin+tt.text, env)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}

// TestMarksNeedAKey: what cannot be sealed must not be taken for sealed.
func TestMarksNeedAKey(t *testing.T) {
	got := problems(t, "ledger: a.db\ndestinations:\n  orders:\n    type: simulated\n    url: http://127.0.0.1:1\n    sensitive: [/card, /note]\n", environment())
	want := []string{":6: destinations.orders.sensitive[0]: marks fields as sensitive, and there is no key to seal them with; want redaction.keys, with an id, and key_env, key_file or key_command"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestEveryTypeMarksFields: a destination of any type can have sensitive fields,
// and they are those of all its kinds.
func TestEveryTypeMarksFields(t *testing.T) {
	text := uncommented()
	for _, at := range []string{"    type: simulated\n", "    type: jira\n", "    type: mail\n", "    type: rest\n", "    type: s3\n", "    type: mcp\n", "    type: postgresql\n"} {
		text = strings.Replace(text, at, at+"    sensitive: [/card, /customer/email]\n", 1)
	}
	c, err := config.Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := c.Registry(environment("MAIL_PASSWORD", "x", "JIRA_TOKEN", "x", "GITHUB_TOKEN", "x", "SHOP_PASSWORD", "x", "S3_SECRET", "x", "KNOWLEDGE_KEY", "x",
		"OPS_HOOK_SECRET", hookSecret, "READBACK_REDACTION_KEY", goodKey))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range reg.Profiles() {
		if strings.HasPrefix(p.Destination, "webhook:") {
			continue
		}
		found[p.Destination] = true
		for _, want := range []string{"/card", "/customer/email"} {
			if !slices.Contains(p.Sensitive, want) {
				t.Errorf("%s/%s: %v; want %s among them", p.Destination, p.Kind, p.Sensitive, want)
			}
		}
	}
	if len(found) != 8 {
		t.Errorf("%d destinations were read, want 8: %v", len(found), found)
	}
}

// TestVault: the first key seals, all open, and without keys there is none.
func TestVault(t *testing.T) {
	env := environment("NEW", goodKey, "OLD", base64.StdEncoding.EncodeToString([]byte("another key of 32 bytes, older..")))
	vault := func(keys string) *redact.Vault {
		t.Helper()
		c, err := config.Load(write(t, "ledger: a.db\n"+keys))
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Vault(env)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if vault("") != nil {
		t.Error("there is a vault without keys")
	}
	old := vault("redaction: {keys: [{id: old, key_env: OLD}]}\n")
	token, err := old.Scope("acme", "wr_1").Seal("secret")
	if err != nil || !strings.HasPrefix(token, "rbs1:old:") {
		t.Fatalf("%q, %v", token, err)
	}
	both := vault("redaction:\n  keys: [{id: new, key_env: NEW}, {id: old, key_env: OLD}]\n  patterns: [{name: card, regexp: '\\b4\\d{15}\\b'}]\n")
	if got, err := both.Scope("acme", "wr_1").OpenName(token); err != nil || got != "secret" {
		t.Errorf("the older key opens %q, %v", got, err)
	}
	if token, err := both.Scope("acme", "wr_1").Seal("x"); err != nil || !strings.HasPrefix(token, "rbs1:new:") {
		t.Errorf("the first key seals %q, %v", token, err)
	}
	if got := both.Matches("paid with 4111111111111111"); got != "card" {
		t.Errorf("the pattern finds %q", got)
	}
}
