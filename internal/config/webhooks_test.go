package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/webhooks"
)

const (
	hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA"
	hookOlder  = "whsec_b2xkZXItc2VjcmV0LW9mLXRoZS1zYW1lLWhvb2s="
)

func TestBadWebhooks(t *testing.T) {
	const begin = "ledger: a.db\ndestinations:\n  orders: {type: simulated, url: 'http://127.0.0.1:1'}\nwebhooks:\n"
	const good = "  - name: ops\n    url: https://hooks.example/\n    secret_env: S\n"
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"good":               {"nothing is wrong", good, nil},
		"no list":            {"one hook is a list of one", "  name: ops\n", []string{":5: webhooks: is a mapping; want a list"}},
		"unknown word":       {"a misspelt word must not be overlooked", good + "    event: [x]\n", []string{":8: webhooks[0].event: is not known; did you mean events?"}},
		"no name":            {"it names the cursor", "  - url: https://hooks.example/\n    secret_env: S\n", []string{":5: webhooks[0]: has no name; want one such as ops: it names the cursor of the hook"}},
		"a bad name":         {"it is part of names", "  - name: Ops Team\n    url: https://hooks.example/\n    secret_env: S\n", []string{`:5: webhooks[0].name: is "Ops Team"; want lower-case letters, digits, - and _, at most 64`}},
		"two of a name":      {"they would share a cursor", good + good, []string{`:8: webhooks[1].name: is "ops", as that of another hook; want another one: it names the cursor of each`}},
		"no url":             {"where to?", "  - name: ops\n    secret_env: S\n", []string{":5: webhooks[0]: has no url; want where messages are posted to, https://host/path"}},
		"an event":           {"no event would match", good + "    events: [write.settled, write.done]\n", []string{`:8: webhooks[0].events[1]: is "write.done"; want ` + strings.Join(webhooks.Events(), ", ")}},
		"a destination":      {"no event would match", good + "    destinations: [order]\n", []string{`:8: webhooks[0].destinations[0]: is "order", which no destination is called`}},
		"a network":          {"a slip must not open more", good + "    allow_private: [10.0.0.1]\n", []string{`:8: webhooks[0].allow_private[0]: is "10.0.0.1"; want a network such as 10.0.0.0/8`}},
		"sends":              {"it must be sent", good + "    sends: 0\n", []string{":8: webhooks[0].sends: is 0; want at least 1, or the line taken out"}},
		"no secret":          {"who would believe it", "  - name: ops\n    url: https://hooks.example/\n", []string{":5: webhooks[0]: want exactly one of secret_env (the name of an environment variable), secret_file (a path) and secret_command (a program and its arguments)"}},
		"not set":            {"asked for before anything is recorded", "  - name: ops\n    url: https://hooks.example/\n    secret_env: T\n", []string{":5: webhooks[0]: secret_env: the environment variable T is not set, or empty"}},
		"a bad secret":       {"a password is no key", "  - name: ops\n    url: https://hooks.example/\n    secret_env: BAD\n", []string{":5: webhooks[0]: secret: want whsec_ and 24 to 64 random bytes in base64"}},
		"the same again":     {"nothing changes", good + "    previous_secret_env: S\n", []string{":5: webhooks[0]: previous_secret: is the same as the secret; leave it out"}},
		"in the clear":       {"the network could read it", "  - name: ops\n    url: http://hooks.example/\n    secret_env: S\n", []string{":5: webhooks[0]: url: it begins with http, so the network can read the messages; want https, or name the own network that it is in (allow_private)"}},
		"no TLS to show it":  {"it would never be shown", "  - name: ops\n    url: http://10.0.0.1/\n    secret_env: S\n    allow_private: [10.0.0.0/8]\n    client_certificate: {cert_file: c, key_file: k}\n", []string{":9: webhooks[0].client_certificate: is for https, and the address begins with http; want https, or the line taken out"}},
		"an inline secret":   {"it does not belong here", "  - name: ops\n    url: https://hooks.example/\n    secret: hunter2\n", []string{":7: webhooks[0].secret: a secret does not belong into this file; give secret_env or secret_file"}},
		"an empty list":      {"no hook", "  []\n", nil},
		"nothing in no list": {"commented out", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, begin+c.text, environment("S", hookSecret, "BAD", "hunter2"))
			if name == "an inline secret" { // the reader chooses the words of the advice
				if len(got) != 1 || !strings.HasPrefix(got[0], c.want[0][:64]) || strings.Contains(got[0], "hunter2") {
					t.Errorf("%q", got)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	taken := "ledger: a.db\ndestinations:\n  'webhook:x': {type: simulated, url: 'http://127.0.0.1:1'}\n"
	if got := problems(t, taken, environment()); len(got) != 1 || !strings.Contains(got[0], ":3: destinations.webhook:x: begins with webhook:") {
		t.Errorf("a destination that is called as those of webhooks are: %q", got)
	}
}

func TestWebhooks(t *testing.T) {
	path := write(t, `
ledger: a.db
destinations:
  orders: {type: simulated, url: 'http://127.0.0.1:1'}
webhooks:
  - name: ops
    url: http://10.1.2.3/hook
    secret_env: S
    previous_secret_env: OLD
    events: [write.review, write.settled]
    tenants: [acme]
    destinations: orders
    window: unknown
    sends: 3
    timeout: 4s
    allow_private: [10.0.0.0/8]
  - {name: all, url: 'https://hooks.example/', secret_env: S}
`)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []webhooks.Hook{
		{Name: "ops", Events: []string{"write.review", "write.settled"}, Tenants: []string{"acme"}, Destinations: []string{"orders"}},
		{Name: "all", Tenants: []string{"default"}},
	}
	if diff := cmp.Diff(want, c.Hooks()); diff != "" {
		t.Error(diff)
	}
	reg, err := c.Registry(environment("S", hookSecret, "OLD", hookOlder))
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.Names(); !slices.Contains(got, "webhook:ops") || !slices.Contains(got, "webhook:all") {
		t.Errorf("registered: %q", got)
	}
	for name, window := range map[string]time.Duration{"webhook:ops": 0, "webhook:all": webhook.DefaultWindow} {
		_, p, err := reg.Lookup(name, webhook.Kind)
		if err != nil || p.NativeWindow[intent.Create] != window || !p.WriteOnly {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if name == "webhook:ops" && (p.Sends != 3 || p.SendTimeout != 4*time.Second) {
			t.Errorf("%+v", p)
		}
	}
}
