package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger/sqlite"
)

var secretLine = regexp.MustCompile(`^rbk_[a-z2-7]{16}_[a-z2-7]{59}\n$`)

// plainIDs puts one text in the place of every id and secret, so that golden
// files can be compared.
func plainIDs(r result) result {
	text := regexp.MustCompile(`rbk_[a-z2-7]{16}_[a-z2-7]{59}`).ReplaceAllString(r.out, "SECRET")
	r.out = regexp.MustCompile(`\b[a-z2-7]{16}\b`).ReplaceAllString(text, "SIXTEENLETTERSID")
	return r
}

// known is who the server would say somebody is.
func (p *place) known(secret string) (access.Identity, error) {
	p.t.Helper()
	l, err := sqlite.Open(p.t.Context(), p.ledger, &sqlite.Options{Now: p.now})
	if err != nil {
		p.t.Fatal(err)
	}
	defer l.Close()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(secret))
	return access.NewTokens(l, &access.TokenOptions{Now: p.now}).Resolve(r)
}

func TestTokenLife(t *testing.T) {
	p := newPlace(t, simulated.Plain.Options())
	now := began
	p.now = func() time.Time { return now }
	r := p.want(0, p.run("token", "create", "--role", "agent", "--name", "billing bot", "--by", "alice", "--ttl", "30d"))
	if !secretLine.MatchString(r.out) {
		t.Fatalf("standard output is %q; want the secret and nothing else", r.out)
	}
	secret, id := strings.TrimSpace(r.out), r.out[4:20]
	says(t, result{out: r.err}, id, "agent of tenant acme", "2026-03-02T23:59:58Z")
	if strings.Contains(r.err, secret) {
		t.Error("standard error repeats the secret")
	}
	who, err := p.known(secret)
	if err != nil || who.Tenant != "acme" || who.Name != "billing bot" || who.Role != "agent" {
		t.Errorf("the token is that of %+v, %v", who, err)
	}
	now = now.Add(time.Hour)
	p.want(0, p.run("token", "create", "--role", "reviewer", "--name", "Ben", "--by", "alice", "--ttl", "1h"))
	p.want(0, p.run("--tenant", "other", "token", "create", "--role", "auditor", "--name", "Eve", "--by", "eve"))
	now = now.Add(2 * time.Hour)
	golden(t, "token-list", plainIDs(p.want(0, p.run("token", "list"))))
	golden(t, "token-list-json", plainIDs(p.want(0, p.run("token", "list", "--json"))))
	p.want(exitNotFound, p.run("--tenant", "other", "token", "revoke", id, "--by", "eve"))
	golden(t, "token-revoke", plainIDs(p.want(0, p.run("token", "revoke", id, "--by", "Ben"))))
	if _, err := p.known(secret); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("the revoked token: %v", err)
	}
	text, err := os.ReadFile(p.ledger)
	if err != nil {
		t.Fatal(err)
	}
	more, _ := os.ReadFile(p.ledger + "-wal")
	if strings.Contains(string(text)+string(more), secret[21:60]) {
		t.Error("the ledger has the secret")
	}
}

func TestTokenInJSON(t *testing.T) {
	p := newPlace(t, simulated.Plain.Options())
	p.now = func() time.Time { return began }
	r := p.want(0, p.run("token", "create", "--role", "operator", "--name", "Ann", "--by", "root", "--json"))
	if r.err != "" {
		t.Errorf("standard error: %s", r.err)
	}
	golden(t, "token-create-json", plainIDs(r))
}

func TestTokenBadly(t *testing.T) {
	p := newPlace(t, simulated.Plain.Options())
	p.want(0, p.run("token", "create", "--role", "agent", "--name", "x"))
	if _, err := os.Stat(filepath.Join(p.dir, "readback.db")); err != nil {
		t.Errorf("create makes the ledger: %v", err)
	}
	for name, c := range map[string]struct {
		args   []string
		code   int
		says   string
		reason string
	}{
		"no word":       {[]string{}, exitUsage, "want create, list or revoke", "there is nothing to do"},
		"no role":       {[]string{"create", "--name", "x"}, exitUsage, "--role is missing", "no role is the default"},
		"no name":       {[]string{"create", "--role", "agent"}, exitUsage, "--name is missing", "what is decided has a name"},
		"unknown role":  {[]string{"create", "--role", "admin", "--name", "x"}, exitUsage, `role is "admin"; want agent, reviewer, operator or auditor`, "it could do nothing"},
		"never":         {[]string{"create", "--role", "agent", "--name", "x", "--ttl", "never"}, exitUsage, "--ttl: ", "no token is good for ever"},
		"nothing":       {[]string{"create", "--role", "agent", "--name", "x", "--ttl", "0"}, exitUsage, "--ttl: ", "0 means for ever elsewhere"},
		"too long":      {[]string{"create", "--role", "agent", "--name", "x", "--ttl", "401d"}, exitUsage, "400d", "no token is good for ever"},
		"too short":     {[]string{"create", "--role", "agent", "--name", "x", "--ttl", "1s"}, exitUsage, "1m0s", "it would be gone before it is used"},
		"blank name":    {[]string{"create", "--role", "agent", "--name", "  "}, exitUsage, "name is missing", "blanks are nobody's name"},
		"unseen name":   {[]string{"create", "--role", "agent", "--name", "a\u200bb"}, exitUsage, "cannot be seen", "it would be read as another's"},
		"blank maker":   {[]string{"create", "--role", "agent", "--name", "x", "--by", "\t"}, exitUsage, "by ", "somebody made it"},
		"no such token": {[]string{"revoke", "aaaaaaaaaaaaaaaa"}, exitNotFound, "no such token", "it may be another tenant's"},
		"no id":         {[]string{"revoke"}, exitUsage, "", "which one"},
		"its secret":    {[]string{"revoke", "rbk_aaaaaaaaaaaaaaaa_" + strings.Repeat("b", 59)}, exitNotFound, "no such token", "people paste what they have"},
	} {
		t.Run(name, func(t *testing.T) {
			r := p.run(append([]string{"token"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.err, c.says) || r.out != "" && c.says != "" && name != "no word" {
				t.Errorf("%s: %s", c.reason, r)
			}
			if strings.Contains(r.err, strings.Repeat("b", 59)) {
				t.Errorf("the message repeats a secret: %s", r)
			}
		})
	}
}

func TestTokenHelp(t *testing.T) {
	p := newPlace(t, simulated.Plain.Options())
	for _, command := range []string{"create", "list", "revoke"} {
		golden(t, "help-token-"+command, p.want(0, p.run("token", command, "--help")))
	}
}
