// Package accesstest is an OpenID provider for tests: it implements the authorization
// code flow with PKCE, signs its tokens, and has the faults that a login must detect. It
// asks for no password and knows no roles: the test sets the user.
package accesstest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Our registration at the provider.
const (
	ClientID = "readback"
	Secret   = "the client's own"
)

// Fault is what the provider does wrong. Default none.
type Fault string

// The faults.
const (
	WrongNonce    Fault = "wrong nonce"       // the token belongs to another login
	WrongAudience Fault = "wrong audience"    // it is for another program
	OtherParty    Fault = "other party"       // it is for us too, but was given to another
	WrongIssuer   Fault = "wrong issuer"      // another provider made it
	Expired       Fault = "expired"           // it has expired
	Unsigned      Fault = "algorithm none"    // it has no signature
	OtherKey      Fault = "other key"         // another key signed it
	Symmetric     Fault = "symmetric"         // it is signed with the client's secret
	Tampered      Fault = "tampered"          // its claims were changed after the signature
	NoToken       Fault = "no id token"       // there is only an access token
	Unverified    Fault = "unverified e-mail" // the address is not verified
	LoggedOut     Fault = "logged out"        // the user has to log in there again
	Unavailable   Fault = "unavailable"       // it redirects users to try later
	Refusing      Fault = "refusing"          // it redirects users without a code
	Garbled       Fault = "garbled"           // its response cannot be parsed
	Slow          Fault = "slow"              // its response takes longer than any client waits
	Down          Fault = "down"              // it answers with 503
	Moved         Fault = "moved"             // it redirects the code and the secret elsewhere
	KeysDown      Fault = "keys down"         // its keys return 503
	KeysGarbled   Fault = "keys garbled"      // they cannot be parsed
)

// Provider is a fake OpenID provider. It is safe for concurrent use.
type Provider struct {
	// URL is its issuer.
	URL string
	// Methods are the client authentications that it accepts: client_secret_basic,
	// client_secret_post, none. To be set before the first request. Default any, without
	// announcing it.
	Methods []string

	mux *http.ServeMux

	mu     sync.Mutex
	fault  Fault
	claims map[string]any
	issued map[string]login // by code
	asked  map[string]int   // by path
	asks   url.Values       // of the newest login
}

// login was begun and not redeemed.
type login struct{ nonce, challenge, redirect string }

// signing and otherKey are made once: that takes longer than most tests.
var signing, otherKey = sync.OnceValue(newKey), sync.OnceValue(newKey)

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// New starts a provider on this machine, until the test ends.
func New(tb testing.TB) *Provider {
	tb.Helper()
	p := Silent(tb, "")
	server := httptest.NewServer(p)
	tb.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Silent returns a provider with this issuer that listens nowhere: [Provider.Client]
// reaches it, in a bubble of testing/synctest too.
func Silent(tb testing.TB, issuer string) *Provider {
	tb.Helper()
	p := &Provider{URL: issuer, mux: http.NewServeMux(), issued: map[string]login{}, asked: map[string]int{},
		claims: map[string]any{"sub": "248289761001", "email": "Alice@example.com", "email_verified": true, "groups": []string{"operators"}}}
	p.mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	p.mux.HandleFunc("GET /keys", p.keys)
	p.mux.HandleFunc("GET /authorize", p.authorize)
	p.mux.HandleFunc("POST /token", p.token)
	return p
}

// Has sets its fault, or removes it with "".
func (p *Provider) Has(v Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = v
}

// Says sets the claims of the next user to log in. The default is an operator called
// alice@example.com.
func (p *Provider) Says(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// Asked is how often a path was requested.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// Asks are the parameters of the newest login.
func (p *Provider) Asks() url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asks
}

// Client reaches the provider without a network.
func (p *Provider) Client() *http.Client { return &http.Client{Transport: direct{p}} }

type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.h.ServeHTTP(w, r)
	}()
	select {
	case <-done:
		return w.Result(), nil
	case <-r.Context().Done():
		<-done
		return nil, r.Context().Err()
	}
}

func (p *Provider) has() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// ServeHTTP serves as a provider does.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.URL.Path]++
	p.mu.Unlock()
	switch p.has() {
	case Down:
		http.Error(w, "secret words of a broken provider", http.StatusServiceUnavailable)
	case Slow:
		<-r.Context().Done()
	default:
		p.mux.ServeHTTP(w, r)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that disconnected needs no response
}

func (p *Provider) configuration(w http.ResponseWriter, _ *http.Request) {
	metadata := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		// A careless or a false provider may list algorithms that a login must refuse.
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
	}
	if p.Methods != nil {
		metadata["token_endpoint_auth_methods_supported"] = p.Methods
	}
	answer(w, metadata)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	switch p.has() {
	case KeysDown:
		http.Error(w, "secret words of a broken provider", http.StatusServiceUnavailable)
		return
	case KeysGarbled:
		_, _ = w.Write([]byte("secret words of a broken provider")) // a client that disconnected needs no response
		return
	}
	answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: signing().Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
}

// authorize redirects the browser back at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "want a code with state, nonce and an S256 challenge", http.StatusBadRequest)
		return
	}
	answers := url.Values{"state": {q.Get("state")}}
	p.mu.Lock()
	p.asks = q
	p.mu.Unlock()
	switch kind := p.has(); {
	case kind == Refusing:
		answers.Set("error", "access_denied")
	case kind == Unavailable:
		answers.Set("error", "temporarily_unavailable")
	case kind == LoggedOut && q.Get("prompt") == "none":
		answers.Set("error", "login_required")
	default:
		code := rand.Text()
		answers.Set("code", code)
		p.mu.Lock()
		p.issued[code] = login{nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri")}
		p.mu.Unlock()
	}
	back.RawQuery = answers.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// redeem redeems a code, which is valid once.
func (p *Provider) redeem(r *http.Request) (login, string) {
	method := "client_secret_basic"
	user, password, ok := r.BasicAuth()
	if !ok {
		method, user, password = "client_secret_post", r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else if plain, err := url.QueryUnescape(password); err == nil {
		password = plain
	}
	if password == "" {
		method = "none"
	}
	known := method != "none"
	if p.Methods != nil {
		known = slices.Contains(p.Methods, method)
	}
	p.mu.Lock()
	begun, issued := p.issued[r.PostFormValue("code")]
	delete(p.issued, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case !known || user != ClientID || method != "none" && password != Secret:
		return login{}, "invalid_client"
	case !issued || r.PostFormValue("redirect_uri") != begun.redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != begun.challenge:
		return login{}, "invalid_grant"
	}
	return begun, ""
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	kind := p.has()
	if kind == Moved {
		http.Redirect(w, r, p.URL+"/elsewhere", http.StatusTemporaryRedirect)
		return
	}
	begun, wrong := p.redeem(r)
	if wrong != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":%q}`, wrong)
		return
	}
	if kind == Garbled {
		_, _ = fmt.Fprint(w, "<html>")
		return
	}
	out := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300}
	if kind != NoToken {
		out["id_token"] = p.idToken(kind, begun)
	}
	answer(w, out)
}

// idToken is a token with the user's claims, and with the fault.
func (p *Provider) idToken(kind Fault, begun login) string {
	now := time.Now()
	all := map[string]any{"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": begun.nonce}
	p.mu.Lock()
	maps.Copy(all, p.claims)
	p.mu.Unlock()
	switch kind {
	case WrongNonce:
		all["nonce"] = rand.Text()
	case WrongAudience:
		all["aud"] = "another"
	case OtherParty:
		all["aud"], all["azp"] = []string{ClientID, "another"}, "another"
	case WrongIssuer:
		all["iss"] = "https://elsewhere.example.org"
	case Expired:
		all["exp"] = now.Add(-time.Minute).Unix()
	case Unverified:
		all["email_verified"] = false
	}
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err) // the test's own claims
	}
	return p.sign(kind, payload)
}

func (p *Provider) sign(kind Fault, payload []byte) string {
	with := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: signing(), KeyID: "1"}}
	encoded := base64.RawURLEncoding.EncodeToString
	switch kind {
	case Unsigned:
		return encoded([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encoded(payload) + "."
	case OtherKey:
		with.Key = jose.JSONWebKey{Key: otherKey(), KeyID: "1"}
	case Symmetric:
		with = jose.SigningKey{Algorithm: jose.HS256, Key: []byte(Secret + Secret + Secret)}
	}
	signer, err := jose.NewSigner(with, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	if kind == Tampered {
		parts := strings.Split(text, ".")
		parts[1] = encoded(append(payload[:len(payload)-1:len(payload)-1], `,"groups":["operators","more"]}`...))
		return strings.Join(parts, ".")
	}
	return text
}
