package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
)

var secretLine = regexp.MustCompile(`^rbk_[a-z2-7]{16}_[a-z2-7]{59}\n$`)

// plainIDs replaces every id and secret by one text, so that golden files can be
// compared.
func plainIDs(r result) result {
	text := regexp.MustCompile(`rbk_[a-z2-7]{16}_[a-z2-7]{59}`).ReplaceAllString(r.out, "SECRET")
	r.out = regexp.MustCompile(`\b[a-z2-7]{16}\b`).ReplaceAllString(text, "SIXTEENLETTERSID")
	return r
}

// known is a caller's identity according to the server.
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
	p := newPlace(t, orders.Plain.Options())
	now := began
	p.now = func() time.Time { return now }
	p.personTokens()
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
	p.want(exitRefused, p.run("--tenant", "other", "token", "revoke", id, "--by", "eve"))
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
	p := newPlace(t, orders.Plain.Options())
	p.now = func() time.Time { return began }
	p.personTokens()
	r := p.want(0, p.run("token", "create", "--role", "operator", "--name", "Ann", "--by", "root", "--json"))
	if r.err != "" {
		t.Errorf("standard error: %s", r.err)
	}
	golden(t, "token-create-json", plainIDs(r))
}

func TestTokenBadly(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
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
		"blank name":    {[]string{"create", "--role", "agent", "--name", "  "}, exitUsage, "name is missing", "blanks are no name"},
		"unseen name":   {[]string{"create", "--role", "agent", "--name", "a\u200bb"}, exitUsage, "cannot be seen", "it would be read as another's"},
		"blank maker":   {[]string{"create", "--role", "agent", "--name", "x", "--by", "\t"}, exitUsage, "by ", "a token has a maker"},
		"a person":      {[]string{"create", "--role", "reviewer", "--name", "x"}, exitUsage, "set server.person_tokens: true", "people have tokens where that is configured"},
		"two ends":      {[]string{"create", "--role", "agent", "--name", "x", "--ttl", "1d", "--expires", "2030-01-01T00:00:00Z"}, exitUsage, "--expires is given beside --ttl", "which one counts"},
		"no time":       {[]string{"create", "--role", "agent", "--name", "x", "--expires", "tomorrow"}, exitUsage, "--expires is \"tomorrow\"", "it is no time"},
		"over":          {[]string{"create", "--role", "agent", "--name", "x", "--expires", "2001-01-01T00:00:00Z"}, exitUsage, "which is over", "it would never be good"},
		"far":           {[]string{"create", "--role", "agent", "--name", "x", "--expires", "2999-01-01T00:00:00Z"}, exitUsage, "400d", "no token is good for ever"},
		"destination":   {[]string{"create", "--role", "agent", "--name", "x", "--destination", ""}, exitUsage, "the destination \"\"; want a name", "a variable of a script is not set"},
		"kind":          {[]string{"create", "--role", "agent", "--name", "x", "--kind", " order"}, exitUsage, "the kind \" order\"; want a name", "no kind is called so"},
		"type":          {[]string{"create", "--role", "agent", "--name", "x", "--type", "wipe"}, exitUsage, "want create, update, upsert or delete", "there is no such type"},
		"tool":          {[]string{"create", "--role", "agent", "--name", "x", "--tool", "a", "--tool", "a"}, exitUsage, "the tool \"a\" twice", "one of them was meant otherwise"},
		"max":           {[]string{"create", "--role", "agent", "--name", "x", "--max", "/amount"}, exitUsage, "--max is \"/amount\"; want a field and a number", "how much"},
		"max of what":   {[]string{"create", "--role", "agent", "--name", "x", "--max", "amount=5"}, exitUsage, "want a JSON Pointer to a field", "it names no field"},
		"max how much":  {[]string{"create", "--role", "agent", "--name", "x", "--max", "/amount=5 EUR"}, exitUsage, "want a decimal", "it cannot be compared"},
		"whose scope":   {[]string{"create", "--role", "operator", "--name", "x", "--destination", "orders"}, exitUsage, "want the role agent, or no scope", "what people decide is not bounded by it"},
		"no such token": {[]string{"revoke", "aaaaaaaaaaaaaaaa"}, exitRefused, "no such token", "it may be another tenant's"},
		"no id":         {[]string{"revoke"}, exitUsage, "", "which one"},
		"its secret":    {[]string{"revoke", "rbk_aaaaaaaaaaaaaaaa_" + strings.Repeat("b", 59)}, exitRefused, "no such token", "people paste what they have"},
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

// A scope is given when a token is made, and is listed.
func TestTokenWithAScope(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.now = func() time.Time { return began }
	scope := []string{"--destination", "orders", "--destination", "desk", "--kind", "order", "--type", "create", "--tool", "charge", "--max", "/amount=99.95"}
	r := p.want(0, p.run(append([]string{"token", "create", "--role", "agent", "--name", "bot", "--by", "alice", "--expires", "2026-03-01T00:00:00Z"}, scope...)...))
	const words = "destination orders, desk; kind order; write type create; tool charge; /amount at most 99.95"
	says(t, result{out: r.err}, "good until 2026-03-01T00:00:00Z", "Scope: "+words+".")
	who, err := p.known(r.out)
	if err != nil || who.Scope.String() != words {
		t.Errorf("the token has the scope %v, %v", who.Scope, err)
	}
	says(t, p.want(0, p.run("token", "list")), words)
	says(t, p.want(0, p.run("token", "list", "--json")), `"destinations": [`, `"most": "99.95"`)
}

// Doctor names the tokens of people that are refused, and those of agents without a
// scope.
func TestDoctorNamesTokensWithoutASettingOrAScope(t *testing.T) {
	p, text := secure(t)
	p.write("readback.yaml", strings.Replace(text, "server: {", "server: {person_tokens: true, ", 1))
	p.want(0, p.run("token", "create", "--role", "reviewer", "--name", "ben"))
	p.want(0, p.run("token", "create", "--role", "agent", "--name", "bot", "--tool", "charge"))
	p.want(0, p.run("audit", "seal"))
	says(t, p.want(0, p.run("doctor", "--security")), "ok scopes")
	p.write("readback.yaml", text)
	for _, args := range [][]string{{"doctor"}, {"doctor", "--security"}} {
		says(t, p.run(args...), "failed person tokens", "of ben, reviewer of tenant acme, is refused", "Set `server.person_tokens: true`")
	}
	p.want(0, p.run("token", "create", "--role", "agent", "--name", "wide"))
	says(t, p.run("doctor", "--security"), "failed scopes", "of wide, agent of tenant acme, may write everything", "--destination")
}
