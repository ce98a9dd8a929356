package access_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
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

func TestClientAuthenticationAtTheProvider(t *testing.T) {
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
			w := newWorld(t, func(o *access.LoginOptions) {
				o.Issuer = ""
				if c.secret == "" {
					o.Secret = nil
				}
			})
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
			if _, text := b.open("GET", "/login?next=/inbox", nil); text != alice {
				t.Fatal(text)
			}
			b.is(alice)
		}
		time.Sleep(time.Hour)
		b.is("") // confirmed or not
		if status, _ := b.open("GET", "/login?next=/inbox", nil); status != 200 || w.provider.Asks().Get("prompt") != "none" {
			t.Errorf("%d", status)
		}
		b.is("")
	})
}

// The provider must confirm a session every ten minutes, without a page for the user: one
// whose account has ended is out.
func TestTheProviderConfirmsSessions(t *testing.T) {
	navigate := func(b *browser) int {
		r := httptest.NewRequest("GET", site+"/inbox", nil)
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		for _, c := range b.cookies {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
		return ask(b.w.handler, r).Code
	}
	for name, c := range map[string]struct {
		change func(w *world)
		status int // of the page after the confirmation
		is     string
		reason string
	}{
		"still there":     {func(*world) {}, 200, alice, "the session continues"},
		"account ended":   {func(w *world) { w.provider.Has(accesstest.LoggedOut) }, 200, "", "the page that asks for a login is shown"},
		"left the group":  {func(w *world) { w.provider.Says(map[string]any{"sub": "1", "groups": []string{"cooks"}}) }, 403, "", "no rule fits any more"},
		"another group":   {func(w *world) { w.provider.Says(supportAlice) }, 200, "reviewer alice@example.com of acme by login", "it is a session of the new role"},
		"another person":  {func(w *world) { w.provider.Says(operatorBob) }, 200, "operator bob@example.com of acme by login", "it is a session of that person"},
		"not now":         {func(w *world) { w.provider.Has(accesstest.Unavailable) }, 503, "", "it is asked again"},
		"signed by other": {func(w *world) { w.provider.Has(accesstest.OtherKey) }, 200, "", "what proves nothing confirms nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				b := w.browser()
				b.login()
				c.change(w)
				time.Sleep(5*time.Minute - time.Second)
				if status := navigate(b); status != 200 {
					t.Errorf("a page before half of the time: %d", status)
				}
				time.Sleep(time.Second)
				if status := navigate(b); status != 401 {
					t.Errorf("a page at half of the time: %d; want it confirmed first", status)
				}
				b.is(alice) // a form of that page is still accepted
				stolen := w.browser()
				stolen.cookies = maps.Clone(b.cookies)
				time.Sleep(5 * time.Minute)
				b.is("")
				if status, _ := b.open("GET", "/login?next=/inbox", nil); c.is == "" && status != c.status {
					t.Errorf("%d, want %d: %s", status, c.status, c.reason)
				}
				b.is(c.is)
				stolen.is("")
				if asks := w.provider.Asks(); asks.Get("prompt") != "none" {
					t.Errorf("the provider is asked with %v; want no page", asks)
				}
			})
		})
	}
}

// A session that the provider did not confirm is over for every copy of its cookie; one
// that it could not be asked about continues when it can.
func TestUnconfirmedSessionsAreOver(t *testing.T) {
	for kind, is := range map[accesstest.Fault]string{accesstest.LoggedOut: "", accesstest.Unavailable: alice} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			b := w.browser()
			b.login()
			w.provider.Has(kind)
			time.Sleep(6 * time.Minute)
			stolen := w.browser()
			stolen.cookies = maps.Clone(b.cookies)
			r := b.send("GET", "/login/provider?confirm=1&next=/inbox", nil)
			b.open("GET", r.Header.Get("Location"), nil)
			w.provider.Has("")
			time.Sleep(3 * time.Second) // its cached note
			stolen.is(is)
		})
	}
}

// Decisions can need a login with a second factor; everything else does not.
func TestStepUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *access.LoginOptions) {
			o.StepUp = access.StepUp{ACR: []string{"gold", "silver"}, AMR: []string{"mfa"}}
		})
		decides := func(b *browser) bool {
			b.w.t.Helper()
			r := httptest.NewRequest("GET", site+"/inbox", nil)
			for _, c := range b.cookies {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
			who, err := w.logins.Deciding(access.First(w.tokens, w.logins)).Resolve(r)
			if err != nil || who.May(access.Trace) != nil || who.May(access.Operate) != nil {
				t.Fatalf("%+v, %v", who, err)
			}
			err = who.May(access.Decide)
			if err != nil && !errors.Is(err, access.ErrStepUp) {
				t.Error(err)
			}
			return err == nil
		}
		b := w.browser()
		for reason, c := range map[string]struct {
			acr  any
			amr  any
			want bool
		}{
			"no methods announced":   {nil, nil, false},
			"both":                   {"silver", []string{"pwd", "mfa"}, true},
			"the class alone":        {"gold", []string{"pwd"}, false},
			"the method alone":       {"bronze", []string{"mfa"}, false},
			"a method that ends so":  {"gold", []string{"xmfa"}, false},
			"classes as a list":      {[]string{"gold"}, "mfa", true},
			"numbers in their place": {1, []int{1}, false},
		} {
			claims := maps.Clone(operatorAlice)
			claims["acr"], claims["amr"] = c.acr, c.amr
			w.provider.Says(claims)
			b.open("GET", "/login/provider?step_up=1&next=/inbox", nil)
			if asks := w.provider.Asks(); asks.Get("prompt") != "login" || asks.Get("acr_values") != "gold silver" {
				t.Errorf("the provider is asked with %v", asks)
			}
			if got := decides(b); got != c.want {
				t.Errorf("%s: decides %t, want %t", reason, got, c.want)
			}
		}
		_, secret := w.as(engine.RoleOperator, time.Hour)
		b.paste(secret)
		if decides(b) {
			t.Error("a session of a token decides")
		}
		who, err := w.logins.Deciding(w.tokens).Resolve(with(secret))
		if err != nil || !errors.Is(who.May(access.Decide), access.ErrStepUp) || who.May(access.Operate) != nil {
			t.Errorf("a token: %+v, %v", who, err)
		}
	})
}

var (
	operatorAlice = map[string]any{"sub": "1", "email": "Alice@example.com", "email_verified": true, "groups": []string{"operators"}}
	supportAlice  = map[string]any{"sub": "1", "email": "Alice@example.com", "email_verified": true, "realm": map[string]any{"roles": []string{"support"}}, "org": "acme"}
	operatorBob   = map[string]any{"sub": "2", "email": "bob@example.com", "email_verified": true, "groups": []string{"operators"}}
)

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
		elsewhere := access.NewTokens(w.notes, &access.TokenOptions{People: true})
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
	other := &world{t: w.t, notes: w.notes, provider: w.provider, options: w.options, tokens: access.NewTokens(w.notes, &access.TokenOptions{People: true})}
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
			t.Errorf("a copy of the cookie is still good, and nothing is logged:\n%s", text)
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

func TestGeneratedKeyIsLogged(t *testing.T) {
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
	other := w.beside() // which has not read it before
	b.w = other
	b.is("")
}

// A browser that does not say which page sends a request needs the form token of its own
// session for every change.
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

// Another session key ends the sessions, and users log in again; one that cannot be
// fetched ends none.
func TestTheSessionKeyIsTheOneThatIsThereNow(t *testing.T) {
	key, failing := bytes.Repeat([]byte("k"), 32), error(nil)
	w := newWorld(t, func(o *access.LoginOptions) {
		o.KeyNow = func(context.Context) ([]byte, error) { return key, failing }
	})
	b := w.browser()
	b.login()
	b.is(alice)
	key, failing = bytes.Repeat([]byte("x"), 32), errors.New("the vault is sealed")
	b.is(alice)
	b.is(alice)
	if n := strings.Count(w.log.String(), "the vault is sealed"); n != 1 {
		t.Errorf("it is logged %d times that the key cannot be fetched, want once", n)
	}
	key, failing = bytes.Repeat([]byte("k"), 32), nil
	b.is(alice)
	key = []byte("too short")
	b.is(alice)
	if !strings.Contains(w.log.String(), "it has 9 bytes; want at least 32") {
		t.Errorf("the log says\n%s", w.log.String())
	}
	key, failing = bytes.Repeat([]byte("n"), 32), nil
	b.is("")
	b.login()
	b.is(alice)
}

// A form that a user sends from a page is accepted for as long as it needs, also where
// the next page must be confirmed first.
func TestAFormIsNotBrokenOffWhenTheNextPageIsToBeConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		b := w.browser()
		b.login()
		time.Sleep(6 * time.Minute)
		r := httptest.NewRequest("POST", site+"/slow", nil)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Sec-Fetch-Mode", "navigate") // as browsers send a form
		for _, c := range b.cookies {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
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

// A session that one server confirmed is confirmed for the others, whose clocks are a
// little behind: else a browser would be redirected to the provider again and again.
func TestAConfirmationHoldsOnServersWithOtherClocks(t *testing.T) {
	for behind, is := range map[time.Duration]string{2 * time.Second: alice, 59 * time.Second: alice, 2 * time.Minute: ""} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			b := w.browser()
			b.login()
			other := w.beside()
			other.restart(func(o *access.LoginOptions) {
				o.Tokens = access.NewTokens(w.notes, &access.TokenOptions{People: true, Now: func() time.Time { return time.Now().Add(-behind) }})
			})
			b.w = other
			b.is(is)
			time.Sleep(10*time.Minute + behind)
			b.is("")
		})
	}
}

// Several pages of one browser may need a confirmation at once, as when it restores its
// pages: none of them ends at a page that says that its login was not begun.
func TestPagesThatAreConfirmedAtOnce(t *testing.T) {
	for name, order := range map[string]string{"one after the other": "aAbB", "crossed": "abAB", "the other way": "abBA"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				b := w.browser()
				b.login()
				time.Sleep(11 * time.Minute)
				before := maps.Clone(b.cookies)
				back := map[rune]string{}
				for _, step := range order {
					switch step {
					case 'a', 'b':
						begin := b
						if step == 'b' && name == "crossed" { // requested before the response to the first has come
							begin = w.browser()
							begin.cookies = before
						}
						to := begin.send("GET", "/login/provider?confirm=1&next=/inbox", nil).Header.Get("Location")
						b.cookies = begin.cookies
						back[step] = b.send("GET", to, nil).Header.Get("Location")
					case 'A', 'B':
						if status, text := b.open("GET", back[step+'a'-'A'], nil); status == 401 && strings.Contains(text, "not begun") {
							t.Errorf("%c: %d %s", step, status, text)
						}
					}
				}
				b.is(alice)
				if status, _ := b.open("GET", "/login/callback?state=made-up&code=x", nil); status != 200 {
					t.Errorf("what was not begun: %d", status)
				}
				b.is(alice)
			})
		})
	}
}
