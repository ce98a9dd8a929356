package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/readback-go/readback/internal/visible"
)

// Bounds of requests to the provider.
const (
	// discoverFor bounds one discovery of the provider, providerFor one request to it: a
	// user waits.
	discoverFor = 5 * time.Second
	providerFor = 10 * time.Second
	// firstPause and lastPause bound the pause after a failed discovery. It doubles each
	// time.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// maxAnswer bounds one of its responses in bytes; keys and tokens are some kilobytes.
	maxAnswer = 1 << 20
)

// provider is the OpenID provider. Discovery runs when it is first needed, and again
// until it succeeds: the provider may start after us.
type provider struct {
	issuer string
	config oauth2.Config // without the endpoint
	client *http.Client
	now    func() time.Time
	log    *slog.Logger
	// secret fetches the client's secret, nil where there is none; refused is called when
	// the provider has refused it.
	secret    func(context.Context) (string, error)
	refused   func()
	discovery singleflight.Group

	mu    sync.Mutex
	found *found
	again time.Time // when discovery may run again
	pause time.Duration
}

// found is a provider whose endpoints are known.
type found struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// bounded is a client that bounds waiting and reading, and follows no redirect with a
// secret.
func bounded(c *http.Client) *http.Client {
	out := http.Client{Timeout: providerFor}
	if c != nil {
		out = *c
	}
	if out.Timeout <= 0 || out.Timeout > providerFor {
		out.Timeout = providerFor
	}
	if out.Transport == nil {
		out.Transport = http.DefaultTransport
	}
	out.Transport = shortAnswers{out.Transport}
	out.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	out.Jar = nil
	return &out
}

type shortAnswers struct{ inner http.RoundTripper }

func (s shortAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.inner.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// get returns the provider, after discovery if needed. It fails with [ErrUnavailable].
func (p *provider) get(ctx context.Context) (*found, error) {
	p.mu.Lock()
	have, wait := p.found, p.again.Sub(p.now())
	p.mu.Unlock()
	switch {
	case have != nil:
		return have, nil
	case wait > 0 && wait <= lastPause: // longer: the clock went back
		return nil, fmt.Errorf("%w: the provider of logins does not answer", ErrUnavailable)
	}
	select {
	case <-p.discovery.DoChan("", func() (any, error) { p.discover(); return nil, nil }):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		return nil, fmt.Errorf("%w: the provider of logins does not answer", ErrUnavailable)
	}
	return p.found, nil
}

func (p *provider) discover() {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), p.client), discoverFor)
	defer cancel()
	have, err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.pause = min(max(2*p.pause, firstPause), lastPause)
		p.again = p.now().Add(p.pause)
		p.log.Warn("the provider of logins cannot be used; no user can log in through it until it can", "issuer", p.issuer, "error", reason(err), "again_in", p.pause)
		return
	}
	p.found, p.pause = have, 0
	p.log.Info("the provider of logins was found", "issuer", p.issuer)
}

// reason is why a request failed, without the provider's response.
func reason(err error) string {
	text := err.Error()
	var request *url.Error
	if !errors.As(err, &request) && !strings.HasPrefix(text, "oidc: ") && !errors.Is(err, ErrInvalid) {
		text, _, _ = strings.Cut(text, ": ") // the response follows it
	}
	return visible.Cut(text, maxReason)
}

func (p *provider) ask(ctx context.Context) (*found, error) {
	op, err := oidc.NewProvider(ctx, p.issuer)
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Keys string   `json:"jwks_uri"`
		Algs []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := op.Claims(&metadata); err != nil {
		return nil, err
	}
	keys := published{oidc.NewRemoteKeySet(ctx, metadata.Keys)}
	have := &found{config: p.config, verifier: oidc.NewVerifier(p.issuer, keys, &oidc.Config{
		ClientID: p.config.ClientID, Now: p.now, SupportedSigningAlgs: asymmetric(metadata.Algs)})}
	have.config.Endpoint = op.Endpoint()
	have.config.Endpoint.AuthStyle = p.style(op)
	for what, where := range map[string]string{"authorization_endpoint": have.config.Endpoint.AuthURL, "token_endpoint": have.config.Endpoint.TokenURL, "jwks_uri": metadata.Keys} {
		if err := checkURL(what, where); err != nil {
			return nil, err
		}
	}
	return have, nil
}

// asymmetric selects, of the algorithms that a provider names, those with which it alone
// can have signed.
func asymmetric(named []string) []string {
	known := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
	named = slices.DeleteFunc(slices.Clone(named), func(alg string) bool { return !slices.Contains(known, alg) })
	return named // if there are none the library uses RS256
}

// published are the provider's keys. The verifier's error does not show whether the keys could
// not be fetched, which proves nothing about a signature. So that is stored in the context if it
// has a place for it.
type published struct{ oidc.KeySet }

// unhad is the context key of that place.
type unhad struct{}

// VerifySignature implements [oidc.KeySet].
func (p published) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := p.KeySet.VerifySignature(ctx, jwt)
	if missing, ok := ctx.Value(unhad{}).(*bool); ok && err != nil {
		*missing = strings.HasPrefix(err.Error(), "fetching keys ") // the library's own words; a test detects a change
	}
	return payload, err
}

// style is how the provider wants the client to authenticate. Without it, the library
// sends a code twice if the first response is an error.
func (p *provider) style(op *oidc.Provider) oauth2.AuthStyle {
	var metadata struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := op.Claims(&metadata); err != nil || p.secret == nil {
		return oauth2.AuthStyleInParams
	}
	if len(metadata.Methods) > 0 && !slices.Contains(metadata.Methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// checkURL refuses an address without TLS that others can eavesdrop on.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !IsLocal(u.Host)) {
		return fmt.Errorf("%w: %s is %q; want an address that begins with https://", ErrInvalid, what, clip(text))
	}
	return nil
}

// attempt is one login in progress, which the browser stores.
type attempt struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Until    time.Time `json:"until"`
	// Confirms is the id of the session that the provider is asked to confirm, "" for
	// a login.
	Confirms string `json:"confirms,omitempty"`
}

// where is the address at which a user logs in at the provider.
func (f *found) where(a attempt, asked ...oauth2.AuthCodeOption) string {
	return f.config.AuthCodeURL(a.State, append(asked, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))...)
}

// errAnswer: the provider's response proves nothing.
var errAnswer = errors.New("the provider's answer proves nothing")

// redeem exchanges a code for claims. It fails with [ErrUnavailable], or for an invalid
// response; errors hold no code and no token.
func (p *provider) redeem(ctx context.Context, f *found, a attempt, code string) (claims, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), providerFor)
	defer cancel()
	config := f.config
	if p.secret != nil {
		secret, err := p.secret(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: the secret of the client cannot be had: %w", ErrUnavailable, err)
		}
		config.ClientSecret = secret
	}
	answer, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && p.refused != nil && (refused.Response.StatusCode == http.StatusUnauthorized || refused.ErrorCode == "invalid_client") {
		p.refused()
	}
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return nil, fmt.Errorf("%w: it refuses the code with status %d, %q", errAnswer, refused.Response.StatusCode, clip(refused.ErrorCode))
	case err != nil: // its text may repeat the response
		return nil, fmt.Errorf("%w: the provider of logins did not answer as it should: %s", ErrUnavailable, reason(err))
	}
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return nil, fmt.Errorf("%w: it has no id_token", errAnswer)
	}
	var missing bool
	token, err := f.verifier.Verify(context.WithValue(ctx, unhad{}, &missing), raw)
	if err != nil && missing {
		return nil, fmt.Errorf("%w: the keys of the provider of logins cannot be had", ErrUnavailable)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", errAnswer, visible.Cut(strings.ReplaceAll(err.Error(), raw, "…"), maxReason))
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return nil, fmt.Errorf("%w: it is about another login", errAnswer)
	}
	all := claims{}
	if err := token.Claims(&all); err != nil {
		return nil, fmt.Errorf("%w: its claims cannot be read", errAnswer)
	}
	if azp, there := all["azp"]; (there || len(token.Audience) > 1) && azp != p.config.ClientID {
		return nil, fmt.Errorf("%w: it is for another program", errAnswer)
	}
	return all, nil
}
