package access_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/access/accesstest"
)

const alice = "operator alice@example.com of acme by login"

func TestLogin(t *testing.T) {
	w := newWorld(t, nil)
	b := w.browser()
	b.is("")
	if status, text := b.login(); status != 200 || text != alice {
		t.Fatalf("%d %s", status, text)
	}
	begun := b.trail[1]
	to, err := url.Parse(begun.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	q := to.Query()
	if q.Get("redirect_uri") != site+"/login/callback" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid email profile" ||
		len(q.Get("state")) < 40 || len(q.Get("nonce")) < 40 || len(q.Get("code_challenge")) != 43 || q.Get("nonce") == q.Get("state") {
		t.Errorf("it is sent to %s", to)
	}
	for _, secret := range []string{q.Get("state"), q.Get("nonce"), b.cookies["__Host-readback-session"].Value, accesstest.Secret} {
		if strings.Contains(w.log.String(), secret) {
			t.Error("the log has a secret of the login")
		}
	}
	if !strings.Contains(w.log.String(), `msg="logged in" tenant=acme name=alice@example.com role=operator`) {
		t.Errorf("the log does not name who logged in:\n%s", w.log.String())
	}
}

func TestCookies(t *testing.T) {
	attributes := func(answer *http.Response, name string) *http.Cookie {
		for _, c := range answer.Cookies() {
			if c.Name == name && c.MaxAge >= 0 {
				return c
			}
		}
		t.Fatalf("no cookie %s in %v", name, answer.Cookies())
		return nil
	}
	w := newWorld(t, nil)
	b := w.browser()
	b.login()
	for name, c := range map[string]*http.Cookie{
		"attempt": attributes(b.trail[0], "__Host-readback-login"), "session": attributes(b.trail[2], "__Host-readback-session"),
	} {
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("the cookie of the %s: %s", name, c)
		}
	}
	if _, there := b.cookies["__Host-readback-login"]; there {
		t.Error("the cookie of the attempt is still there")
	}

	w = newWorld(t, func(o *access.LoginOptions) { o.Issuer, o.RedirectURL, o.Rules = "", "", nil })
	_, secret := w.as(engine.RoleReviewer, time.Hour)
	for home, secure := range map[string]bool{"http://127.0.0.1:8080": false, "http://localhost:8080": false, "http://[::1]:8080": false,
		"https://127.0.0.1:8080": true, "http://readback.example.org": true, "http://localhost.example.org": true, "http://192.0.2.1": true} {
		b := w.browser()
		b.home = home
		answer := b.send("POST", "/login", url.Values{"token": {secret}})
		name := "readback-session"
		if secure {
			name = "__Host-" + name
		}
		if c := attributes(answer, name); c.Secure != secure || !c.HttpOnly {
			t.Errorf("at %s the cookie is %s", home, c)
		}
		warns := strings.Contains(b.w.get(home+"/login").Body.String(), "without TLS")
		if warns != (secure && strings.HasPrefix(home, "http://")) {
			t.Errorf("at %s the page warns: %v", home, warns)
		}
	}
}

func TestProviderFaults(t *testing.T) {
	for kind, c := range map[accesstest.Fault]struct {
		status int
		log    string
	}{
		accesstest.WrongNonce:    {401, "about another login"},
		accesstest.WrongAudience: {401, "audience"},
		accesstest.OtherParty:    {401, "for another program"},
		accesstest.WrongIssuer:   {401, "different provider"},
		accesstest.Expired:       {401, "expired"},
		accesstest.Unsigned:      {401, "malformed jwt"},
		accesstest.OtherKey:      {401, "verify signature"},
		accesstest.Symmetric:     {401, "malformed jwt"},
		accesstest.Tampered:      {401, "verify signature"},
		accesstest.NoToken:       {401, "no id_token"},
		accesstest.Refusing:      {401, "access_denied"},
		accesstest.Garbled:       {503, "did not answer as it should"},
		accesstest.Down:          {503, "did not answer as it should"},
		accesstest.Slow:          {503, "did not answer as it should"},
		accesstest.Moved:         {401, "status 307"},
		accesstest.KeysDown:      {503, "keys of the provider of logins cannot be had"},
		accesstest.KeysGarbled:   {503, "keys of the provider of logins cannot be had"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				b := w.browser()
				back := b.toCallback(kind)
				status, text := b.open("GET", back, nil)
				if status != c.status || !strings.Contains(w.log.String(), c.log) {
					t.Errorf("got %d, and the log\n%s", status, w.log.String())
				}
				if !strings.Contains(text, "<h1>") || strings.Contains(text, "oidc") {
					t.Errorf("the page is\n%s", text)
				}
				if strings.Contains(w.log.String(), "broken provider") || strings.Contains(w.log.String(), "eyJ") {
					t.Errorf("the log has what the provider answered:\n%s", w.log.String())
				}
				if w.provider.Asked("/elsewhere") > 0 {
					t.Error("the code and the secret were sent elsewhere")
				}
				b.is("")
				w.provider.Has("")
				// go-oidc answers the waiting login before it forgets the failed request for keys;
				// a login in between would get that failure once more.
				synctest.Wait()
				b.login()
				b.is(alice)
			})
		})
	}
}

// toCallback logs in up to the provider, which then has a fault, and returns where it
// redirects the browser.
func (b *browser) toCallback(kind accesstest.Fault) string {
	b.w.t.Helper()
	to := b.send("GET", "/login/provider?next=/inbox", nil).Header.Get("Location")
	if kind == accesstest.Refusing {
		b.w.provider.Has(kind)
	}
	back := b.send("GET", to, nil).Header.Get("Location")
	b.w.provider.Has(kind)
	return back
}

func TestCallbackIsBoundToTheBrowser(t *testing.T) {
	change := func(back string, f func(url.Values)) string {
		u, err := url.Parse(back)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		f(q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for name, c := range map[string]struct {
		do     func(b *browser, back string) string
		reason string
	}{
		"another browser": {func(b *browser, back string) string { clear(b.cookies); return back }, "an attacker who lures a user there would log them in as the attacker"},
		"another attempt": {func(b *browser, back string) string { b.toCallback(""); return back }, "the state is another's"},
		"no state":        {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Del("state") }) }, "it answers nothing"},
		"other state":     {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Set("state", "x") }) }, "it answers nothing"},
		"two states":      {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Add("state", "x") }) }, "which one counts"},
		"two codes":       {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Add("code", "x") }) }, "which one counts"},
		"no code":         {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Del("code") }) }, "it answers nothing"},
		"other code":      {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Set("code", "x") }) }, "the provider knows none"},
		"an error beside": {func(_ *browser, back string) string { return change(back, func(q url.Values) { q.Set("error", "x") }) }, "it is refused"},
		"other issuer": {func(_ *browser, back string) string {
			return change(back, func(q url.Values) { q.Set("iss", "https://x") })
		}, "mixed up with another provider"},
		"too late": {func(_ *browser, back string) string { time.Sleep(10 * time.Minute); return back }, "the attempt has ended"},
		"a made-up cookie": {func(b *browser, back string) string {
			b.cookies["__Host-readback-login"].Value = strings.Repeat("A", 200)
			return back
		}, "it was not sealed here"},
		"the session's cookie": {func(b *browser, back string) string {
			other := b.w.browser()
			other.login()
			b.cookies["__Host-readback-login"].Value = other.cookies["__Host-readback-session"].Value
			return back
		}, "it was sealed for something else"},
		"once more": {func(b *browser, back string) string {
			again := b.w.browser()
			for name, cookie := range b.cookies {
				again.cookies[name] = &http.Cookie{Name: name, Value: cookie.Value}
			}
			if status, _ := again.open("GET", back, nil); status != 200 {
				b.w.t.Fatal(status)
			}
			return back
		}, "a code is good once"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newWorld(t, nil).browser()
				status, _ := b.open("GET", c.do(b, b.toCallback("")), nil)
				if status != 401 {
					t.Errorf("%s: got %d", c.reason, status)
				}
				b.is("")
			})
		})
	}
}

func TestProviderDownAtStart(t *testing.T) {
	for _, kind := range []accesstest.Fault{accesstest.Down, accesstest.Slow} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(o *access.LoginOptions) { o.Client = nil; o.Issuer = "" })
				w.provider.Has(kind)
				began := time.Now()
				w.restart(func(o *access.LoginOptions) { o.Client, o.Issuer = w.provider.Client(), issuer })
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("the start took %s", took)
				}
				if !strings.Contains(w.log.String(), "level=WARN msg=\"the provider of logins cannot be used") || strings.Contains(w.log.String(), "secret words") {
					t.Errorf("the log says\n%s", w.log.String())
				}
				for range 100 {
					if answer := w.get(site + "/login/provider"); answer.Code != 503 || answer.Header().Get("Retry-After") == "" {
						t.Fatalf("got %d", answer.Code)
					}
					if answer := w.get(site + "/login"); answer.Code != 503 || !strings.Contains(answer.Body.String(), `name="token"`) {
						t.Fatalf("got %d; want the way in with a token too", answer.Code)
					}
					time.Sleep(time.Second)
				}
				if asked := w.provider.Asked("/.well-known/openid-configuration"); asked > 12 {
					t.Errorf("it was asked %d times in less than ten minutes", asked)
				}
				_, secret := w.as(engine.RoleReviewer, time.Hour)
				b := w.browser()
				b.paste(secret)
				b.is("reviewer Ben of acme by token")
				w.provider.Has("")
				time.Sleep(31 * time.Second)
				b = w.browser()
				b.login()
				b.is(alice)
			})
		})
	}
}

func TestLoginWithoutAMatchingRule(t *testing.T) {
	w := newWorld(t, nil)
	w.provider.Says(map[string]any{"sub": "1", "groups": []string{"others"}})
	b := w.browser()
	status, text := b.login()
	if status != 403 || !strings.Contains(text, "no rule of this server gives you a role") || len(b.cookies) != 0 {
		t.Errorf("got %d with the cookies %v:\n%s", status, b.cookies, text)
	}
	b.is("")
}

func TestLoginWithToken(t *testing.T) {
	w := newWorld(t, func(o *access.LoginOptions) { o.Issuer, o.RedirectURL, o.Rules = "", "", nil })
	for _, role := range []engine.Role{engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor} {
		b := w.browser()
		_, secret := w.as(role, time.Hour)
		b.paste(" " + secret + "\n") // as users paste it
		b.is(string(role) + " Ben of acme by token")
		if strings.Contains(w.log.String(), secret[21:40]) {
			t.Error("the log has the secret")
		}
	}
	_, agent := w.as(engine.RoleAgent, time.Hour)
	b := w.browser()
	status, text := b.paste(agent)
	if status != 403 || !strings.Contains(text, "token of an agent") || len(b.cookies) != 0 {
		t.Errorf("the token of an agent: %d with the cookies %v:\n%s", status, b.cookies, text)
	}
	for name, form := range map[string]url.Values{
		"unknown": {"token": {unknownToken(t)}}, "nothing": {"token": {""}}, "no field": {}, "two": {"token": {agent, agent}},
		"huge": {"token": {strings.Repeat("a", 9<<10)}}, "NUL": {"token": {"rbk_\x00"}},
	} {
		b := w.browser()
		if status, _ := b.open("POST", "/login", form); status != 401 || len(b.cookies) != 0 {
			t.Errorf("%s: %d, %v", name, status, b.cookies)
		}
	}
	_, secret := w.as(engine.RoleReviewer, time.Hour)
	if status, _ := w.browser().open("POST", "/login", url.Values{"token": {secret}, "x": {strings.Repeat("a", 9<<10)}}); status != 401 {
		t.Errorf("a form that is too large: %d", status)
	}
	if answer := w.get(site + "/login?token=x"); answer.Code != 200 || len(answer.Result().Cookies()) > 0 {
		t.Errorf("a token in the query: %d", answer.Code)
	}
	if answer := b.send("POST", "/login?token="+secret, url.Values{}); answer.StatusCode != 400 {
		t.Errorf("a token in the query of a form: %d", answer.StatusCode)
	}
	for _, target := range []string{"/login/provider", "/login/callback?code=x&state=y"} {
		if answer := w.get(site + target); answer.Code != 403 {
			t.Errorf("%s without a provider: %d", target, answer.Code)
		}
	}
}

func TestFormCanBeLeftOut(t *testing.T) {
	w := newWorld(t, func(o *access.LoginOptions) { o.NoTokens = true })
	_, secret := w.as(engine.RoleReviewer, time.Hour)
	if status, _ := w.browser().paste(secret); status != 403 || strings.Contains(w.get(site+"/login").Body.String(), `name="token"`) {
		t.Errorf("there is no form, and it is taken: %d", status)
	}
}

func TestTooManyLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		b := w.browser()
		for range 20 {
			if status, _ := b.paste(unknownToken(t)); status != 401 {
				t.Fatal(status)
			}
		}
		answer := b.send("POST", "/login", url.Values{"token": {unknownToken(t)}})
		if answer.StatusCode != 429 || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v", answer.StatusCode, answer.Header)
		}
		if status, _ := b.login(); status != 200 {
			t.Errorf("a login at the provider, behind the same proxy as an attacker who guesses tokens: %d", status)
		}
		bad := func() int {
			_, state, _ := strings.Cut(b.toCallback(""), "state=")
			status, _ := b.open("GET", "/login/callback?code=made-up&state="+state, nil)
			return status
		}
		for range 20 {
			if status := bad(); status != 401 {
				t.Fatal(status)
			}
		}
		asked := w.provider.Asked("/token")
		if status := bad(); status != 429 || w.provider.Asked("/token") != asked+1 {
			t.Errorf("a code from there: %d", status)
		}
		if status, _ := b.login(); status != 200 {
			t.Errorf("a person logs in from the address of a caller who makes up codes: %d", status)
		}
		var begun []*browser
		var states []string
		for range 10 {
			one := w.browser()
			_, state, _ := strings.Cut(one.toCallback(""), "state=")
			begun, states = append(begun, one), append(states, state)
		}
		w.provider.Has(accesstest.Slow) // made-up codes from there are redeemed two at a time
		for i, one := range begun {
			r := httptest.NewRequest("GET", site+"/login/callback?code=made-up&state="+states[i], nil).WithContext(t.Context())
			for _, c := range one.cookies {
				r.AddCookie(c)
			}
			go ask(w.handler, r)
		}
		synctest.Wait()
		if got := w.provider.Asked("/token") - asked - 2; got > 2 {
			t.Errorf("the provider is asked %d questions at once; want 2", got)
		}
		time.Sleep(time.Minute)
	})
}

func TestOtherOriginsCannotLogIn(t *testing.T) {
	w := newWorld(t, nil)
	_, secret := w.as(engine.RoleReviewer, time.Hour)
	for _, target := range []string{"/login", "/logout"} {
		r := httptest.NewRequest("POST", site+target, strings.NewReader(url.Values{"token": {secret}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		for name, h := range map[string]http.Handler{"behind Protect": w.handler, "alone": w.logins} {
			if answer := ask(h, r); answer.Code != 403 || len(answer.Result().Cookies()) > 0 {
				t.Errorf("%s, %s: %d, %v", target, name, answer.Code, answer.Result().Cookies())
			}
		}
	}
}

func TestNextIsOurs(t *testing.T) {
	w := newWorld(t, nil)
	_, secret := w.as(engine.RoleReviewer, time.Hour)
	for next, want := range map[string]string{"/writes/1?a=b": "/writes/1?a=b", "//evil.example.org": "/", "https://evil.example.org": "/", `/\evil`: "/"} {
		answer := w.browser().send("POST", "/login", url.Values{"token": {secret}, "next": {next}})
		if got := answer.Header.Get("Location"); answer.StatusCode != 303 || got != want {
			t.Errorf("by token from %q to %q, want %q", next, got, want)
		}
		b := w.browser()
		to := b.send("GET", "/login/provider?next="+url.QueryEscape(next), nil).Header.Get("Location")
		answer = b.send("GET", b.send("GET", to, nil).Header.Get("Location"), nil)
		if got := answer.Header.Get("Location"); answer.StatusCode != 303 || got != want {
			t.Errorf("by the provider from %q to %q, want %q", next, got, want)
		}
	}
}

var link = regexp.MustCompile(`(?:value|href)="([^"]*)"`)

func TestPageIsInert(t *testing.T) {
	w := newWorld(t, nil)
	answer := w.get(site + "/login?next=" + url.QueryEscape(`/x"><script>alert(1)</script>`))
	page := answer.Body.String()
	if strings.Contains(page, "<script") || len(link.FindAllString(page, -1)) < 2 {
		t.Errorf("the page is\n%s", page)
	}
	policy := answer.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "style-src 'sha256-"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q has no %s", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || answer.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%v", answer.Header())
	}
}

func TestLoginOptionsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*access.LoginOptions)
		wrong  string
	}{
		"no tokens":        {func(o *access.LoginOptions) { o.Tokens = nil }, "Tokens"},
		"short key":        {func(o *access.LoginOptions) { o.Key = []byte("short") }, "key has 5 bytes"},
		"seldom confirmed": {func(o *access.LoginOptions) { o.Recheck = 25 * time.Hour }, "want 1m0s to 24h"},
		"often confirmed":  {func(o *access.LoginOptions) { o.Recheck = time.Second }, "want 1m0s to 24h"},
		"step-up alone":    {func(o *access.LoginOptions) { o.Issuer, o.StepUp.AMR = "", []string{"mfa"} }, "no issuer"},
		"long sessions":    {func(o *access.LoginOptions) { o.SessionTTL = 25 * time.Hour }, "at most 24h"},
		"no way in":        {func(o *access.LoginOptions) { o.Issuer, o.NoTokens = "", true }, "no user could log in"},
		"no client":        {func(o *access.LoginOptions) { o.ClientID = "" }, "client_id"},
		"no rules":         {func(o *access.LoginOptions) { o.Rules = nil }, "rules"},
		"issuer in clear":  {func(o *access.LoginOptions) { o.Issuer = "http://login.example.org" }, "issuer"},
		"return in clear":  {func(o *access.LoginOptions) { o.RedirectURL = "http://readback.example.org/login/callback" }, "redirect_url"},
		"return elsewhere": {func(o *access.LoginOptions) { o.RedirectURL = "https://readback.example.org/" }, "redirect_url"},
		"return and more":  {func(o *access.LoginOptions) { o.RedirectURL = site + "/login/callback?a=b" }, "redirect_url"},
		"agents": {func(o *access.LoginOptions) {
			o.Rules = []access.ClaimRule{{Claim: "a", Value: "b", Tenant: "c", Role: "agent"}}
		}, "rules[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			c.change(&w.options)
			if _, err := access.NewLogins(t.Context(), w.options); !errors.Is(err, access.ErrInvalid) || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v; want what is wrong with %q", err, c.wrong)
			}
		})
	}
}

// A wrong token does not lose the page that was asked for, and is not shown again.
func TestAWrongTokenKeepsThePage(t *testing.T) {
	b := newWorld(t, nil).browser()
	status, text := b.open("POST", "/login", url.Values{"token": {"rbk_wrong"}, "next": {"/writes/wr_1?x=<y>"}})
	if status != 401 || !strings.Contains(text, `value="/writes/wr_1?x=&lt;y&gt;"`) || strings.Contains(text, "rbk_wrong") {
		t.Errorf("%d: %s", status, text)
	}
	if _, text := b.open("POST", "/login", url.Values{"token": {"rbk_wrong"}, "next": {"https://evil.example/"}}); strings.Contains(text, "evil") {
		t.Errorf("it leads elsewhere: %s", text)
	}
}
