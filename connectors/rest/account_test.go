package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/egress"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
)

// withAuth is the declaration of items with another way in.
func withAuth(auth string) string {
	return strings.Replace(itemsFile("", plainRead), "  bearer: {secret: token}", "  "+auth, 1)
}

const byOAuth = `oauth2: {token_url: /token, client_id: "id-{param.shop}", secret: token, scopes: [a, b]}`

// tokenServer is a destination with a token endpoint.
type tokenServer struct {
	mu      sync.Mutex
	tokens  int    // how many it issued
	valid   string // the one that it takes
	writes  []int  // the statuses it answered writes with
	token   http.HandlerFunc
	expires int
	asked   string
}

func (d *tokenServer) serve(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.URL.Path == "/api/token" {
		user, secret, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		d.asked = user + " " + secret + " " + string(body)
		d.tokens++
		if d.token != nil {
			d.token(rw, r)
			return
		}
		d.valid = fmt.Sprintf("t%d", d.tokens)
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"access_token":%q,"token_type":"bearer","expires_in":%d}`, d.valid, d.expires)
		return
	}
	status := http.StatusOK
	if r.Header.Get("Authorization") != "Bearer "+d.valid {
		status = http.StatusUnauthorized
	}
	if r.Method == http.MethodPost {
		d.writes = append(d.writes, status)
	}
	says(status, `{"id":1,"items":[]}`)(rw, r)
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tokenServer{expires: 3600}
		c := items(t, withAuth(byOAuth), d.serve)
		write := func() error {
			_, err := c.Write(t.Context(), itemRequest(intent.Create))
			return err
		}
		for range 3 {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
		if d.tokens != 1 || d.asked != "id-main hunter2 grant_type=client_credentials&scope=a+b" {
			t.Errorf("%d tokens were fetched (%q), want one for three sends", d.tokens, d.asked)
		}

		d.valid = "revoked"
		sends := len(d.writes)
		if err := write(); connectors.FateOf(err) != connectors.FateLogin || len(d.writes) != sends+1 {
			t.Errorf("a token that is no good any more: %v after %d sends, want a refused login after one", err, len(d.writes)-sends)
		}
		if err := write(); err != nil || d.tokens != 2 {
			t.Errorf("the next send: %v, %d tokens; want a fresh one", err, d.tokens)
		}

		time.Sleep(time.Hour - 10*time.Second) // fake
		if err := write(); err != nil || d.tokens != 3 {
			t.Errorf("a token about to end: %v, %d tokens; want a fresh one", err, d.tokens)
		}

		d.valid = "revoked"
		if _, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); err == nil {
			t.Error("a read that was not let in found nothing wrong")
		}
		if _, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); err != nil || d.tokens != 4 {
			t.Errorf("the next read: %v, %d tokens", err, d.tokens)
		}
	})
}

func TestACrowdFetchesOneToken(t *testing.T) {
	d := &tokenServer{expires: 3600}
	c := items(t, withAuth(byOAuth), d.serve)
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			if _, err := c.Write(t.Context(), itemRequest(intent.Create)); err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if d.tokens != 1 {
		t.Errorf("%d tokens were fetched, want 1", d.tokens)
	}
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	tests := map[string]struct {
		reason string
		token  http.HandlerFunc
	}{
		"login":     {"wrong secret", says(401, `{"error":"invalid_client","error_description":"hunter2 is wrong"}`)},
		"login 400": {"the grant has expired", says(400, `{"error":"invalid_grant","error_description":"hunter2 is old"}`)},
		"login 403": {"the client was blocked", says(403, `hunter2`)},
		"login 200": {"an unusual server", says(200, `{"error":"invalid_grant","error_description":"hunter2 is old"}`, "Content-Type", "application/json")},
		"broken":    {"server error", says(500, `hunter2`)},
		"HTML":      {"no token", says(200, `<html>hunter2`)},
		"no token":  {"no token", says(200, `{"hunter2":1}`, "Content-Type", "application/json")},
		"redirect":  {"the secret would go elsewhere", says(307, ``, "Location", "https://evil.example/token")},
		"control":   {"it would begin another header", says(200, `{"access_token":"a\r\nX: b"}`, "Content-Type", "application/json")},
		"endless":   {"a body without end", func(rw http.ResponseWriter, _ *http.Request) { endless(rw) }},
		"hangs":     {"never answers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &tokenServer{token: tt.token}
				c := items(t, withAuth(byOAuth), d.serve)
				_, err := c.Write(t.Context(), itemRequest(intent.Create))
				_, readErr := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
				want := connectors.FateNotSent
				if strings.HasPrefix(name, "login") {
					want = connectors.FateLogin
				}
				if connectors.FateOf(err) != want || want == connectors.FateLogin && connectors.FateOf(readErr) != want || len(d.writes) > 0 || readErr == nil {
					t.Errorf("%s: write %v, read %v, %d writes arrived; want %s and an error", tt.reason, err, readErr, len(d.writes), want)
				}
				if strings.Contains(fmt.Sprint(err, readErr), "hunter2") {
					t.Errorf("the secret is in an error: %v, %v", err, readErr)
				}
			})
		})
	}
}

func TestWaysIn(t *testing.T) {
	tests := map[string]struct{ auth, header, want string }{
		"bearer": {"bearer: {secret: token}", "Authorization", "Bearer hunter2"},
		"basic":  {"basic: {username: \"{param.shop}/token\", secret: token}", "Authorization", "Basic bWFpbi90b2tlbjpodW50ZXIy"},
		"header": {"header: {name: X-Api-Key, secret: token, prefix: \"Key \"}", "X-Api-Key", "Key hunter2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var h recorder
			if _, err := items(t, withAuth(tt.auth), h.serve).Write(t.Context(), itemRequest(intent.Create)); err != nil {
				t.Fatal(err)
			}
			if got := h.header.Get(tt.header); got != tt.want {
				t.Errorf("%s is %q, want %q", tt.header, got, tt.want)
			}
		})
	}
}

func TestASecretThatCannotBeHad(t *testing.T) {
	d, err := rest.Load([]byte(itemsFile("", plainRead)), "items.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, fetch := range map[string]func(context.Context) (string, error){
		"error":   func(context.Context) (string, error) { return "hunter2", errors.New("vault is sealed") },
		"empty":   func(context.Context) (string, error) { return "", nil },
		"control": func(context.Context) (string, error) { return "hunter2\n", nil },
	} {
		t.Run(name, func(t *testing.T) {
			var h recorder
			c, err := rest.New(d, rest.Options{Transport: wire.Transport(http.HandlerFunc(h.serve), nil), Secrets: map[string]func(context.Context) (string, error){"token": fetch}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Write(t.Context(), itemRequest(intent.Create))
			if connectors.FateOf(err) != connectors.FateNotSent || len(h.requests) > 0 || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, received %q; want not sent, and no secret", err, h.requests)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	hunter := map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "hunter2", nil }}
	tests := map[string]struct {
		reason string
		o      rest.Options
		want   string
	}{
		"good":              {"all is there", rest.Options{Secrets: hunter}, ""},
		"own server":        {"a sandbox", rest.Options{Secrets: hunter, BaseURL: "https://sandbox.example:8443/v3/"}, ""},
		"no secret":         {"it would be noticed too late", rest.Options{}, "Secrets.token is missing"},
		"another secret":    {"a misspelt name", rest.Options{Secrets: map[string]func(context.Context) (string, error){"tokn": nil}}, "does not name"},
		"parameter":         {"does not fit", rest.Options{Secrets: hunter, Parameters: map[string]string{"shop": "a/b"}}, "Parameters.shop does not match"},
		"unknown parameter": {"a misspelt name", rest.Options{Secrets: hunter, Parameters: map[string]string{"shpo": "a"}}, "Parameters.shpo is not known"},
		"empty parameter":   {"required", rest.Options{Secrets: hunter, Parameters: map[string]string{"shop": ""}}, "Parameters.shop is missing"},
		"http":              {"in the clear", rest.Options{Secrets: hunter, BaseURL: "http://api.example"}, "BaseURL is http"},
		"localhost by name": {"what it means may change", rest.Options{Secrets: hunter, BaseURL: "http://localhost.example"}, "BaseURL is http"},
		"user name":         {"credentials", rest.Options{Secrets: hunter, BaseURL: "https://a:hunter2@api.example"}, "user name or a password"},
		"query":             {"a place of its own", rest.Options{Secrets: hunter, BaseURL: "https://api.example?a=b"}, "query"},
		"scheme":            {"no HTTP", rest.Options{Secrets: hunter, BaseURL: "file:///etc/passwd"}, "no address"},
		"no host":           {"no host", rest.Options{Secrets: hunter, BaseURL: "https:///x"}, "no host"},
		"dots":              {"another place", rest.Options{Secrets: hunter, BaseURL: "https://api.example/a/../b"}, "another place"},
	}
	d, err := rest.Load([]byte(itemsFile("", plainRead)), "items.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := rest.New(d, tt.o)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("%s: %v", tt.reason, err)
			case tt.want != "" && (!errors.Is(err, rest.ErrOptions) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: got %v, want an error with %q", tt.reason, err, tt.want)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
	if _, err := rest.New(nil, rest.Options{}); !errors.Is(err, rest.ErrOptions) {
		t.Errorf("no declaration: %v", err)
	}
}

// TestTokenHosts: the client's secret goes to declared hosts alone, also when
// the configuration names another base URL.
func TestTokenHosts(t *testing.T) {
	file := withAuth(`oauth2: {token_url: "http://127.0.0.1:1/token", client_id: a, secret: token}`)
	d, err := rest.Load([]byte(file), "items.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hunter := map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "hunter2", nil }}
	if _, err := rest.New(d, rest.Options{BaseURL: "https://sandbox.example", Secrets: hunter}); !errors.Is(err, rest.ErrHost) {
		t.Errorf("the token would come from a host that neither the declaration nor the configuration names: %v", err)
	}
}

func TestProbe(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		ok     bool
	}{
		"good":     {says(200, `{"open":true}`), true},
		"closed":   {says(200, `{"open":false}`), false},
		"HTML":     {says(200, `<html>`), false},
		"not in":   {says(401, `{"open":true}`), false},
		"no reply": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			err := items(t, itemsFile("", plainRead), func(rw http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.RequestURI
				tt.answer(rw, r)
			}).Probe(t.Context())
			if (err == nil) != tt.ok || asked != "GET /api/shops/main" {
				t.Errorf("asked %q, got %v; want it good: %t", asked, err, tt.ok)
			}
		})
	}
}

func TestSample(t *testing.T) {
	c := ordersConnector(t, ordersOptions(), rest.Options{})
	one, err := c.Sample("order", intent.Create, "x1")
	if err != nil || one.Key["order_id"] != "sample-x1" || one.Expect["note"] != "readback sample x1" || one.Kind != "order" || one.Write != intent.Create {
		t.Errorf("create: %v, %v", one, err)
	}
	update, err := c.Sample("order", intent.Update, "x1")
	if err != nil || update.Key["order_id"] != one.Key["order_id"] || update.Expect["note"] == one.Expect["note"] {
		t.Errorf("update: %v, %v; want the same key and another note", update, err)
	}
	gone, err := c.Sample("order", intent.Delete, "x2")
	if err != nil || gone.Key["order_id"] == one.Key["order_id"] || gone.Expect != nil {
		t.Errorf("delete: %v, %v", gone, err)
	}
	for name, f := range map[string]func() (intent.WriteIntent, error){
		"kind":  func() (intent.WriteIntent, error) { return c.Sample("no", intent.Create, "x") },
		"write": func() (intent.WriteIntent, error) { return c.Sample("order", intent.Upsert, "x") },
		"name":  func() (intent.WriteIntent, error) { return c.Sample("order", intent.Create, "x/y") },
		"empty": func() (intent.WriteIntent, error) { return c.Sample("order", intent.Create, "") },
	} {
		if got, err := f(); !errors.Is(err, rest.ErrIntent) {
			t.Errorf("%s: %v, %v; want an error", name, got, err)
		}
	}
}

// TestOneSendOverAKeptConnection: net/http would send again what carries an
// idempotency key when a kept connection dies.
func TestOneSendOverAKeptConnection(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			if posts.Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
		}
		_, _ = io.WriteString(rw, `{"id":1}`)
	}))
	defer server.Close()
	file := itemsFile("idempotency: {header: Idempotency-Key, window: 1h}", plainRead)
	d, err := rest.Load([]byte(file), "items.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{BaseURL: server.URL, Secrets: map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "x", nil }}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), itemRequest(intent.Create)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Write(t.Context(), itemRequest(intent.Create))
	if connectors.FateOf(err) != connectors.FateUnknown || posts.Load() != 2 {
		t.Errorf("%d posts arrived for two sends, the second says %v; want two, and an unknown fate", posts.Load(), err)
	}
}

// TestEgress: neither a secret for a token nor the question for a next page goes to a
// declared host that the operator's list does not have.
func TestEgress(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	other := elsewhere.Listener.Addr().String()
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Link", "<"+elsewhere.URL+`/api/items?page=2>; rel="next"`)
		says(http.StatusOK, `{"items":[]}`)(rw, nil)
	}))
	t.Cleanup(api.Close)
	list, err := egress.Parse(api.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	connect := func(file string) *rest.Connector {
		d, err := rest.Load([]byte(strings.Replace(file, `"127.0.0.1:2"`, `"`+other+`"`, 1)), "items.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, err := rest.New(d, rest.Options{BaseURL: api.URL + "/api", Transport: httpsend.NewTransport(list.DialContext, nil),
			Secrets: map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "hunter2", nil }}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	byToken := connect(withAuth(`oauth2: {token_url: "` + elsewhere.URL + `/token", client_id: a, secret: token}`))
	_, err = byToken.Write(t.Context(), itemRequest(intent.Create))
	if connectors.FateOf(err) != connectors.FateNotSent || !strings.Contains(err.Error(), "the token endpoint: the setting egress does not allow a connection to "+other) {
		t.Errorf("a token from elsewhere: %v, want not sent, with the setting", err)
	}
	paged := connect(itemsFile("", plainRead+"paging: {link: next}"))
	if _, err := paged.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); err == nil || !strings.Contains(err.Error(), "the setting egress does not allow a connection to "+other) {
		t.Errorf("a page from elsewhere: %v, want the setting", err)
	}
	if asked != 0 {
		t.Errorf("the other host was asked %d times", asked)
	}
}
