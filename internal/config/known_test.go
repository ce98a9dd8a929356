package config_test

import (
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
