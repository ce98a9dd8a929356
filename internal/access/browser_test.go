package access_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/access/accesstest"
)

const (
	site   = "https://readback.example.org"
	issuer = "https://login.example.org"
)

// world is a server with logins, its ledger and its provider.
type world struct {
	t        *testing.T
	notes    *flaky
	tokens   *access.Tokens
	provider *accesstest.Provider
	options  access.LoginOptions
	logins   *access.Logins
	log      bytes.Buffer
	handler  http.Handler
}

var operators = []access.ClaimRule{
	{Claim: "groups", Value: "operators", Tenant: "acme", Role: engine.RoleOperator},
	{Claim: "realm.roles", Value: "support", Tenant: "{org}", Role: engine.RoleReviewer},
}

func newWorld(t *testing.T, change func(*access.LoginOptions)) *world {
	t.Helper()
	w := &world{t: t, notes: newFlaky(), provider: accesstest.Silent(t, issuer)}
	w.tokens = access.NewTokens(w.notes, &access.TokenOptions{People: true})
	w.options = access.LoginOptions{
		Issuer: issuer, ClientID: accesstest.ClientID, Secret: func(context.Context) (string, error) { return accesstest.Secret, nil }, RedirectURL: site + "/login/callback", Rules: operators,
		Key: bytes.Repeat([]byte("k"), 32), Client: w.provider.Client(), Tokens: w.tokens,
		Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&w.options)
	}
	w.restart(nil)
	return w
}

// restart makes the server anew, with other options where they are given.
func (w *world) restart(change func(*access.LoginOptions)) {
	w.t.Helper()
	if change != nil {
		change(&w.options)
	}
	logins, err := access.NewLogins(w.t.Context(), w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.logins = logins
	mux := http.NewServeMux()
	mux.Handle("/login", logins)
	mux.Handle("/login/", logins)
	mux.Handle("/logout", logins)
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		who, err := access.First(w.tokens, logins).Resolve(r)
		if err != nil {
			status, _ := access.Refused(err)
			http.Error(rw, err.Error(), status)
			return
		}
		_, _ = fmt.Fprintf(rw, "%s %s of %s by %s", who.Role, who.Name, who.Tenant, who.Via)
	})
	w.handler = access.Protect(mux, access.ProtectOptions{})
}

// browser keeps cookies, and goes where it is sent.
type browser struct {
	w       *world
	home    string // the site's address
	cookies map[string]*http.Cookie
	trail   []*http.Response
}

func (w *world) browser() *browser {
	return &browser{w: w, home: site, cookies: map[string]*http.Cookie{}}
}

// send asks once.
func (b *browser) send(method, target string, form url.Values) *http.Response {
	b.w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	u, err := url.Parse(target)
	if err != nil {
		b.w.t.Fatal(err)
	}
	if u.Host == "login.example.org" {
		r, err := http.NewRequestWithContext(b.w.t.Context(), method, target, body)
		if err != nil {
			b.w.t.Fatal(err)
		}
		answer, err := b.w.provider.Client().Transport.RoundTrip(r)
		if err != nil {
			b.w.t.Fatal(err)
		}
		return answer
	}
	if u.Host == "" {
		target = b.home + target
	}
	r := httptest.NewRequest(method, target, body)
	r = r.WithContext(b.w.t.Context())
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	rec := httptest.NewRecorder()
	b.w.handler.ServeHTTP(rec, r)
	answer := rec.Result()
	for _, c := range answer.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c
		}
	}
	return answer
}

// open asks, and follows where it is sent.
func (b *browser) open(method, target string, form url.Values) (int, string) {
	b.w.t.Helper()
	for range 10 {
		answer := b.send(method, target, form)
		b.trail = append(b.trail, answer)
		next := answer.Header.Get("Location")
		if next == "" {
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				b.w.t.Fatal(err)
			}
			return answer.StatusCode, string(text)
		}
		method, target, form = http.MethodGet, next, nil
	}
	b.w.t.Fatal("it is sent around for ever")
	return 0, ""
}

// login logs in at the provider, and returns the path after the login.
func (b *browser) login() (int, string) {
	b.w.t.Helper()
	return b.open("GET", "/login/provider?next=/inbox", nil)
}

// paste logs in with a token.
func (b *browser) paste(secret string) (int, string) {
	b.w.t.Helper()
	return b.open("POST", "/login", url.Values{"token": {secret}, "next": {"/inbox"}})
}

// is expects the browser's identity; "" for none.
func (b *browser) is(who string) {
	b.w.t.Helper()
	status, text := b.open("GET", "/inbox", nil)
	if who == "" && status == http.StatusUnauthorized || who != "" && text == who {
		return
	}
	b.w.t.Errorf("it is %d %q, want %q", status, text, who)
}

// as makes a token.
func (w *world) as(role engine.Role, ttl time.Duration) (access.Token, string) {
	w.t.Helper()
	return create(w.t, w.tokens, access.NewToken{Tenant: "acme", Name: "Ben", Role: role, TTL: ttl, By: "alice"})
}

// get asks for a page without following.
func (w *world) get(target string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil).WithContext(context.WithoutCancel(w.t.Context()))
	for _, c := range cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	return ask(w.handler, r)
}
