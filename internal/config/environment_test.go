package config_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
)

// over is an environment of pairs.
func over(pairs ...string) config.Environment {
	return config.Environment{Get: environment(pairs...), All: func() []string {
		all := []string{"PATH=/bin", "READBACK_STRICT=1", "READBACK_SOAK=full"}
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, pairs[i]+"="+pairs[i+1])
		}
		return all
	}}
}

const served = `
ledger: a.db
server:
  listen: 127.0.0.1:1
  tls: {cert_file: c.pem, key_file: k.pem}
  max_wait: 10s
  mcp: false
gate: {rules: r.yaml}
`

// A text stays unchanged, also where YAML reads it as something else.
func TestEnvironmentSaysTexts(t *testing.T) {
	for _, tenant := range []string{"007", "0", "42", "0x10", "1e3", "true", "null", "~", "[a]", "- a", "a: b", "2026-01-01", "'a'"} {
		c, err := config.LoadOver(write(t, served), over("READBACK_TENANT", tenant))
		if err != nil || c.Tenant != tenant {
			t.Errorf("the tenant %q, %v; want %q", c.Tenant, err, tenant)
		}
	}
}

// Each variable overrides its setting of the file, and every listed one is tested here.
func TestEnvironmentSays(t *testing.T) {
	path := write(t, served)
	tests := map[string]struct {
		value string
		get   func(config.Config) any
		want  any
	}{
		"READBACK_LEDGER":               {"postgres://app:pw@127.0.0.1/x", func(c config.Config) any { return c.Ledger.String() }, "PostgreSQL, as $READBACK_LEDGER says"},
		"READBACK_LEDGER_PLAINTEXT":     {"true", func(c config.Config) any { return c.Ledger.Plaintext }, true},
		"READBACK_TENANT":               {"acme", func(c config.Config) any { return c.Tenant }, "acme"},
		"READBACK_LOG":                  {"json", func(c config.Config) any { return c.Log }, "json"},
		"READBACK_METRICS":              {"127.0.0.1:9", func(c config.Config) any { return c.Metrics.Listen }, "127.0.0.1:9"},
		"READBACK_GATE_RULES":           {"sub/rules.yaml", func(c config.Config) any { return c.Gate.Rules }, "sub/rules.yaml"},
		"READBACK_SERVER_LISTEN":        {"127.0.0.1:2", func(c config.Config) any { return c.Server.Listen }, "127.0.0.1:2"},
		"READBACK_SERVER_PUBLIC_URL":    {"https://a.example/", func(c config.Config) any { return c.Server.PublicURL }, "https://a.example"},
		"READBACK_SERVER_TLS_CERT_FILE": {"/run/c", func(c config.Config) any { return c.Server.CertFile }, "/run/c"},
		"READBACK_SERVER_TLS_KEY_FILE":  {"k", func(c config.Config) any { return c.Server.KeyFile }, "k"},
		"READBACK_SERVER_PLAINTEXT":     {"true", func(c config.Config) any { return c.Server.Plaintext }, true},
		"READBACK_SERVER_MAX_WAIT":      {"20s", func(c config.Config) any { return c.Server.MaxWait }, 20 * time.Second},
		"READBACK_SERVER_GRACE":         {"5s", func(c config.Config) any { return c.Server.Grace }, 5 * time.Second},
		"READBACK_SERVER_PARALLEL":      {"3", func(c config.Config) any { return c.Server.Parallel }, 3},
		"READBACK_SERVER_API":           {"false", func(c config.Config) any { return c.Server.API }, false},
		"READBACK_SERVER_GATE":          {"false", func(c config.Config) any { return c.Server.Gate }, false},
		"READBACK_SERVER_MCP":           {"true", func(c config.Config) any { return c.Server.MCP }, true},
		"READBACK_SERVER_REVIEW_UI":     {"false", func(c config.Config) any { return c.Server.ReviewUI }, false},
	}
	for _, s := range config.Settings() {
		test, ok := tests[s.Variable]
		if !ok {
			t.Errorf("%s is not tried", s.Variable)
			continue
		}
		pairs := []string{s.Variable, test.value}
		if s.Variable == "READBACK_LEDGER_PLAINTEXT" {
			pairs = append(pairs, "READBACK_LEDGER", "postgres://app@db/x")
		}
		before, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.LoadOver(path, over(pairs...))
		if err != nil {
			t.Errorf("%s: %v", s.Variable, err)
			continue
		}
		if diff := cmp.Diff(test.want, test.get(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Variable, diff)
		}
		if cmp.Equal(test.get(before), test.get(c)) {
			t.Errorf("%s is tried with what the file says as well", s.Variable)
		}
	}
	if c, _ := config.Load(path); c.Server.CertFile != filepath.Join(filepath.Dir(path), "c.pem") || c.Server.MCP {
		t.Errorf("without an environment: %+v", c.Server)
	}
}

func TestBadEnvironments(t *testing.T) {
	const word = "hunter2"
	tests := map[string]struct {
		reason string
		env    config.Environment
		want   string
	}{
		"duration":      {"of what?", over("READBACK_SERVER_MAX_WAIT", "20"), `: READBACK_SERVER_MAX_WAIT: is "20"; want a time`},
		"too long":      {"it is longer than the limit", over("READBACK_SERVER_GRACE", "1h"), ": READBACK_SERVER_GRACE: is \"1h\""},
		"no number":     {"type", over("READBACK_SERVER_PARALLEL", "many"), ": READBACK_SERVER_PARALLEL: has the wrong type; want a whole number"},
		"too many":      {"bound", over("READBACK_SERVER_PARALLEL", "5000"), ": READBACK_SERVER_PARALLEL: is 5000; want 1 to 1000"},
		"no truth":      {"type", over("READBACK_SERVER_REVIEW_UI", "perhaps"), ": READBACK_SERVER_REVIEW_UI: has the wrong type; want true or false"},
		"address":       {"no port", over("READBACK_SERVER_LISTEN", "localhost"), ": READBACK_SERVER_LISTEN: is no address"},
		"URL":           {"a path of its own", over("READBACK_SERVER_PUBLIC_URL", "https://a/b"), ": READBACK_SERVER_PUBLIC_URL: is no address of a server"},
		"log":           {"there are two", over("READBACK_LOG", "xml"), ": READBACK_LOG: is \"xml\""},
		"two lines":     {"a text may have them, an address not", over("READBACK_SERVER_LISTEN", "127.0.0.1:1\nx: y"), ": READBACK_SERVER_LISTEN: is no address"},
		"no UTF-8":      {"a file would be refused too", over("READBACK_TENANT", "\xff"), ""},
		"plaintext":     {"a file has no network", over("READBACK_LEDGER_PLAINTEXT", "true"), ": READBACK_LEDGER_PLAINTEXT: belongs to a ledger in a database"},
		"misspelt":      {"it would be overlooked", over("READBACK_SERVER_LISTN", "127.0.0.1:1"), ": READBACK_SERVER_LISTN: is not known; did you mean READBACK_SERVER_LISTEN?"},
		"no setting":    {"it looks like one", over("READBACK_SERVER_COLOUR_OF_THE_DOOR", "red"), "READBACK_SERVER_COLOUR_OF_THE_DOOR: is not known"},
		"none of ours":  {"tests have theirs", over("READBACK_TEST_AS_PROGRAM", word), ""},
		"a secret":      {"it is never repeated", over("READBACK_LEDGER", "postgres://app:"+word+"@db/x", "READBACK_LOG", "xml"), ": READBACK_LOG: is"},
		"empty":         {"as where it is not set", over("READBACK_SERVER_LISTEN", ""), ""},
		"named as such": {"the file names it for a secret", over("READBACK_SERVER_KEY", "x"), ""},
	}
	path := write(t, served+"destinations:\n  m:\n    type: imap\n    addr: a:993\n    username: u\n    password_env: READBACK_SERVER_KEY\n")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadOver(path, test.env)
			if test.want == "" {
				if err != nil {
					t.Errorf("%s: %v", test.reason, err)
				}
				return
			}
			if err == nil || !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), path+test.want) && !strings.Contains(err.Error(), path+": "+test.want) || strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v; want %q", test.reason, err, test.want)
			}
		})
	}
}

// Without a file the environment alone is used.
func TestWithout(t *testing.T) {
	c, err := config.Without(over("READBACK_SERVER_LISTEN", "127.0.0.1:7"), "dev.db")
	if err != nil || c.Ledger.File != "dev.db" || c.Server.Listen != "127.0.0.1:7" || c.Tenant != "default" || !c.Server.ReviewUI {
		t.Errorf("%+v %v", c, err)
	}
	c, err = config.Without(over("READBACK_LEDGER", "postgres://app@127.0.0.1/x"), "dev.db")
	if err != nil || !c.Ledger.Database() || c.Ledger.File != "" {
		t.Errorf("%+v %v", c.Ledger, err)
	}
	if _, err = config.Without(over("READBACK_SERVER_GRACE", "x"), "dev.db"); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "the environment: READBACK_SERVER_GRACE") {
		t.Error(err)
	}
}

// A variable alone names the ledger too.
func TestLedgerFromTheEnvironmentAlone(t *testing.T) {
	path := write(t, "tenant: a\n")
	if _, err := config.Load(path); err == nil {
		t.Error("no ledger at all was taken")
	}
	if c, err := config.LoadOver(path, over("READBACK_LEDGER", "x.db")); err != nil || c.Ledger.File != "x.db" {
		t.Errorf("%+v %v", c.Ledger, err)
	}
}
