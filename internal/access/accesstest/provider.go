// Package accesstest is an OpenID provider for tests: it speaks the
// authorization code flow with PKCE, signs its tokens, and has the vices that a
// login must see through. It asks nobody for a password and knows nothing of
// roles: whoever comes is who the test says.
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

// What the provider knows us as.
const (
	ClientID = "readback"
	Secret   = "the client's own"
)

// Vice is what the provider does wrong. Default none.
type Vice string

// The vices.
const (
	WrongNonce    Vice = "wrong nonce"       // the token is about another login
	WrongAudience Vice = "wrong audience"    // it is for another program
	OtherParty    Vice = "other party"       // it is for us too, but was given to another
	WrongIssuer   Vice = "wrong issuer"      // another provider made it
	Expired       Vice = "expired"           // its time is over
	Unsigned      Vice = "algorithm none"    // nobody signed it
	OtherKey      Vice = "other key"         // somebody else did
	Symmetric     Vice = "symmetric"         // it is signed with the client's secret
	Tampered      Vice = "tampered"          // its claims were changed behind the signature
	NoToken       Vice = "no id token"       // there is only an access token
	Unverified    Vice = "unverified e-mail" // nobody has proven the address
	Refusing      Vice = "refusing"          // it sends people back without a code
	Garbled       Vice = "garbled"           // it answers in no language
	Slow          Vice = "slow"              // it does not answer as long as anybody waits
	Down          Vice = "down"              // it answers with 503
	Moved         Vice = "moved"             // it sends the code and the secret elsewhere
	KeysDown      Vice = "keys down"         // its keys are answered with 503
	KeysGarbled   Vice = "keys garbled"      // they are in no language
)

// Provider is a fake OpenID provider. It is safe for concurrent use.
type Provider struct {
	// URL is its issuer.
	URL string
	// Methods is how it wants to be told who asks: client_secret_basic,
	// client_secret_post, none. To be set before it is first asked. Default
	// anything, and it says nothing of it.
	Methods []string

	mux *http.ServeMux

	mu     sync.Mutex
	vice   Vice
	claims map[string]any
	issued map[string]login // by code
	asked  map[string]int   // by path
}

// login is one that was begun and not redeemed.
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

// Silent returns a provider that listens nowhere and calls itself so:
// [Provider.Client] reaches it, in a bubble of testing/synctest too.
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

// Has gives it a vice, or takes it away with "".
func (p *Provider) Has(v Vice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vice = v
}

// Says makes claims of whoever logs in next, in the place of those before. The
// default is an operator called alice@example.com.
func (p *Provider) Says(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// Asked is how often a path was asked for.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
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

func (p *Provider) has() Vice {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.vice
}

// ServeHTTP answers as a provider does.
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
	_ = json.NewEncoder(w).Encode(v) // who is gone needs no answer
}

func (p *Provider) configuration(w http.ResponseWriter, _ *http.Request) {
	said := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		// What a careless or a false provider lists, a login must not take.
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
	}
	if p.Methods != nil {
		said["token_endpoint_auth_methods_supported"] = p.Methods
	}
	answer(w, said)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	switch p.has() {
	case KeysDown:
		http.Error(w, "secret words of a broken provider", http.StatusServiceUnavailable)
		return
	case KeysGarbled:
		_, _ = w.Write([]byte("secret words of a broken provider")) // who is gone needs no answer
		return
	}
	answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: signing().Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
}

// authorize sends the browser back at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "want a code with state, nonce and an S256 challenge", http.StatusBadRequest)
		return
	}
	answers := url.Values{"state": {q.Get("state")}}
	if p.has() == Refusing {
		answers.Set("error", "access_denied")
	} else {
		code := rand.Text()
		answers.Set("code", code)
		p.mu.Lock()
		p.issued[code] = login{nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri")}
		p.mu.Unlock()
	}
	back.RawQuery = answers.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// redeem takes a code, which is good once.
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
	vice := p.has()
	if vice == Moved {
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
	if vice == Garbled {
		_, _ = fmt.Fprint(w, "<html>")
		return
	}
	out := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300}
	if vice != NoToken {
		out["id_token"] = p.idToken(vice, begun)
	}
	answer(w, out)
}

// idToken is what is said of somebody, with what is wrong in it.
func (p *Provider) idToken(vice Vice, begun login) string {
	now := time.Now()
	all := map[string]any{"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": begun.nonce}
	p.mu.Lock()
	maps.Copy(all, p.claims)
	p.mu.Unlock()
	switch vice {
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
	return p.sign(vice, payload)
}

func (p *Provider) sign(vice Vice, payload []byte) string {
	with := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: signing(), KeyID: "1"}}
	encoded := base64.RawURLEncoding.EncodeToString
	switch vice {
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
	if vice == Tampered {
		parts := strings.Split(text, ".")
		parts[1] = encoded(append(payload[:len(payload)-1:len(payload)-1], `,"groups":["operators","more"]}`...))
		return strings.Join(parts, ".")
	}
	return text
}
