package config_test

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
)

// logins is a server that refuses every login and records its credentials.
type logins struct {
	t    *testing.T
	addr string

	mu     sync.Mutex
	secret string // that was shown last
}

func (l *logins) show(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secret = secret
}

func (l *logins) shown() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.secret
}

// listens has the conversation with each connection, one after another.
func (l *logins) listens(talk func(c net.Conn, show func(string))) *logins {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	l.addr = ln.Addr().String()
	ended := make(chan struct{})
	l.t.Cleanup(func() { _ = ln.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			talk(c, l.show)
			_ = c.Close()
		}
	}()
	return l
}

// lines implements a line protocol: it responds to lines that begin with a word.
func lines(greeting string, answers map[string]string, secret func(line string) string) func(net.Conn, func(string)) {
	return func(c net.Conn, show func(string)) {
		_, _ = io.WriteString(c, greeting)
		for s := bufio.NewScanner(c); s.Scan(); {
			tag, _, _ := strings.Cut(s.Text(), " ")
			if got := secret(s.Text()); got != "" {
				show(got)
			}
			for word, answer := range answers {
				if strings.Contains(s.Text(), word) {
					_, _ = io.WriteString(c, strings.ReplaceAll(answer, "TAG", tag))
				}
			}
		}
	}
}

func imapLogins(t *testing.T) *logins {
	return (&logins{t: t}).listens(lines("* OK ready\r\n", map[string]string{"LOGIN": "TAG NO no\r\n", "CAPABILITY": "* CAPABILITY IMAP4rev1\r\nTAG OK done\r\n", "LOGOUT": "TAG OK bye\r\n"},
		func(line string) string {
			_, rest, _ := strings.Cut(line, `LOGIN "u" "`)
			return strings.TrimSuffix(rest, `"`)
		}))
}

func smtpLogins(t *testing.T) *logins {
	return (&logins{t: t}).listens(lines("220 ready\r\n", map[string]string{"EHLO": "250-x\r\n250 AUTH PLAIN\r\n", "AUTH": "535 no\r\n", "*": "501 no\r\n", "QUIT": "221 bye\r\n"},
		func(line string) string {
			_, coded, _ := strings.Cut(line, "AUTH PLAIN ")
			text, _ := base64.StdEncoding.DecodeString(coded)
			return string(text[min(len(text), len("\x00u\x00")):])
		}))
}

func postgresLogins(t *testing.T) *logins {
	message := func(c net.Conn, header int) []byte {
		head := make([]byte, header)
		if _, err := io.ReadFull(c, head); err != nil {
			return nil
		}
		body := make([]byte, binary.BigEndian.Uint32(head[header-4:])-4)
		_, _ = io.ReadFull(c, body)
		return body
	}
	return (&logins{t: t}).listens(func(c net.Conn, show func(string)) {
		message(c, 4)                                          // startup
		_, _ = c.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3})    // want a password
		show(strings.TrimRight(string(message(c, 5)), "\x00")) // its message
		no := "SFATAL\x00C28P01\x00Mno\x00\x00"                // invalid password
		_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(no) + 4)}, no...))
	})
}

func httpLogins(t *testing.T, of func(*http.Request) string) *logins {
	l := &logins{t: t}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.show(of(r))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	l.addr = strings.TrimPrefix(s.URL, "http://")
	return l
}

func header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// TestRotatedSecretsAreUsedWithoutARestart: each use of a secret takes the one that the
// file has now, or that the command prints now.
func TestRotatedSecretsAreUsedWithoutARestart(t *testing.T) {
	const one, two = "first-secret", "second-secret"
	probe := func(name string) func(*testing.T, config.Config) func() {
		return func(t *testing.T, c config.Config) func() {
			conn := destinationOf(t, c, name)
			return func() { _ = conn.(connectors.Prober).Probe(t.Context()) } // which is refused
		}
	}
	bearer := func(secret string) string { return "Bearer " + secret }
	box := "box:\n    type: imap\n    addr: ADDR\n    tls: none\n    username: u\n    "
	for name, tt := range map[string]struct {
		at      func(*testing.T) *logins
		setting string // the name of the setting, "" for one in a mapping, which is IN
		text    string
		use     func(*testing.T, config.Config) func()
		shown   func(secret string) string
	}{
		"jira": {func(t *testing.T) *logins { return httpLogins(t, header("Authorization")) }, "token",
			"destinations:\n  x: {type: jira, deployment: cloud, url: 'http://ADDR', sample_project: OPS, SECRET}\n", probe("x"), bearer},
		"rest": {func(t *testing.T) *logins { return httpLogins(t, header("Authorization")) }, "",
			"destinations:\n  x: {type: rest, declaration: github-issues, base_url: 'http://ADDR', parameters: {owner: a, repo: b}, secrets: {token: {SECRET}}}\n", probe("x"), bearer},
		"mcp": {func(t *testing.T) *logins { return httpLogins(t, header("X-Key")) }, "",
			"destinations:\n  x: {type: mcp, contract: filesystem, url: 'http://ADDR', headers: {X-Key: {SECRET}}}\n", probe("x"), nil},
		"imap": {imapLogins, "password", "destinations:\n  " + box + "SECRET\n", probe("box"), nil},
		"mail": {smtpLogins, "password", "destinations:\n  x: {type: mail, addr: ADDR, tls: none, username: u, SECRET, proof: filed, from: a@example.org, imap: {addr: '127.0.0.1:1', tls: none}}\n", probe("x"), nil},
		"postgresql": {postgresLogins, "password",
			"destinations:\n  x: {type: postgresql, dsn: 'postgres://u@ADDR/x?sslmode=disable', SECRET, tables: {t: {columns: {n: text}, key: n, unique: true}}}\n", probe("x"), nil},
		"postgresql, reads": {postgresLogins, "read_password",
			"destinations:\n  x: {type: postgresql, dsn: 'postgres://u@127.0.0.1:1/x?sslmode=disable', read_dsn: 'postgres://u@ADDR/x?sslmode=disable', SECRET, tables: {t: {columns: {n: text}, key: n, unique: true}}}\n",
			func(t *testing.T, c config.Config) func() {
				conn := destinationOf(t, c, "x")
				return func() {
					_, _ = conn.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Kind: "t", Key: intent.Fields{"n": "1"}}})
				}
			}, nil},
		"heads, posted": {func(t *testing.T) *logins { return httpLogins(t, header("Authorization")) }, "bearer",
			"audit: {heads: {key_env: SIGNER, keep: [{http: 'http://ADDR/x', SECRET}]}}\n", keeps, bearer},
		"heads, in an object store": {func(t *testing.T) *logins {
			return httpLogins(t, func(r *http.Request) string {
				_, who, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
				who, _, _ = strings.Cut(who, "/")
				return who
			})
		}, "access_key", "audit: {heads: {key_env: SIGNER, keep: [{objects: {endpoint: ADDR, bucket: heads, region: eu, plaintext: true, SECRET, secret_key_env: STORE}}]}}\n", keeps, nil},
		"logins of people": {func(t *testing.T) *logins { return &logins{t: t} }, "client_secret",
			"server: {public_url: 'https://readback.example.org', oidc: {issuer: 'https://id.example.org', client_id: x, SECRET, rules: [{claim: a, value: b, role: reviewer}]}}\n", nil, nil},
	} {
		for by, secret := range map[string]string{"file": "secret.txt", "command": "[cat, secret.txt]"} {
			t.Run(name+", by "+by, func(t *testing.T) {
				l := tt.at(t)
				setting := strings.TrimPrefix(tt.setting+"_"+by, "_") + ": " + secret
				text := strings.NewReplacer("ADDR", l.addr, "SECRET", setting).Replace("ledger: a.db\nsecrets: {refresh: 1ns}\n" + tt.text)
				path := write(t, text)
				file := filepath.Join(filepath.Dir(path), "secret.txt")
				put := func(secret string) {
					if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				put(one)
				c, err := config.Load(path)
				if err != nil {
					t.Fatal(err)
				}
				var use func()
				if tt.use != nil {
					use = tt.use(t, c)
				} else {
					o, err := c.Logins(environment())
					if err != nil {
						t.Fatal(err)
					}
					use = func() { secret, _ := o.Secret(t.Context()); l.show(secret) }
				}
				for _, secret := range []string{one, two} {
					put(secret)
					use()
					want := secret
					if tt.shown != nil {
						want = tt.shown(secret)
					}
					if l.shown() != want {
						t.Errorf("the destination was shown %q, want %q", l.shown(), want)
					}
				}
			})
		}
	}
}

func destinationOf(t *testing.T, c config.Config, name string) connectors.Connector {
	t.Helper()
	reg, err := c.Registry(environment())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range reg.Profiles() {
		if p.Destination == name {
			conn, _, _ := reg.Lookup(name, p.Kind)
			return conn
		}
	}
	t.Fatalf("no destination %q", name)
	return nil
}

// keeps hands one head to the only place for heads.
func keeps(t *testing.T, c config.Config) func() {
	private, _ := newKey(t)
	o, err := c.Sealing(environment("SIGNER", private, "STORE", "store-secret"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(audit.Head{Format: 1, Ledger: "l", Tenant: "t", Entries: 1, Page: 1, Hash: "h"})
	if err != nil {
		t.Fatal(err)
	}
	head, err := o.Signer.Sign(t.Context(), audit.HeadType, payload)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		for _, k := range o.HeadStores {
			_ = k.Keep(t.Context(), head)
		}
	}
}

// TestARefusedHeadFetchesItsTokenAnew: a place for heads that refuses one is shown what the
// command prints now, before its refresh is due.
func TestARefusedHeadFetchesItsTokenAnew(t *testing.T) {
	l := httpLogins(t, header("Authorization"))
	path := write(t, "ledger: a.db\naudit: {heads: {key_env: SIGNER, keep: [{http: 'http://"+l.addr+"/x', bearer_command: [cat, secret.txt]}]}}\n")
	keep(t, path, "secret.txt", "first-secret")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	use := keeps(t, c)
	for _, secret := range []string{"first-secret", "second-secret"} {
		use()
		if want := "Bearer " + secret; l.shown() != want {
			t.Errorf("it was shown %q, want %q", l.shown(), want)
		}
		keep(t, path, "secret.txt", "second-secret")
	}
}

// TestARotatedSecretSignsMessages: a message that a webhook sends is signed with what
// the files have now, the present secret and the one before it.
func TestARotatedSecretSignsMessages(t *testing.T) {
	signatures := ""
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { signatures = r.Header.Get("Webhook-Signature") }))
	t.Cleanup(s.Close)
	path := write(t, "ledger: a.db\nwebhooks: [{name: ops, url: '"+s.URL+"', secret_file: now.txt, previous_secret_command: [cat, before.txt], allow_private: [127.0.0.0/8]}]\nsecrets: {refresh: 1ns}\n")
	put := func(now, before string) {
		for name, text := range map[string]string{"now.txt": now, "before.txt": before} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(hookOlder, hookSecret)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	conn := destinationOf(t, c, "webhook:ops")
	newest := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret that is the newest one"))
	var all []string
	for _, secrets := range [][2]string{{hookOlder, hookSecret}, {newest, hookOlder}} {
		put(secrets[0], secrets[1])
		if _, err := conn.Write(t.Context(), connectors.Request{Prepared: []byte("{}"), IdempotencyKey: "m1", Intent: intent.WriteIntent{Kind: webhook.Kind}}); err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Fields(signatures)...)
	}
	if len(all) != 4 || all[0] == all[2] || all[1] == all[3] {
		t.Errorf("the signatures are %q; want two on each message, with the secrets as they were then", all)
	}
}
