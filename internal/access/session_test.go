package access_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/access/accesstest"
)

const sessionName = "__Host-readback-session"

func TestHowTheProviderIsToldWhoAsks(t *testing.T) {
	for name, c := range map[string]struct {
		methods []string
		secret  string
		reason  string
	}{
		"says nothing": {nil, accesstest.Secret, "then it is by HTTP Basic"},
		"basic":        {[]string{"client_secret_basic"}, accesstest.Secret, "it says so"},
		"both":         {[]string{"client_secret_post", "client_secret_basic"}, accesstest.Secret, "either is right"},
		"post":         {[]string{"client_secret_post"}, accesstest.Secret, "it says so"},
		"public":       {[]string{"none"}, "", "PKCE is what proves it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *access.LoginOptions) { o.Secret = c.secret; o.Issuer = "" })
			w.provider.Methods = c.methods
			w.restart(func(o *access.LoginOptions) { o.Issuer = issuer })
			b := w.browser()
			if _, text := b.login(); text != alice || w.provider.Asked("/token") != 1 {
				t.Errorf("%s: %s after %d requests", c.reason, text, w.provider.Asked("/token"))
			}
		})
	}
}

func TestSessionEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		b := w.browser()
		b.login()
		for range 7 {
			time.Sleep(time.Hour)
			b.is(alice)
		}
		time.Sleep(time.Hour)
		b.is("")
	})
}

func TestSessionOfTokenEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		_, secret := w.as(engine.RoleReviewer, time.Hour)
		b := w.browser()
		b.paste(secret)
		time.Sleep(time.Hour - time.Second)
		b.is("reviewer Ben of acme by token")
		time.Sleep(time.Second)
		b.is("")

		made, secret := w.as(engine.RoleReviewer, time.Hour)
		b = w.browser()
		b.paste(secret)
		b.is("reviewer Ben of acme by token")
		elsewhere := access.NewTokens(w.notes, nil)
		if err := elsewhere.Revoke(t.Context(), "acme", made.ID, "alice"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		b.is("")
	})
}

// thief is a browser with a copy of another's cookies.
func (b *browser) thief() *browser {
	other := b.w.browser()
	for name, c := range b.cookies {
		other.cookies[name] = &http.Cookie{Name: name, Value: c.Value}
	}
	return other
}

// beside is another process that serves the same address from the same ledger.
func (w *world) beside() *world {
	w.t.Helper()
	other := &world{t: w.t, notes: w.notes, provider: w.provider, options: w.options, tokens: access.NewTokens(w.notes, nil)}
	other.options.Tokens = other.tokens
	other.restart(nil)
	return other
}

func TestStolenCookieDiesWithTheLogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		there := w.beside()
		for name, login := range map[string]func(*browser){
			"by the provider": func(b *browser) { b.login() },
			"by a token": func(b *browser) {
				_, secret := w.as(engine.RoleReviewer, time.Hour)
				b.paste(secret)
			},
		} {
			b := w.browser()
			login(b)
			thief, other := b.thief(), b.w.browser()
			login(other)
			elsewhere := b.thief()
			elsewhere.w = there
			if _, text := elsewhere.open("GET", "/inbox", nil); !strings.Contains(text, "of acme") {
				t.Fatalf("%s: %s", name, text)
			}
			status, text := b.open("POST", "/logout", nil)
			if status != 200 || !strings.Contains(text, "Logged out") || len(b.cookies) != 0 {
				t.Errorf("%s: %d %v\n%s", name, status, b.cookies, text)
			}
			b.is("")
			thief.is("")
			time.Sleep(5 * time.Second)
			elsewhere.is("")
			if _, text := other.open("GET", "/inbox", nil); !strings.Contains(text, "of acme") {
				t.Errorf("%s: another session ended too: %s", name, text)
			}
			if status, _ := b.open("POST", "/logout", nil); status != 200 {
				t.Errorf("%s: once more: %d", name, status)
			}
		}
	})
}

func TestLogoutWithoutLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		b := w.browser()
		b.login()
		w.notes.is("down")
		status, text := b.open("POST", "/logout", nil)
		if status != 503 || len(b.cookies) != 0 {
			t.Errorf("%d, %v", status, b.cookies)
		}
		if strings.Contains(text, "Logged out") || !strings.Contains(w.log.String(), "a session could not be ended") {
			t.Errorf("a copy of the cookie is still good, and nobody is told:\n%s", text)
		}
	})
}

func TestSessionWhileLedgerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		known := w.browser()
		known.login()
		known.is(alice)
		late := w.beside().browser()
		late.cookies = known.thief().cookies
		w.notes.is("hangs")
		time.Sleep(50 * time.Second)
		known.is(alice)
		if status, _ := late.open("GET", "/inbox", nil); status != 503 {
			t.Errorf("whether a session that was not seen before has ended cannot be known: %d", status)
		}
		time.Sleep(20 * time.Second)
		if status, _ := known.open("GET", "/inbox", nil); status != 503 {
			t.Errorf("after a minute: %d", status)
		}
		w.notes.is("")
		time.Sleep(2 * time.Second)
		known.is(alice)
	})
}

func TestNewLoginEndsTheOldSession(t *testing.T) {
	w := newWorld(t, nil)
	b := w.browser()
	b.login()
	thief := b.thief()
	first := b.cookies[sessionName].Value
	b.login()
	if b.cookies[sessionName].Value == first {
		t.Error("the session is the same")
	}
	b.is(alice)
	thief.is("")
}

func TestSessionsThatAreNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(w *world, b *browser)
		reason string
	}{
		"other rules": {func(w *world, _ *browser) {
			w.restart(func(o *access.LoginOptions) { o.Rules = operators[1:] })
		}, "they may give nothing any more"},
		"other client": {func(w *world, _ *browser) {
			w.restart(func(o *access.LoginOptions) { o.ClientID = "another" })
		}, "it was for another program"},
		"other key": {func(w *world, _ *browser) {
			w.restart(func(o *access.LoginOptions) { o.Key = bytes.Repeat([]byte("x"), 32) })
		}, "it was sealed elsewhere"},
		"no key": {func(w *world, _ *browser) {
			w.restart(func(o *access.LoginOptions) { o.Key = nil })
		}, "the key lives as long as the process"},
		"garbage": {func(_ *world, b *browser) { b.cookies[sessionName].Value = "x" }, "it was not sealed here"},
		"a changed letter": {func(_ *world, b *browser) {
			v := []byte(b.cookies[sessionName].Value)
			v[len(v)/2] ^= 1
			b.cookies[sessionName].Value = string(v)
		}, "it was not sealed here"},
		"without its prefix": {func(_ *world, b *browser) {
			b.cookies["readback-session"] = &http.Cookie{Name: "readback-session", Value: b.cookies[sessionName].Value}
			delete(b.cookies, sessionName)
		}, "another host of the domain could have set it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			b := w.browser()
			b.login()
			b.is(alice)
			c.do(w, b)
			b.is("")
		})
	}
}

func TestSameKeySameSession(t *testing.T) {
	w := newWorld(t, nil)
	b := w.browser()
	b.login()
	w.restart(nil)
	b.is(alice)
}

func TestTwoSessionCookies(t *testing.T) {
	w := newWorld(t, nil)
	b := w.browser()
	b.login()
	one := b.cookies[sessionName]
	if answer := w.get(site+"/inbox", one); answer.Code != 200 {
		t.Fatal(answer.Code)
	}
	if answer := w.get(site+"/inbox", one, &http.Cookie{Name: sessionName, Value: "x"}); answer.Code != 401 {
		t.Errorf("with two cookies: %d", answer.Code)
	}
}

func TestKeyThatIsMadeUpIsSaid(t *testing.T) {
	w := newWorld(t, func(o *access.LoginOptions) { o.Key = nil })
	if !strings.Contains(w.log.String(), "sessions have no key of the configuration") {
		t.Errorf("the log says\n%s", w.log.String())
	}
}

func TestEndsOfSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		ends := func() int {
			all, _, err := w.notes.Notes(t.Context(), "session/")
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		b := w.browser()
		for range 3 {
			b.login()
			b.open("POST", "/logout", nil)
		}
		if ends() != 3 {
			t.Errorf("%d ends are kept", ends())
		}
		time.Sleep(33 * time.Hour)
		b.login()
		b.open("POST", "/logout", nil)
		if ends() != 1 {
			t.Errorf("%d ends are kept; those of sessions that are long over are of no use", ends())
		}
	})
}

func TestAgentHasNoSession(t *testing.T) {
	w := newWorld(t, nil)
	made, secret := w.as(engine.RoleReviewer, time.Hour)
	b := w.browser()
	b.paste(secret)
	kept, _, err := w.notes.Notes(t.Context(), "token/"+made.ID)
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	kept[0].Value = bytes.Replace(kept[0].Value, []byte(`"reviewer"`), []byte(`"agent"`), 1)
	if _, err := w.notes.SetNote(t.Context(), kept[0]); err != nil {
		t.Fatal(err)
	}
	other := w.beside() // which has not looked at it before
	b.w = other
	b.is("")
}

// A browser that does not say which page asks needs the token of a form of its own
// session for whatever may change something.
func TestACookieWithoutAnOriginNeedsAFormToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		b, other := w.browser(), w.browser()
		b.login()
		other.login()
		token := func(b *browser) string {
			r := httptest.NewRequest("GET", site+"/inbox", nil)
			for _, c := range b.cookies {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
			return w.logins.FormToken(r)
		}
		if token(b) == "" || token(b) == token(other) || token(w.browser()) != "" {
			t.Fatalf("tokens %q, %q and %q", token(b), token(other), token(w.browser()))
		}
		const form, plain = "application/x-www-form-urlencoded", "application/json"
		post := func(method, target, kind, body string, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, site+target, strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			for _, c := range b.cookies {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
			return ask(w.handler, r)
		}
		right := url.Values{access.FormTokenField: {token(b)}, "a": {"b"}}.Encode()
		for name, c := range map[string]struct {
			method, kind, body string
			headers            []string
			status             int
		}{
			"no token":               {"POST", form, "a=b", nil, 403},
			"an empty one":           {"POST", form, access.FormTokenField + "=", nil, 403},
			"of another session":     {"POST", form, url.Values{access.FormTokenField: {token(other)}}.Encode(), nil, 403},
			"twice":                  {"POST", form, right + "&" + right, nil, 403},
			"too large":              {"POST", form, right + "&b=" + strings.Repeat("x", 9<<10), nil, 403},
			"right":                  {"POST", form, right, nil, 200},
			"no form":                {"POST", plain, "{}", nil, 403},
			"DELETE":                 {"DELETE", plain, "", nil, 403},
			"an empty origin":        {"POST", plain, "{}", []string{"Origin", ""}, 403},
			"by origin":              {"POST", plain, "{}", []string{"Origin", site}, 200},
			"by the page that asks":  {"POST", form, "a=b", []string{"Sec-Fetch-Site", "same-origin"}, 200},
			"another site":           {"POST", form, right, []string{"Sec-Fetch-Site", "cross-site"}, 403},
			"another site by origin": {"POST", form, right, []string{"Origin", "https://evil.example.org"}, 403},
			"a page":                 {"GET", plain, "", nil, 200},
		} {
			if answer := post(c.method, "/inbox", c.kind, c.body, c.headers...); answer.Code != c.status {
				t.Errorf("%s: %d, want %d: %s", name, answer.Code, c.status, answer.Body)
			}
		}
		if got := b.send("POST", "/writes", nil).StatusCode; got != 200 {
			t.Errorf("a browser of today: %d", got)
		}
		if answer := post("POST", "/logout", form, ""); answer.Code != 403 || len(answer.Result().Cookies()) > 0 {
			t.Errorf("a logout without a token: %d", answer.Code)
		}
		b.is("operator alice@example.com of acme by login")
		if answer := post("POST", "/logout", form, right); answer.Code != 303 {
			t.Errorf("a logout with a token: %d", answer.Code)
		}
		b.is("")
	})
}

// What came in by the token of its form, which has been read, continues.
func TestWatchDoesNotAskForTheFormAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		b := w.browser()
		b.login()
		r := httptest.NewRequest("POST", site+"/slow", nil)
		for _, c := range b.cookies {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
		body := url.Values{access.FormTokenField: {w.logins.FormToken(r)}}.Encode()
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		ask(access.Watch(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := w.logins.Resolve(r); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			if err := context.Cause(r.Context()); err != nil {
				t.Errorf("it was broken off: %v", err)
			}
		}), w.logins), r)
	})
}

func TestRoutes(t *testing.T) {
	w := newWorld(t, nil)
	var all []string
	for _, r := range w.logins.Routes() {
		all = append(all, r.Method+" "+r.Pattern+string(r.Act))
		if answer := ask(w.logins, httptest.NewRequest(r.Method, r.Pattern, nil)); answer.Code == 404 || answer.Code == 405 {
			t.Errorf("%s %s: %d", r.Method, r.Pattern, answer.Code)
		}
	}
	want := []string{"GET /login", "POST /login", "GET /login/provider", "GET /login/callback", "POST /logout"}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	if answer := w.get(site + "/logout"); answer.Code != 405 {
		t.Errorf("a link logs out: %d", answer.Code)
	}
}
