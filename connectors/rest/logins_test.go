package rest_test

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/wire"
)

// severalLogins has three logins, two of which need a parameter that no other one does.
var severalLogins = strings.Replace(itemsFile("", plainRead), `  shop: {pattern: '[a-z]+', about: the shop, default: main}
auth:
  bearer: {secret: token}
`, `  shop: {pattern: '[a-z]+', about: the shop, default: main}
  client: {pattern: '[a-z]+', about: the client}
  robot: {pattern: '[a-z]+', about: the robot}
auth:
  - bearer: {secret: token}
  - oauth2: {token_url: /token, client_id: "{param.client}", secret: client_secret, style: params}
  - oauth2: {token_url: /token, client_id: "{param.client}", secret: client_secret, grant: refresh_token, refresh: refresh, rotates: true}
  - basic: {username: "{param.robot}", secret: password}
`, 1)

// The login whose secrets an account has is used, and parameters of others are not wanted.
func TestAChoiceOfLogins(t *testing.T) {
	d, err := rest.Load([]byte(severalLogins), "F")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([][]string{{"token"}, {"client_secret"}, {"client_secret", "refresh"}, {"password"}}, d.Logins()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	words := "There are 4 logins. An account has the secrets of exactly one, which chooses it: token, or client_secret, or client_secret and refresh, or password."
	if all := strings.Join(d.Explained("item"), "\n"); !strings.Contains(all, words) {
		t.Errorf("not explained: %s", all)
	}
	const several = "; want those of exactly one login: token, or client_secret, or client_secret and refresh, or password"
	for name, tt := range map[string]struct {
		secrets, parameters string
		login, problem      string
	}{
		"bearer":            {"token", "", "Bearer hunter2-token", ""},
		"client":            {"client_secret", "client", "Bearer t1", ""},
		"refresh token":     {"client_secret refresh", "client", "Bearer t1", ""},
		"basic":             {"password", "robot", "Basic cm9ib3Q6aHVudGVyMi1wYXNzd29yZA==", ""},
		"parameter of more": {"password", "robot client", "Basic cm9ib3Q6aHVudGVyMi1wYXNzd29yZA==", ""},
		"none":              {"", "", "", "the option Secrets has none" + several},
		"two":               {"token client_secret", "client", "", "the option Secrets has client_secret, token" + several},
		"a part":            {"refresh", "client", "", "the option Secrets has refresh" + several},
		"more":              {"token refresh", "", "", "the option Secrets has refresh, token" + several},
		"unknown":           {"tokn", "", "", "the option Secrets has one that the declaration does not name"},
		"no parameter":      {"client_secret", "robot", "", "the option Parameters.client is missing; want the client"},
		"no parameter, 2":   {"password", "client", "", "the option Parameters.robot is missing; want the robot"},
	} {
		t.Run(name, func(t *testing.T) {
			api, got := &tokenServer{expires: 3600}, ""
			api.token = func(rw http.ResponseWriter, r *http.Request) {
				says(200, `{"access_token":"t1","token_type":"bearer","refresh_token":"hunter2-next"}`, "Content-Type", "application/json")(rw, r)
			}
			o := rest.Options{Parameters: map[string]string{}, Secrets: map[string]func(context.Context) (string, error){}, Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/token" {
					api.serve(rw, r)
					return
				}
				got = r.Header.Get("Authorization")
				says(200, `{"id":"1"}`)(rw, r)
			}), nil)}
			for _, s := range strings.Fields(tt.secrets) {
				o.Secrets[s] = func(context.Context) (string, error) { return "hunter2-" + s, nil }
			}
			for _, p := range strings.Fields(tt.parameters) {
				o.Parameters[p] = p
			}
			if slices.Contains(strings.Fields(tt.secrets), "refresh") {
				o.Rotate = map[string]func(context.Context, func(string) (string, error)) error{"refresh": func(_ context.Context, exchange func(string) (string, error)) error {
					_, err := exchange("hunter2-refresh")
					return err
				}}
			}
			c, err := rest.New(d, o)
			if tt.problem != "" {
				if !errors.Is(err, rest.ErrOptions) || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v; want %q", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(t.Context(), itemRequest(intent.Create)); err != nil || got != tt.login {
				t.Errorf("%v, logged in with %q; want %q", err, got, tt.login)
			}
			if by := strings.Contains(api.asked, "grant_type=refresh_token"); by != (name == "refresh token") {
				t.Errorf("asked for a token with %q", api.asked)
			}
		})
	}
}

// A key that has an id signs with it, so that the API knows which of several it is.
func TestTheIDOfAKey(t *testing.T) {
	text := pemOf(t, "PRIVATE KEY", signingKey(t))
	for more, want := range map[string]string{"}": "", `, key_id: "{param.shop}-7"}`: "main-7"} {
		d := &tokenServer{expires: 3600}
		c := signedItems(t, bySignature+more, text, d.serve)
		if _, err := c.Write(t.Context(), itemRequest(intent.Create)); connectors.FateOf(err) != connectors.FateAnswered {
			t.Fatal(err)
		}
		_, statement, _ := strings.Cut(d.asked, "assertion=")
		statement, _, _ = strings.Cut(statement, "&")
		signed, err := jwt.ParseSigned(statement, []jose.SignatureAlgorithm{jose.RS256})
		if err != nil || signed.Headers[0].KeyID != want {
			t.Errorf("%v, the key is %+v; want %q", err, signed.Headers, want)
		}
	}
}

// tokenEndpoints answer for vendors: to a request of a token in the form that each documents, with the token
// of the fake. They go to hosts of their own.
type tokenEndpoints struct {
	key   *rsa.PrivateKey
	token string
	next  http.RoundTripper
	asked int
}

func (e *tokenEndpoints) RoundTrip(r *http.Request) (*http.Response, error) {
	user, secret, basic := r.BasicAuth()
	fresh := ""
	switch r.URL.Host + r.URL.Path {
	case "oauth.platform.intuit.com/oauth2/v1/tokens/bearer":
		fresh = "hunter2-next"
	case "login.microsoftonline.com/acme.onmicrosoft.com/oauth2/v2.0/token":
		fresh, user, secret = "hunter2-next", r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	case "oauth2.googleapis.com/token", "acme.my.salesforce.com/services/oauth2/token":
		user, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	default:
		return e.next.RoundTrip(r)
	}
	e.asked++
	good := user != "" && secret == "hunter2-client_secret"
	if r.URL.Host != "acme.my.salesforce.com" {
		good = good && basic == (r.URL.Host == "oauth.platform.intuit.com") && r.PostFormValue("grant_type") == "refresh_token" && r.PostFormValue("refresh_token") == "hunter2-refresh_token"
	}
	if statement := r.PostFormValue("assertion"); statement != "" {
		claims := map[string]any{}
		signed, err := jwt.ParseSigned(statement, []jose.SignatureAlgorithm{jose.RS256})
		if err == nil {
			err = signed.Claims(&e.key.PublicKey, &claims)
		}
		scope, _ := claims["scope"].(string)
		aud := "https://oauth2.googleapis.com/token"
		if r.URL.Host == "acme.my.salesforce.com" {
			aud = "https://login.salesforce.com"
			good = claims["sub"] == "robot@acme.example" && scope == ""
		} else {
			good = claims["iss"] == "readback@acme.iam.gserviceaccount.com" && strings.HasPrefix(scope, "https://www.googleapis.com/auth/") && (claims["sub"] == "ada@example.com") == strings.HasSuffix(scope, "gmail.modify")
		}
		good = good && err == nil && claims["aud"] == aud && user+secret == ""
	}
	rec := httptest.NewRecorder()
	if good {
		says(200, fmt.Sprintf(`{"access_token":%q,"token_type":"bearer","expires_in":3599,"refresh_token":%q}`, e.token, fresh), "Content-Type", "application/json")(rec, r)
	} else {
		says(400, `{"error":"invalid_grant"}`, "Content-Type", "application/json")(rec, r)
	}
	return rec.Result(), nil
}

// Each login of an included declaration that has several lets in at the fake of its API.
func TestShippedLogins(t *testing.T) {
	key := signingKey(t)
	private := pemOf(t, "PRIVATE KEY", key)
	tried := map[string]int{}
	all := maps.Clone(destinations)
	events, _ := calendar()
	all["google-calendar-events/event"] = destination{open: func() *fakerest.Fake { return events.fake }, secrets: map[string]string{"token": "ya29"}, parameters: events.options.Parameters}
	rows, _ := salesforce(true)
	all["salesforce-objects/record"] = destination{open: func() *fakerest.Fake { return rows.fake }, secrets: map[string]string{"token": "00D-session"}, parameters: rows.options.Parameters}
	for name, d := range all {
		of, _, _ := strings.Cut(name, "/")
		if d.connect != nil || tried[of] > 0 || len(shippedDeclaration(t, of).Logins()) < 2 {
			continue
		}
		declaration := shippedDeclaration(t, of)
		for _, login := range declaration.Logins() {
			f := d.open()
			ends := &tokenEndpoints{key: key, token: d.secrets["token"], next: f.Transport()}
			o := rest.Options{Parameters: map[string]string{}, Secrets: map[string]func(context.Context) (string, error){}, Rotate: map[string]func(context.Context, func(string) (string, error)) error{}, Transport: ends}
			for _, p := range declaration.Parameters() {
				if p.Default == "" {
					o.Parameters[p.Name] = p.Example
				}
			}
			maps.Copy(o.Parameters, d.parameters)
			for _, s := range login {
				o.Secrets[s] = func(context.Context) (string, error) {
					if s == "private_key" {
						return private, nil
					}
					return cmp.Or(map[string]string{"token": d.secrets["token"]}[s], "hunter2-"+s), nil
				}
			}
			kept := ""
			for _, s := range declaration.Rotating() {
				o.Rotate[s] = func(_ context.Context, exchange func(string) (string, error)) (err error) {
					kept, err = exchange("hunter2-" + s)
					return err
				}
			}
			con, err := rest.New(declaration, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := con.Probe(t.Context()); err != nil {
				t.Errorf("%s by %v: %v", of, login, err)
			}
			if (ends.asked == 0) != (login[0] == "token") || (kept == "hunter2-next") != (slices.Contains(login, "refresh_token") && len(declaration.Rotating()) > 0) {
				t.Errorf("%s by %v: %d tokens, and %q is kept", of, login, ends.asked, kept)
			}
			tried[of]++
		}
	}
	t.Log(tried)
	if len(tried) < 7 {
		t.Errorf("tried %v; want seven declarations at least", tried)
	}
}
