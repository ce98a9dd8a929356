package access_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/access"
)

// reached responds with the request that it received.
var reached = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	_, _ = fmt.Fprintf(w, "%s %d", r.Method, len(body))
})

func ask(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestProtectRefuses(t *testing.T) {
	_, secret := create(t, access.NewTokens(newFlaky(), nil), bot)
	headers := func(n int) http.Header {
		h := http.Header{}
		for i := range n {
			h.Add("X-Many", fmt.Sprint(i))
		}
		return h
	}
	h := access.Protect(reached, access.ProtectOptions{MaxBody: 10})
	for name, c := range map[string]struct {
		method, target string
		header         http.Header
		body           string
		status         int
		reason         string
	}{
		"a read":              {"GET", "/", nil, "", 200, "nothing is wrong with it"},
		"a program":           {"POST", "/", nil, "0123456789", 200, "programs send no origin"},
		"own page":            {"POST", "/", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Cookie": {"a=b"}}, "", 200, "it is ours"},
		"own page, by origin": {"POST", "http://desk.example.org/", http.Header{"Origin": {"http://desk.example.org"}, "Cookie": {"a=b"}}, "", 200, "older browsers say only that"},
		"other page":          {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Cookie": {"a=b"}}, "", 403, "it acts in a user's name"},
		"sister page":         {"POST", "/", http.Header{"Sec-Fetch-Site": {"same-site"}, "Cookie": {"a=b"}}, "", 403, "another host of the domain is another origin"},
		"other origin":        {"POST", "http://desk.example.org/", http.Header{"Origin": {"http://evil.example.org"}, "Cookie": {"a=b"}}, "", 403, "it acts in a user's name"},
		"no origin at all":    {"POST", "http://desk.example.org/", http.Header{"Origin": {"null"}, "Cookie": {"a=b"}}, "", 403, "frames without a name have it"},
		"other page, no name": {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}}, "", 403, "--dev needs no cookie"},
		"other page, PUT":     {"PUT", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}}, "", 403, "it changes something"},
		"other page, DELETE":  {"DELETE", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}}, "", 403, "it changes something"},
		"other page looks":    {"GET", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Cookie": {"a=b"}}, "", 200, "a link changes nothing"},
		"token in a browser":  {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Authorization": {"Bearer x"}}, "", 200, "no page sends this unasked"},
		"token and cookie":    {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Authorization": {"Bearer x"}, "Cookie": {"a=b"}}, "", 403, "who it is may come of the cookie"},
		"basic in a browser":  {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Authorization": {"Basic YTpi"}}, "", 403, "browsers send it by themselves"},
		"token as password":   {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Authorization": {asPassword(secret)}}, "", 403, "likewise, whatever the password is"},
		"two tokens":          {"POST", "/", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Authorization": {"Bearer x", "Bearer y"}}, "", 403, "that is no bearer token"},
		"method override":     {"POST", "/", http.Header{"X-Http-Method-Override": {"DELETE"}}, "", 400, "some take it for a DELETE"},
		"method":              {"POST", "/", http.Header{"X-Http-Method": {"DELETE"}}, "", 400, "some take it for a DELETE"},
		"other override":      {"GET", "/", http.Header{"X-Method-Override": {"POST"}}, "", 400, "some take it for a POST"},
		"TRACE":               {"TRACE", "/", nil, "", 405, "it repeats headers"},
		"token in query":      {"GET", "/v1/writes?token=" + secret, nil, "", 400, "it is logged everywhere"},
		"hidden in query":     {"GET", "/v1/writes?x=%72bk_" + secret[4:], nil, "", 400, "it is logged everywhere"},
		"any access token":    {"GET", "/v1/writes?access_token=x", nil, "", 400, "it is not read"},
		"token in path":       {"GET", "/v1/writes/" + secret, nil, "", 400, "it is logged everywhere"},
		"encoded twice":       {"GET", "/v1/writes/%252e%252e%252fstops", nil, "", 400, "a proxy may take it for /v1/stops"},
		"slash twice":         {"GET", "/v1/writes/a%252Fb", nil, "", 400, "it is another path for what decodes again"},
		"thrice":              {"GET", "/v1/writes/%25252E", nil, "", 400, "so is this"},
		"backslash twice":     {"GET", "/v1/writes/..%255c", nil, "", 400, "some take it for a slash"},
		"encoded once":        {"GET", "/v1/writes/a%2Fb%2Ec", nil, "", 200, "names have slashes and dots"},
		"a percent sign":      {"GET", "/v1/writes/50%25", nil, "", 200, "names have those, too"},
		"twice in a query":    {"GET", "/search?q=%252e", nil, "", 200, "it is no path"},
		"a word like it":      {"GET", "/search?q=rbk_", nil, "", 200, "it is no token"},
		"long address":        {"GET", "/?q=" + strings.Repeat("a", 8<<10), nil, "", 414, "it is no search"},
		"many headers":        {"GET", "/", headers(101), "", 431, "no caller needs them"},
		"as many as may be":   {"GET", "/", headers(100), "", 200, "it is the bound"},
		"many cookies":        {"GET", "/", http.Header{"Cookie": {strings.Repeat("a", 17<<10)}}, "", 431, "no browser sends them"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
			for name, values := range c.header {
				r.Header[name] = values
			}
			w := ask(h, r)
			if w.Code != c.status {
				t.Errorf("%s: got %d, want %d: %s", c.reason, w.Code, c.status, w.Body)
			}
			if strings.Contains(w.Body.String(), secret[21:40]) {
				t.Error("the answer repeats the token")
			}
			if w.Code == 200 {
				return
			}
			isProblem(t, w, c.status)
		})
	}
}

func asPassword(secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+secret))
}

// A browser gets a page that says what to do, and nothing of the request; a program gets a
// problem document.
func TestBrowsersGetAPage(t *testing.T) {
	for name, c := range map[string]struct {
		header, value string
		status        int
		want          string
		panics        bool
	}{
		"from another site": {"Origin", "https://evil.example", 403, "reload the page", false},
		"a fault":           {"X-Any", "x", 500, "not yours", true},
		"another method":    {"X-HTTP-Method-Override", "DELETE", 400, "Nothing was done", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := access.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if c.panics {
					panic("secret.go")
				}
			}), access.ProtectOptions{})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/inbox", strings.NewReader("reason=typed"))
			r.Header.Set(c.header, c.value)
			r.Header.Set("Accept", "text/html,application/xhtml+xml")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			text := w.Body.String()
			if w.Code != c.status || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || !strings.Contains(text, c.want) || !strings.Contains(text, `href="/inbox"`) {
				t.Errorf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), text)
			}
			for _, not := range []string{"typed", "evil", "secret.go", "<form"} {
				if strings.Contains(text, not) {
					t.Errorf("the page has %q: %s", not, text)
				}
			}
			if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
				t.Errorf("the policy is %q", policy)
			}
			r.Header.Del("Accept")
			w = httptest.NewRecorder()
			h.ServeHTTP(w, r)
			isProblem(t, w, c.status)
		})
	}
}

func isProblem(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	var problem struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem.Status != status || problem.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("the answer is no problem document: %v, %s", err, w.Body)
	}
}

// TestProtectBoundsBodies: the reader of the body responds, whether its length was
// announced or not.
func TestProtectBoundsBodies(t *testing.T) {
	for _, length := range []int64{11, -1} {
		r := httptest.NewRequest("POST", "/", struct{ io.Reader }{strings.NewReader(strings.Repeat("a", 11))})
		r.ContentLength = length
		if w := ask(access.Protect(reached, access.ProtectOptions{MaxBody: 10}), r); w.Code != http.StatusRequestEntityTooLarge || w.Header().Get("Content-Type") == "application/problem+json" {
			t.Errorf("of length %d: %d %s", length, w.Code, w.Body)
		}
	}
}

func TestProtectSetsHeaders(t *testing.T) {
	own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
	})
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	}
	check := func(w *httptest.ResponseRecorder) {
		t.Helper()
		for name, value := range want {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s is %q, want %q", name, got, value)
			}
		}
	}
	check(ask(access.Protect(reached, access.ProtectOptions{}), httptest.NewRequest("GET", "/", nil)))
	check(ask(access.Protect(reached, access.ProtectOptions{}), httptest.NewRequest("TRACE", "/", nil)))
	secure := httptest.NewRequest("GET", "/", nil)
	secure.TLS = &tls.ConnectionState{}
	want["Strict-Transport-Security"], want["Content-Security-Policy"] = "max-age=31536000", "default-src 'self'"
	check(ask(access.Protect(own, access.ProtectOptions{}), secure))
}

func TestProtectCatchesPanics(t *testing.T) {
	_, secret := create(t, access.NewTokens(newFlaky(), nil), bot)
	var log bytes.Buffer
	o := access.ProtectOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	panics := func(p any) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /writes/{id}", func(http.ResponseWriter, *http.Request) { panic(p) })
		return access.Protect(mux, o)
	}
	r := httptest.NewRequest("GET", "/writes/hidden-id?q=hidden-query", nil)
	r.Header.Set("Cookie", "hidden-cookie=1")
	w := ask(panics("what no caller may read "+secret), r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "no caller") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, hidden := range []string{"hidden", secret[21:40]} {
		if strings.Contains(log.String(), hidden) {
			t.Errorf("the log has %q", hidden)
		}
	}
	for _, part := range []string{"GET /writes/{id}", "what no caller may read", "protect_test.go"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not have %q:\n%s", part, log.String())
		}
	}
	for name, h := range map[string]http.Handler{
		"aborted on purpose": panics(http.ErrAbortHandler),
		"after it began": access.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half of it")
			panic("x")
		}), o),
		"after a flush": access.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			panic("x")
		}), o),
	} {
		func() {
			defer func() {
				p := recover()
				if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("%s: it panics with %v; want the connection broken off", name, p)
				}
			}()
			ask(h, httptest.NewRequest("GET", "/writes/1", nil))
		}()
	}
}

// turning is a resolver whose result can change.
type turning struct{ says func() error }

func (s turning) Resolve(*http.Request) (access.Identity, error) { return access.Identity{}, s.says() }

func TestWatchEndsWhatLosesItsCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		ends   bool
		reason string
	}{
		"known":       {nil, false, "nothing has changed"},
		"revoked":     {access.ErrUnknown, true, "it must not follow events any more"},
		"unavailable": {access.ErrUnavailable, true, "a minute after the ledger went away"},
		"anonymous":   {access.ErrNoCredentials, false, "a page for all"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var end error
				h := access.Watch(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					select {
					case <-r.Context().Done():
						end = context.Cause(r.Context())
					case <-time.After(time.Hour):
					}
				}), turning{func() error {
					if time.Since(began) < time.Minute {
						return nil
					}
					return c.err
				}})
				ask(h, httptest.NewRequest("GET", "/v1/events", nil))
				if took := time.Since(began); c.ends && (!errors.Is(end, c.err) || took > time.Minute+5*time.Second) || !c.ends && end != nil {
					t.Errorf("%s: it ended after %s with %v", c.reason, took, end)
				}
			})
		})
	}
}

// A stream whose token is revoked by another process is cut off within three seconds,
// whatever the phase of the two polls; with a ledger that takes two to answer within
// five.
func TestRevokedStreamsEndInTime(t *testing.T) {
	for ms := 0; ms < 4000; ms += 250 {
		synctest.Test(t, func(t *testing.T) {
			notes := newFlaky()
			here, there := access.NewTokens(notes, nil), access.NewTokens(notes, nil)
			made, secret := create(t, here, bot)
			go func() { // others come with the token all the time
				for range 100 {
					_, _ = here.Resolve(with(secret))
					time.Sleep(100 * time.Millisecond)
				}
			}()
			var revoked, ended time.Time
			time.AfterFunc(time.Duration(ms)*time.Millisecond, func() {
				revoked = time.Now()
				if err := there.Revoke(context.Background(), "acme", made.ID, "ana"); err != nil {
					t.Error(err)
				}
			})
			h := access.Watch(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				ended = time.Now()
			}), here)
			ask(h, with(secret))
			if took := ended.Sub(revoked); took > 3*time.Second || took < 0 {
				t.Errorf("revoked after %d ms, it went on for %s", ms, took)
			}
			time.Sleep(time.Minute)
		})
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		err           error
		status        int
		header, value string
	}{
		"no credentials": {access.ErrNoCredentials, 401, "WWW-Authenticate", `Bearer realm="readback"`},
		"unknown":        {fmt.Errorf("x: %w", access.ErrUnknown), 401, "WWW-Authenticate", `Bearer realm="readback"`},
		"forbidden":      {fmt.Errorf("x: %w", access.ErrForbidden), 403, "", ""},
		"unavailable":    {fmt.Errorf("x: %w", access.ErrUnavailable), 503, "Retry-After", "1"},
		"too slow":       {context.DeadlineExceeded, 503, "Retry-After", "1"},
		"too many":       {&access.TooManyError{After: 1500 * time.Millisecond}, 429, "Retry-After", "2"},
		"anything":       {io.ErrUnexpectedEOF, 500, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, header := access.Refused(c.err)
			if status != c.status || c.header != "" && header.Get(c.header) != c.value {
				t.Errorf("got %d, %v", status, header)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	tokens := access.NewTokens(newFlaky(), nil)
	_, secret := create(t, tokens, bot)
	both := access.First(tokens, access.Dev("dev"))
	if who := resolve(t, both, with(secret), nil); who.Via != "token" {
		t.Errorf("%+v", who)
	}
	resolve(t, both, with(secret+"a"), access.ErrUnknown) // and not believed by the next
	if who := resolve(t, both, httptest.NewRequest("GET", "/", nil), nil); who.Via != "dev" {
		t.Errorf("%+v", who)
	}
	resolve(t, access.First(tokens), httptest.NewRequest("GET", "/", nil), access.ErrNoCredentials)
	resolve(t, access.First(), with(secret), access.ErrUnknown)
	inQuery := httptest.NewRequest("GET", "/?access_token="+url.QueryEscape(secret)+"&token="+secret, nil)
	resolve(t, access.First(tokens), inQuery, access.ErrNoCredentials)
}

// Behind trusted proxies a caller's address is the last one that none of them has. The
// caller wrote what precedes it, and what another machine writes is ignored.
func TestAddressesBehindProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("::1/128")}
	for reason, c := range map[string]struct {
		from      string
		forwarded []string
		want      string
	}{
		"no proxy":                        {"203.0.113.9:4711", nil, "203.0.113.9:4711"},
		"a machine that claims to be one": {"203.0.113.9:4711", []string{"198.51.100.1"}, "203.0.113.9:4711"},
		"one proxy":                       {"10.0.0.7:80", []string{"198.51.100.1"}, "198.51.100.1:0"},
		"what the caller wrote before it": {"10.0.0.7:80", []string{"192.0.2.1, 198.51.100.1"}, "198.51.100.1:0"},
		"in a line of its own":            {"10.0.0.7:80", []string{"192.0.2.1", "198.51.100.1"}, "198.51.100.1:0"},
		"two proxies":                     {"[::1]:80", []string{"192.0.2.1, 198.51.100.1, 10.0.0.8"}, "198.51.100.1:0"},
		"only proxies":                    {"10.0.0.7:80", []string{"10.0.0.9, 10.0.0.8"}, "10.0.0.9:0"},
		"with a port":                     {"10.0.0.7:80", []string{"198.51.100.1:5000"}, "198.51.100.1:0"},
		"IPv6 with a port":                {"10.0.0.7:80", []string{"[2001:db8::1]:5000"}, "[2001:db8::1]:0"},
		"IPv4 written as IPv6":            {"[::ffff:10.0.0.7]:80", []string{"::ffff:198.51.100.1"}, "198.51.100.1:0"},
		"no header":                       {"10.0.0.7:80", nil, "10.0.0.7:0"},
		"unknown":                         {"10.0.0.7:80", []string{"198.51.100.1, unknown"}, "10.0.0.7:0"},
		"unknown to the first of two":     {"10.0.0.7:80", []string{"unknown, 10.0.0.8"}, "10.0.0.8:0"},
		"more than anyone has":            {"10.0.0.7:80", []string{"198.51.100.1" + strings.Repeat(", 10.0.0.8", 50)}, "10.0.0.8:0"},
		"beside the trusted network":      {"10.0.1.7:80", []string{"198.51.100.1"}, "10.0.1.7:80"},
	} {
		got := ""
		h := access.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }), access.ProtectOptions{Proxies: proxies})
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		r.Header["X-Forwarded-For"] = c.forwarded
		if ask(h, r); got != c.want {
			t.Errorf("%s: %s, want %s", reason, got, c.want)
		}
	}
}
