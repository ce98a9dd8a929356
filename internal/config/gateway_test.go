package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/internal/config"
)

const oneGateway = `ledger: a.db
tenant: acme
destinations:
  x: {type: simulated, url: 'http://a'}
  files: {type: mcp, command: [node, server.js], contract: filesystem}
mcp:
  gateway:
    files:
      destination: files
      wait: 20s
`

// As whom a program runs is handed on to what starts it.
func TestTheUserOfAProgram(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a.db\ndestinations:\n  files: {type: mcp, user: readback-no-such-user, command: [node, server.js], contract: filesystem}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Registry(environment()); err == nil || !strings.Contains(err.Error(), "want the name or the number of a user of this machine") && !strings.Contains(err.Error(), "not available on this system") {
		t.Error(err)
	}
}

func TestBadGateways(t *testing.T) {
	with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(oneGateway) }
	server := "files: {type: mcp, command: [node, server.js], contract: filesystem}"
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"fine":            {"nothing is wrong", oneGateway, nil},
		"no destination":  {"in front of what", with("      destination: files\n", ""), []string{":8: mcp.gateway.files: has no destination; want the name of one of the type mcp"}},
		"not there":       {"there is none of this name", with("destination: files", "destination: file"), []string{`:8: mcp.gateway.files: names the destination "file"; want a destination of the type mcp`}},
		"another type":    {"it speaks no such protocol", with("destination: files", "destination: x"), []string{`:8: mcp.gateway.files: names the destination "x"; want a destination of the type mcp`}},
		"name":            {"it is a part of an address", with("    files:\n", "    My files:\n"), []string{`:8: mcp.gateway.My files: has the name "My files"; want lower-case letters, digits and dashes`}},
		"wait":            {"clients give up", with("wait: 20s", "wait: 2m"), []string{":8: mcp.gateway.files: waits 2m0s; want at most 50s"}},
		"unknown word":    {"misspelt", with("wait:", "waits:"), []string{":10: mcp.gateway.files.waits: is not known; did you mean wait?"}},
		"no contract":     {"no write could be read back", with(server, "files: {type: mcp, command: [node]}"), []string{":5: destinations.files: contract: is missing; want one of atlassian, filesystem, github, google-calendar, linear, memory, notion, slack, stripe, supabase, or a file of yours (`readback contract suggest` drafts one); without any, uncontracted: allow"}},
		"what contract":   {"none of this name comes with readback", with("contract: filesystem", "contract: erp"), []string{`:5: destinations.files: contract: invalid contract: no contract "erp" comes with readback; want one of atlassian, filesystem, github, google-calendar, linear, memory, notion, slack, stripe, supabase`}},
		"uncontracted":    {"a forgotten tool must not run unverified by a slip", with("contract: filesystem", "contract: filesystem, uncontracted: yes please"), []string{`:5: destinations.files: uncontracted: is "yes please"; want hide, or allow: sent once and never verified`}},
		"nowhere":         {"no server", with("command: [node, server.js], ", ""), []string{":5: destinations.files: want exactly one of command and url"}},
		"two places":      {"which one", with("command:", "url: 'https://a.example/mcp', command:"), []string{":5: destinations.files: want exactly one of command and url"}},
		"in the clear":    {"tokens would be read on the way", with("command: [node, server.js]", "url: 'http://a.example/mcp'"), []string{":5: destinations.files: url: is http, where credentials cross a network in the clear; want https (http only for this machine)"}},
		"a password":      {"and is not repeated", with("command: [node, server.js]", "url: 'https://a:hunter2@a.example/mcp'"), []string{":5: destinations.files: url: holds a user name or a password; want headers with a secret"}},
		"a secret header": {"a secret that is not there", with("command: [node, server.js]", "url: 'https://a.example/mcp', headers: {Authorization: {env: NOT_SET}}"), []string{":5: destinations.files: headers.Authorization: env: the environment variable NOT_SET is not set, or empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, problems(t, c.text, environment())); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
		})
	}
}

// TestABadContractIsReportedWithItsOwnLines: the file is beside the configuration.
func TestABadContractIsReportedWithItsOwnLines(t *testing.T) {
	path := write(t, strings.Replace(oneGateway, "contract: filesystem", "contract: ./mine.yaml", 1))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "mine.yaml"), []byte("contract: 2\nname: mine\nserver: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Registry(environment())
	for _, want := range []string{":5: destinations.files: contract: ", "./mine.yaml:1: contract: is 2; want 1", "kinds: is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

// TestGatewaysAreReadWhole: by name, and with the tenant of the configuration by default.
func TestGatewaysAreReadWhole(t *testing.T) {
	c, err := config.Load(write(t, oneGateway+"    a:\n      destination: files\n      tenant: other\n      reads: [list]\n      hide: [write_file, move_file]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Gateway{
		{Name: "a", Destination: "files", Tenant: "other", Reads: []string{"list"}, Hide: []string{"write_file", "move_file"}},
		{Name: "files", Destination: "files", Tenant: "acme", Wait: 20 * time.Second},
	}
	if d := cmp.Diff(want, c.MCP.Gateways, cmpopts.IgnoreUnexported(config.Gateway{})); d != "" {
		t.Error(d)
	}
}
