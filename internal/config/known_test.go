package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/config"
)

// TestSecretsThatWereFetchedAreScrubbed: whatever was read as a secret is taken
// out of a text, and so is the password in an address.
func TestSecretsThatWereFetchedAreScrubbed(t *testing.T) {
	text := "ledger: a.db\nredaction: {keys: [{id: a, key_env: SCRUB_KEY}]}\ndestinations:\n  shop:\n    type: rest\n    declaration: github-issues\n" +
		"    parameters: {owner: acme, repo: shop}\n    secrets: {token: {env: SCRUB_TOKEN}}\n"
	c, err := config.Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	const token = "ghp_never-in-a-log-0123"
	if _, err := c.Registry(environment("SCRUB_TOKEN", token, "SCRUB_KEY", goodKey)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a sentence": "the token " + token + " was refused", "an address": "GET /?key=" + token} {
		if got := config.Scrub(text); strings.Contains(got, token) || !strings.Contains(got, "[secret]") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := config.Scrub("nothing of that kind"); got != "nothing of that kind" {
		t.Errorf("%q", got)
	}
}

// TestSecretsOfEvidenceAreScrubbed: receivers of heads and telemetry may repeat the
// credentials in errors.
func TestSecretsOfEvidenceAreScrubbed(t *testing.T) {
	private, _ := newKey(t)
	secrets := map[string]string{"SCRUB_BEARER": "bearer-never-in-a-log", "SCRUB_ACCESS": "access-never-in-a-log", "SCRUB_STORE": "store-never-in-a-log"}
	c, err := config.Load(write(t, "ledger: a.db\ntelemetry: {headers_env: SCRUB_HEADERS}\naudit:\n  heads:\n    key_env: SCRUB_SIGNER\n    keep:\n"+
		"      - {http: 'https://notary.test/x', bearer_env: SCRUB_BEARER}\n"+
		"      - objects: {endpoint: s3.test, bucket: b, access_key_env: SCRUB_ACCESS, secret_key_env: SCRUB_STORE}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const token, key = "telemetry/never/in/a/log", "api-key-never-in-a-log"
	secrets["SCRUB_SIGNER"], secrets["SCRUB_HEADERS"] = private, "Authorization=Bearer%20telemetry%2Fnever%2Fin%2Fa%2Flog,x-key="+key
	env := func(name string) string { return secrets[name] }
	if _, err := c.Sealing(env); err != nil {
		t.Fatal(err)
	}
	if _, err := c.TelemetrySettings(env); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{secrets["SCRUB_BEARER"], secrets["SCRUB_ACCESS"], secrets["SCRUB_STORE"], token, key} {
		if got := config.Scrub("401: " + secret + " is not known"); strings.Contains(got, secret) {
			t.Errorf("%q", got)
		}
	}
}

// TestManyRotationsDisplaceNoPassword: a token that is replaced every few minutes for
// weeks does not put the password of a database back into logs, and its last values are
// redacted, too.
func TestManyRotationsDisplaceNoPassword(t *testing.T) {
	const password = "pw-never-in-a-log"
	token := ""
	c, err := config.Load(write(t, "ledger: a.db\nserver: {public_url: 'https://readback.example.org', oidc: {issuer: 'https://id.example.org', client_id: x, client_secret_env: TOKEN, rules: [{claim: a, value: b, role: reviewer}]}}\n"+
		"destinations:\n  box: {type: imap, addr: 'imap.example.org:993', username: u, password_env: PASSWORD}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Registry(environment("PASSWORD", password)); err != nil {
		t.Fatal(err)
	}
	tokenOf := func(i int) string { return fmt.Sprintf("token-never-in-a-log-%08d", i) }
	token = tokenOf(0)
	o, err := c.Logins(func(string) string { return token })
	if err != nil {
		t.Fatal(err)
	}
	const last = 10_001
	for i := range last + 1 {
		token = tokenOf(i)
		if _, err := o.Secret(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{password, tokenOf(last), tokenOf(last - 1)} {
		if got := config.Scrub("login with " + secret); strings.Contains(got, secret) {
			t.Errorf("%q", got)
		}
	}
	if got := config.Scrub(tokenOf(0)); got != tokenOf(0) {
		t.Errorf("%q: the first of %d tokens is still held", got, last)
	}
}
