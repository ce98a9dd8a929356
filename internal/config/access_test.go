package config_test

import (
	"fmt"
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
		Issuer: "https://login.example.org", ClientID: "readback", Secret: config.Secret{Env: "READBACK_OIDC_SECRET"},
		RedirectURL: "https://readback.example.org/login/callback", Scopes: []string{"email", "profile"},
		Rules: []access.ClaimRule{
			{Claim: "groups", Value: "readback-operators", Tenant: "default", Role: "operator"},
			{Claim: "groups", Value: "support", Tenant: "{org}", Role: "reviewer"},
		},
		Recheck: 10 * time.Minute, StepUp: access.StepUp{ACR: []string{"gold"}, AMR: []string{"mfa", "hwk"}},
	}
	if diff := cmp.Diff(want, c.Server.OIDC); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Sessions{Key: config.Secret{Env: "READBACK_SESSION_KEY"}, Lifetime: 8 * time.Hour}, c.Server.Sessions); diff != "" {
		t.Error(diff)
	}
	got, err := c.Logins(environment("READBACK_OIDC_SECRET", "s", "READBACK_SESSION_KEY", strings.Repeat("k", 64)))
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := got.Secret(t.Context()); secret != "s" || err != nil {
		t.Errorf("the secret of the client is %q, %v", secret, err)
	}
	if len(got.Key) != 64 || got.Issuer != want.Issuer || got.ClientID != "readback" || got.RedirectURL != want.RedirectURL ||
		len(got.Rules) != 2 || got.SessionTTL != 8*time.Hour || got.NoTokens || got.Client != nil {
		t.Errorf("%+v", got)
	}
}

func TestLoginDefaults(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a.db\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Logins(environment())
	if err != nil || got.Issuer != "" || got.NoTokens || len(got.Key) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// oidc is the beginning of a configuration with logins at a provider; rules follow.
const oidc = "ledger: a.db\nserver:\n  public_url: https://readback.example.org\n  oidc:\n    issuer: https://login.example.org\n    client_id: readback\n"

// Only configurations that explicitly allow them have tokens of people.
func TestPersonTokens(t *testing.T) {
	for text, want := range map[string]bool{"": false, "server: {listen: '127.0.0.1:1'}\n": false, "server: {person_tokens: false}\n": false,
		"server:\n  person_tokens: true\n": true} {
		c, err := config.Load(write(t, "ledger: a.db\n"+text))
		if err != nil || c.Server.PersonTokens != want {
			t.Errorf("%q: %t, %v", text, c.Server.PersonTokens, err)
		}
	}
	for value, want := range map[string]string{"yes please": ":3: server.person_tokens", "1": ":3: server.person_tokens", "[reviewer]": ":3: server.person_tokens",
		"{reviewer: true}": ":3: server.person_tokens"} {
		if _, err := config.Load(write(t, "ledger: a.db\nserver:\n  person_tokens: "+value+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want the line and the setting", value, err)
		}
	}
}

func TestLoginsBadly(t *testing.T) {
	const rules = "    rules:\n      - {claim: groups, value: ops, role: operator}\n"
	for name, c := range map[string]struct {
		text, want, reason string
	}{
		"no issuer":       {strings.Replace(oidc, "    issuer: https://login.example.org\n", "", 1) + rules, ":4: server.oidc: has no issuer", "whom to ask"},
		"no client":       {strings.Replace(oidc, "    client_id: readback\n", "", 1) + rules, "has no client_id", "as whom to ask"},
		"no rules":        {oidc, "has no rules", "no login would succeed"},
		"nowhere back":    {strings.Replace(oidc, "  public_url: https://readback.example.org\n", "", 1) + rules, "has no redirect_url", "where people come back to"},
		"issuer in clear": {strings.Replace(oidc, "https://login", "http://login", 1) + rules, ":5: server.oidc.issuer: issuer is", "others could read along"},
		"back elsewhere":  {oidc + "    redirect_url: https://readback.example.org/x\n" + rules, ":7: server.oidc.redirect_url: redirect_url is", "no login ends there"},
		"an agent":        {oidc + strings.Replace(rules, "operator", "agent", 1), ":8: server.oidc.rules[0]: role is \"agent\"; a login cannot have the role of an agent", "agents have tokens"},
		"another role":    {oidc + strings.Replace(rules, "operator", "admin", 1), "role is \"admin\"", "it could do nothing"},
		"no value":        {oidc + strings.Replace(rules, "value: ops, ", "", 1), "value is", "everybody would fit"},
		"the secret":      {oidc + "    client_secret: hush-hush\n" + rules, "a secret does not belong into this file", "others read this file"},
		"two secrets":     {oidc + "    client_secret_env: A\n    client_secret_file: b\n" + rules, "server.oidc.client_secret_file: is given beside server.oidc.client_secret_env", "which one counts"},
		"unknown":         {oidc + "    audience: x\n" + rules, "server.oidc.audience", "it has no effect"},
		"confirmed never": {oidc + "    recheck: 30d\n" + rules, ":4: server.oidc: recheck is 720h0m0s; want 1m0s to 24h0m0s", "an account that has ended is out then"},
		"no factor":       {oidc + "    decisions: {}\n" + rules, ":7: server.oidc.decisions: want acr", "it would ask for nothing"},
		"an empty factor": {oidc + "    decisions: {amr: [\"\"]}\n" + rules, ":7: server.oidc.decisions: want acr", "no login would have it"},
		"other factor":    {oidc + "    decisions: {mfa: true}\n" + rules, ":7: server.oidc.decisions.mfa", "it is not a setting"},
		"all proxies":     {"ledger: a.db\nserver:\n  trusted_proxies: [0.0.0.0/0]\n", ":3: server.trusted_proxies[0]: is \"0.0.0.0/0\"; want the address of a proxy", "everyone could name any address"},
		"named proxies":   {"ledger: a.db\nserver:\n  trusted_proxies: [10.0.0.7, proxy.local]\n", ":3: server.trusted_proxies[1]: is \"proxy.local\"; want the address of a proxy", "names can be moved"},
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

func TestLoginsBehindProxies(t *testing.T) {
	c, err := config.Load(write(t, strings.Replace(oidc, "server:\n", "server:\n  trusted_proxies: [10.0.0.7, 10.1.2.3/16, \"2001:db8::/32\"]\n", 1)+
		"    recheck: 2m\n    decisions: {acr: [gold], amr: [mfa, hwk]}\n    rules: [{claim: groups, value: ops, role: operator}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(c.Server.Proxies), "[10.0.0.7/32 10.1.0.0/16 2001:db8::/32]"; got != want {
		t.Errorf("proxies %s, want %s", got, want)
	}
	o, err := c.Logins(environment())
	if err != nil || o.Recheck != 2*time.Minute || fmt.Sprint(o.StepUp) != "{[gold] [mfa hwk]}" {
		t.Errorf("%+v, %v", o, err)
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
		case o.want == "" && (err != nil || got.Secret == nil || !got.NoTokens):
			t.Errorf("%s: %+v, %v", name, got, err)
		case o.want != "" && (err == nil || !strings.Contains(err.Error(), o.want) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: %v, want %q", name, err, o.want)
		}
	}
}

// TestSecretsOfLoginsAreBesideTheConfiguration: also where it is named by a path that is
// relative.
func TestSecretsOfLoginsAreBesideTheConfiguration(t *testing.T) {
	path := write(t, "ledger: a.db\nserver: {public_url: 'https://readback.example.org', sessions: {key_file: key.txt}, oidc: {issuer: 'https://id.example.org', client_id: x, client_secret_file: secret.txt, rules: [{claim: a, value: b, role: reviewer}]}}\n")
	keep(t, path, "key.txt", strings.Repeat("k", 32))
	keep(t, path, "secret.txt", "s3cret")
	dir := filepath.Dir(path)
	t.Chdir(filepath.Dir(dir))
	c, err := config.Load(filepath.Join(filepath.Base(dir), filepath.Base(path)))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Logins(environment())
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := o.Secret(t.Context()); secret != "s3cret" || err != nil || string(o.Key) != strings.Repeat("k", 32) {
		t.Errorf("got %q, %v and the key %q; want those of the files", secret, err, o.Key)
	}
}
