package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// secure is a place in which nothing is red, and what its configuration says.
func secure(t *testing.T) (p *place, text string) {
	t.Helper()
	p, _, _ = chained(t)
	text = fmt.Sprintf("ledger: readback.db\ntenant: acme\nserver: {listen: '127.0.0.1:0'}\ndestinations:\n  orders: {type: simulated, class: plain, url: '%s', concurrency: 4}\n"+
		"audit: {heads: {key_file: audit.pem, keep: [{file: '%s'}]}}\n", p.url, filepath.Join(t.TempDir(), "heads.jsonl"))
	p.write("readback.yaml", text)
	p.submit(exitVerified, order("A-1", ""))
	p.want(0, p.run("audit", "seal"))
	return p, text
}

const day = 24 * time.Hour

// Each thing that an auditor asks for is red when it is wrong, and everything is green
// when nothing is.
func TestDoctorSecurity(t *testing.T) {
	p, bounded := secure(t)
	page := p.want(0, p.run("doctor", "--security"))
	says(t, page, "Security of readback", "as user", "SHA-256 with the files that it names", "ok file", "ok file audit.heads.key_file", "ok file ledger", "mode 0600",
		"ok tenants", "ok limits", "ok plaintext", "ok heads", "ok tokens", "ok business keys digests of them are keyed", "ok programs", "ok audit log", "Everything is in order.")
	if strings.Contains(page.out, "warning") {
		t.Errorf("there are warnings: %s", page.out)
	}
	json := decode(t, p.want(0, p.run("doctor", "--security", "--json")))
	if json["failed"] != 0.0 || json["sha256"] == "" || json["at"] == "" || json["configuration"] != p.config || len(json["checks"].([]any)) < 10 || len(json["files"].([]any)) != 1 {
		t.Errorf("%v", json)
	}
	const limit = ", concurrency: 4"
	heads := bounded[:strings.Index(bounded, "audit:")]
	for name, c := range map[string]struct {
		config string
		change func()
		want   []string
	}{
		"no limit":        {strings.Replace(bounded, limit, "", 1), nil, []string{"ok limits 32 calls of a process at once and no rate, the default, bound what is sent to: orders"}},
		"a rate":          {strings.Replace(bounded, limit, ", rate: {calls: 5, per: 1s}", 1), nil, []string{"ok limits"}},
		"tenants":         {strings.Replace(bounded, limit, limit+", tenants: [acme, umbrella]", 1), nil, []string{"failed tenants destination orders is shared by the tenants acme, umbrella", "Give each tenant one of its own"}},
		"every tenant":    {strings.Replace(bounded, limit, limit+", tenants: ['*']", 1), nil, []string{"failed tenants destination orders serves every tenant"}},
		"a listener":      {strings.Replace(bounded, "listen: '127.0.0.1:0'", "listen: '0.0.0.0:8080', plaintext: true", 1), nil, []string{"failed plaintext server.listen: 0.0.0.0:8080 is reached from other machines without TLS", "Want server.tls", "failed proxies a proxy is in front"}},
		"a proxy":         {strings.Replace(bounded, "listen: '127.0.0.1:0'", "listen: '127.0.0.1:0', public_url: 'https://readback.example.org'", 1), nil, []string{"failed proxies a proxy is in front"}},
		"a known proxy":   {strings.Replace(bounded, "listen: '127.0.0.1:0'", "listen: '0.0.0.0:8080', plaintext: true, trusted_proxies: [10.0.0.7]", 1), nil, []string{"failed plaintext", "ok proxies"}},
		"metrics":         {bounded + "metrics: {listen: '0.0.0.0:9464', remote: true}\n", nil, []string{"failed plaintext metrics.listen: 0.0.0.0:9464"}},
		"a destination":   {strings.Replace(bounded, p.url, "http://orders.example.org/secret-path", 1), nil, []string{"failed plaintext destinations.orders.url: what is sent to orders.example.org can be read on the way"}},
		"no chain":        {strings.Replace(bounded, "audit:", "#audit:", 1), nil, []string{"failed heads the events are in no chain"}},
		"no key":          {heads + "audit: {}\n", nil, []string{"failed heads no key signs the heads"}},
		"a command":       {strings.Replace(bounded, "key_file: audit.pem", "key_command: [cat, audit.pem]", 1), nil, []string{"ok heads"}},
		"nowhere outside": {heads + "audit: {heads: {key_file: audit.pem}}\n", nil, []string{"failed heads the key that signs heads has no place outside"}},
		"beside":          {heads + "audit: {heads: {key_file: audit.pem, keep: [{file: heads.jsonl}]}}\n", nil, []string{"failed heads heads are kept beside the ledger alone"}},
		"same user": {bounded[:strings.Index(bounded, "destinations:")] + "destinations:\n  files: {type: mcp, command: [node, a.js], contract: filesystem, concurrency: 1}\n", nil,
			[]string{"failed programs the programs of these destinations run as the user of readback"}},
		"a file": {bounded, func() { mode(t, filepath.Join(p.dir, "audit.pem"), 0o644) }, []string{"failed file audit.heads.key_file", "mode 0644", "can be read by every user", "Want `chmod o-rwx", "failed configuration"}},
		"ledger": {bounded, func() { mode(t, p.ledger, 0o644) }, []string{"failed file ledger", "can be read by every user", "ok configuration"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.write("readback.yaml", c.config)
			if c.change != nil {
				c.change()
			}
			r := p.run("doctor", "--security")
			says(t, r, c.want...)
			if red := strings.Contains(c.want[0], "failed"); red != (r.code != 0) {
				t.Errorf("code %d: %s", r.code, r)
			}
			if name == "same user" {
				says(t, p.run("doctor"), "warning programs the programs of these destinations run as the user of readback")
			}
			if strings.Contains(r.out, "secret-path") {
				t.Errorf("an address, which may hold a secret, is on the page: %s", r.out)
			}
			mode(t, filepath.Join(p.dir, "audit.pem"), 0o600)
			mode(t, p.ledger, 0o600)
		})
	}
}

// Tokens are red in the last two weeks, and short ones in the last quarter of their time.
func TestDoctorSecurityOfTokens(t *testing.T) {
	p, text := secure(t)
	p.write("readback.yaml", strings.Replace(text, "server: {", "server: {person_tokens: true, ", 1))
	begin := time.Now()
	at := func(after time.Duration) { p.now = func() time.Time { return begin.Add(after) } }
	at(0)
	p.want(0, p.run("token", "create", "--role", "agent", "--name", "ann"))
	p.want(0, p.run("--tenant", "umbrella", "token", "create", "--role", "auditor", "--name", "ben", "--ttl", "8d"))
	for after, want := range map[time.Duration][]string{
		0:        {"ok tokens 2 tokens good, none near its end"},
		7 * day:  {"failed tokens", "of ben, auditor of tenant umbrella, ends at"},
		9 * day:  {"ok tokens 1 token good"},
		75 * day: {"ok tokens 1 token good"},
		77 * day: {"failed tokens", "of ann, agent of tenant acme, ends at", "Make another with `readback token create`"},
		91 * day: {"ok tokens 0 tokens good"},
	} {
		at(after)
		says(t, p.run("doctor", "--security"), want...)
	}
}

// It asks no destination and writes nothing, not even the note of doctor.
func TestDoctorSecurityWritesNothing(t *testing.T) {
	p, _ := secure(t)
	asked := len(p.world.Calls())
	before, err := os.ReadFile(p.ledger)
	if err != nil {
		t.Fatal(err)
	}
	p.want(0, p.run("doctor", "--security"))
	after, err := os.ReadFile(p.ledger)
	if err != nil || string(before) != string(after) || len(p.world.Calls()) != asked {
		t.Errorf("the ledger was written, or a destination asked: %v", err)
	}
}

func mode(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
