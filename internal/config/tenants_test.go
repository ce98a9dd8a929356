package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/config"
)

// Whose a destination is: whom the configuration names, else the tenants of the
// gateways in front of it, else the configuration's own.
func TestWhoseADestinationIs(t *testing.T) {
	const text = "ledger: a\ntenant: acme\ndestinations:\n" +
		"  one: {type: simulated, url: 'http://a'}\n" +
		"  some: {type: simulated, url: 'http://a', tenants: [acme, umbrella]}\n" +
		"  all: {type: simulated, url: 'http://a', tenants: ['*']}\n" +
		"  behind: {type: mcp, command: [node], contract: filesystem}\n" +
		"mcp:\n  gateway:\n    files: {destination: behind, tenant: umbrella}\n"
	c, err := config.Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := c.Registry(environment())
	if err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string][]string{"acme": {"all", "one", "some"}, "umbrella": {"all", "behind", "some"}, "default": {"all"}} {
		if got := reg.NamesFor(tenant); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tenant, got, want)
		}
	}
}

func TestBadTenants(t *testing.T) {
	const simulated = "ledger: a\ndestinations:\n  one: {type: simulated, url: 'http://a', tenants: "
	for name, c := range map[string]struct{ text, want string }{
		"no name":    {simulated + "['']}\n", ":3: destinations.one.tenants[0]: is empty"},
		"twice":      {simulated + "[a, a]}\n", `:3: destinations.one.tenants[1]: is "a" a second time; leave one out`},
		"all others": {simulated + "[a, '*']}\n", `:3: destinations.one.tenants[1]: is "*" among others; want it alone, for all tenants, or the names of some`},
		"a hook's":   {"ledger: a\nwebhooks:\n  - {name: x, url: 'https://h.example/', secret_env: S, tenants: [' a']}\n", `:3: webhooks[0].tenants[0]: is " a"; want the name of a tenant`},
		"a gateway's": {"ledger: a\ndestinations:\n  behind: {type: mcp, command: [node], contract: filesystem, tenants: [acme]}\nmcp:\n  gateway:\n    files: {destination: behind, tenant: umbrella}\n",
			`:6: mcp.gateway.files: is of the tenant "umbrella", which the destination behind does not serve; add it to destinations.behind.tenants`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(write(t, c.text))
			var bad *config.InvalidError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
