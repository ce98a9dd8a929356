package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/config"
)

// What others on the network can read is named by its setting, without the address
// itself, which may hold a secret.
func TestPlaintextIsNamed(t *testing.T) {
	path := write(t, `ledger: {type: postgres, url: 'postgres://u@db.example.org/x?sslmode=disable', password_env: P, plaintext: true}
server: {listen: '0.0.0.0:80', plaintext: true, public_url: 'http://readback.example.org'}
metrics: {listen: '0.0.0.0:9464', remote: true}
telemetry: {endpoint: 'http://collector.example.org:4318', plaintext: true}
audit: {heads: {key_env: K, keep: [{http: 'http://heads.example.org/canary'}, {objects: {endpoint: s3.example.org, bucket: b, plaintext: true}}]}}
destinations:
  shop: {type: postgresql, dsn: 'postgres://app@db.example.org/shop', plaintext: true, tables: {order: {name: orders, columns: {number: text, url: text}, key: [number], unique: true}}}
  far: {type: simulated, url: 'http://user-canary.example.org/canary'}
  here: {type: simulated, url: 'http://127.0.0.1:1'}
  safe: {type: simulated, url: 'https://a.example.org'}
`)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Plaintext() {
		got = append(got, p.Field)
		if strings.Contains(p.Problem, "/canary") || !strings.Contains(p.Problem, "; want ") {
			t.Errorf("%s: %s", p.Field, p.Problem)
		}
	}
	want := []string{"audit.heads.keep[0].http", "audit.heads.keep[1].objects.plaintext", "destinations.far.url", "destinations.shop.plaintext",
		"ledger.plaintext", "metrics.listen", "server.listen", "server.public_url", "telemetry.endpoint"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	quiet, err := config.Load(write(t, "ledger: a.db\nserver: {listen: '127.0.0.1:80'}\nmetrics: {listen: 'localhost:9464'}\ndestinations:\n  here: {type: simulated, url: 'http://localhost:1'}\n"))
	if err != nil || len(quiet.Plaintext()) > 0 {
		t.Errorf("%v, %v: this machine alone", quiet.Plaintext(), err)
	}
}

func TestPlacesOfHeads(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a.db\naudit: {heads: {key_env: K, keep: [{file: heads}, {http: 'https://a.example/x'}]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if files, elsewhere := c.HeadPlaces(); len(files) != 1 || files[0] != filepath.Join(filepath.Dir(c.Path), "heads") || !elsewhere {
		t.Errorf("%q, %v", files, elsewhere)
	}
}
