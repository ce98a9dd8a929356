package access_test

import (
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// FuzzLoginForm: for every input of the login form, a session is begun only for a valid
// token of a person, and the path after it is a page of ours.
func FuzzLoginForm(f *testing.F) {
	tokens := access.NewTokens(ledger.NewMemory(), &access.TokenOptions{People: true})
	secret := map[engine.Role]string{}
	for _, role := range []engine.Role{engine.RoleAgent, engine.RoleReviewer} {
		var err error
		if _, secret[role], err = tokens.Create(f.Context(), access.NewToken{Tenant: "acme", Name: "x", Role: role, TTL: time.Hour, By: "root"}); err != nil {
			f.Fatal(err)
		}
	}
	logins, err := access.NewLogins(f.Context(), access.LoginOptions{Tokens: tokens, Key: []byte(strings.Repeat("k", access.MinKey))})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"token=REVIEWER", "token=REVIEWER&next=/inbox", "token=REVIEWER&next=//evil.example", "token=REVIEWER&next=/\\evil.example", "token=AGENT", "token=REVIEWER&token=AGENT",
		"token=+REVIEWER+", "token=rbk_", "token=%ff", "TOKEN=REVIEWER", "", "token", "token=REVIEWER&next=%0d%0aSet-Cookie:x=y", "next=javascript:alert(1)&token=REVIEWER", strings.Repeat("a=b&", 3000)} {
		f.Add(seed, "application/x-www-form-urlencoded", "")
		f.Add(seed, "multipart/form-data; boundary=x", "token=REVIEWER")
	}
	f.Fuzz(func(t *testing.T, body, kind, query string) {
		body = strings.NewReplacer("REVIEWER", secret[engine.RoleReviewer], "AGENT", secret[engine.RoleAgent]).Replace(body)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(body))
		r.URL.RawQuery = strings.ReplaceAll(query, "REVIEWER", secret[engine.RoleReviewer])
		r.Header.Set("Content-Type", kind)
		from := fnv.New32a()
		_, _ = from.Write([]byte(body + kind + query))
		addr, _ := netip.AddrFromSlice(from.Sum(nil))
		r.RemoteAddr = netip.AddrPortFrom(addr, 1).String() // a caller who guesses must wait
		w := httptest.NewRecorder()
		logins.ServeHTTP(w, r)
		begun := strings.Contains(strings.Join(w.Header().Values("Set-Cookie"), "\n"), "readback-session=")
		if w.Code >= http.StatusInternalServerError || begun != (w.Code == http.StatusSeeOther) {
			t.Fatalf("%q: %d %v %s", body, w.Code, w.Header(), w.Body)
		}
		if !begun {
			return
		}
		if !strings.Contains(body, secret[engine.RoleReviewer]) {
			t.Errorf("%q begins a session", body)
		}
		to, err := url.Parse(w.Header().Get("Location"))
		if err != nil || to.IsAbs() || to.Host != "" || !strings.HasPrefix(to.Path, "/") || strings.HasPrefix(to.Path, "//") || strings.ContainsAny(w.Header().Get("Location"), "\\\r\n") {
			t.Errorf("%q leads to %q", body, w.Header().Get("Location"))
		}
	})
}
