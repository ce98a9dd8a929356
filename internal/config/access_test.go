package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
)

func TestTemplateSaysHowPeopleLogIn(t *testing.T) {
	path := write(t, uncommented())
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c.Server.OIDC.Line, c.Server.Sessions.Line = 0, 0
	want := config.OIDC{
		Issuer: "https://login.example.org", ClientID: "readback", SecretEnv: "READBACK_OIDC_SECRET",
		RedirectURL: "https://readback.example.org/login/callback", Scopes: []string{"email", "profile"},
		Rules: []access.ClaimRule{
			{Claim: "groups", Value: "readback-operators", Tenant: "default", Role: "operator"},
			{Claim: "groups", Value: "support", Tenant: "{org}", Role: "reviewer"},
		},
	}
	if diff := cmp.Diff(want, c.Server.OIDC); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Sessions{KeyEnv: "READBACK_SESSION_KEY", Lifetime: 8 * time.Hour}, c.Server.Sessions); diff != "" {
		t.Error(diff)
	}
	got, err := c.Logins(environment("READBACK_OIDC_SECRET", "s", "READBACK_SESSION_KEY", strings.Repeat("k", 64)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Secret != "s" || len(got.Key) != 64 || got.Issuer != want.Issuer || got.ClientID != "readback" || got.RedirectURL != want.RedirectURL ||
		len(got.Rules) != 2 || got.SessionTTL != 8*time.Hour || got.NoTokens || got.Client != nil {
		t.Errorf("%+v", got)
	}
}

func TestNothingSaidOfLogins(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a.db\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Logins(environment())
	if err != nil || got.Issuer != "" || got.NoTokens || len(got.Key) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLoginsBadly(t *testing.T) {
	const oidc = "ledger: a.db\nserver:\n  public_url: https://readback.example.org\n  oidc:\n    issuer: https://login.example.org\n    client_id: readback\n"
	const rules = "    rules:\n      - {claim: groups, value: ops, role: operator}\n"
	for name, c := range map[string]struct {
		text, want, reason string
	}{
		"no issuer":       {strings.Replace(oidc, "    issuer: https://login.example.org\n", "", 1) + rules, ":4: server.oidc: has no issuer", "whom to ask"},
		"no client":       {strings.Replace(oidc, "    client_id: readback\n", "", 1) + rules, "has no client_id", "as whom to ask"},
		"no rules":        {oidc, "has no rules", "nobody would get in"},
		"nowhere back":    {strings.Replace(oidc, "  public_url: https://readback.example.org\n", "", 1) + rules, "has no redirect_url", "where people come back to"},
		"issuer in clear": {strings.Replace(oidc, "https://login", "http://login", 1) + rules, ":5: server.oidc.issuer: issuer is", "others could read along"},
		"back elsewhere":  {oidc + "    redirect_url: https://readback.example.org/x\n" + rules, ":7: server.oidc.redirect_url: redirect_url is", "nobody listens there"},
		"an agent":        {oidc + strings.Replace(rules, "operator", "agent", 1), ":8: server.oidc.rules[0]: role is \"agent\"; nobody becomes an agent by logging in", "agents have tokens"},
		"another role":    {oidc + strings.Replace(rules, "operator", "admin", 1), "role is \"admin\"", "it could do nothing"},
		"no value":        {oidc + strings.Replace(rules, "value: ops, ", "", 1), "value is", "everybody would fit"},
		"the secret":      {oidc + "    client_secret: hush-hush\n" + rules, "a secret does not belong into this file", "others read this file"},
		"two secrets":     {oidc + "    client_secret_env: A\n    client_secret_file: b\n" + rules, "server.oidc.client_secret_file: is given beside server.oidc.client_secret_env", "which one counts"},
		"unknown":         {oidc + "    audience: x\n" + rules, "server.oidc.audience", "nobody looks at it"},
		"two keys":        {"ledger: a.db\nserver:\n  sessions: {key_env: A, key_file: b}\n", "is given beside", "which one counts"},
		"long sessions":   {"ledger: a.db\nserver:\n  sessions: {lifetime: 30d}\n", "want at most 24h", "who may no longer is out then"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(write(t, c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: got %v, want %q", c.reason, err, c.want)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

func TestSecretsOfLogins(t *testing.T) {
	const text = "ledger: a.db\nserver:\n  public_url: https://readback.example.org\n  oidc:\n    issuer: https://login.example.org\n    client_id: readback\n" +
		"    client_secret_file: secret\n    rules: [{claim: groups, value: ops, role: operator}]\n  sessions: {key_env: KEY, tokens: false}\n"
	path := write(t, text)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]struct{ key, secret, want string }{
		"no file":   {strings.Repeat("k", 32), "", "client_secret_file"},
		"no key":    {"", "s", "the environment variable KEY is not set"},
		"short key": {"hush", "s", "the key has 4 bytes; want at least 32"},
		"right":     {strings.Repeat("k", 32), "s", ""},
	} {
		file := filepath.Join(filepath.Dir(path), "secret")
		_ = os.Remove(file)
		if o.secret != "" {
			if err := os.WriteFile(file, []byte(o.secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Logins(environment("KEY", o.key))
		switch {
		case o.want == "" && (err != nil || got.Secret != "s" || !got.NoTokens):
			t.Errorf("%s: %+v, %v", name, got, err)
		case o.want != "" && (err == nil || !strings.Contains(err.Error(), o.want) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: %v, want %q", name, err, o.want)
		}
	}
}
