package config

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/yamlfile"
)

// OIDC is how people log in at an OpenID provider. The zero value: they do not.
type OIDC struct {
	// Issuer is the address of the provider, ClientID how it knows readback.
	Issuer, ClientID string
	// SecretEnv or SecretFile is where the client's secret is. Default "": there
	// is none.
	SecretEnv, SecretFile string
	// RedirectURL is where the provider sends people back to. Default
	// /login/callback of the public URL.
	RedirectURL string
	// CAFile has the certificates that the provider's is checked against, as PEM.
	// Default "": the system's.
	CAFile string
	// Scopes are asked for beside openid. Default nil: email and profile.
	Scopes []string
	// Rules say who gets which tenant and role; the first that fits.
	Rules []access.ClaimRule
	// Line is where it stands in the file, 0 when it does not.
	Line int
}

// Sessions are the sessions of people in a browser.
type Sessions struct {
	// KeyEnv or KeyFile is where the key is that cookies are sealed with. Default
	// "": one is made up, and sessions end with the process.
	KeyEnv, KeyFile string
	// Lifetime is how long one lasts, at most a day. Default 0: 8 h.
	Lifetime time.Duration
	// NoTokens says that nobody logs in with a token. Default false.
	NoTokens bool
	// Line is where it stands in the file, 0 when it does not.
	Line int
}

type oidcSettings struct {
	At               yamlfile.Place
	Issuer           yamlfile.Text   `yaml:"issuer"`
	ClientID         yamlfile.Text   `yaml:"client_id"`
	ClientSecretEnv  yamlfile.Text   `yaml:"client_secret_env"`
	ClientSecretFile yamlfile.Text   `yaml:"client_secret_file"`
	RedirectURL      yamlfile.Text   `yaml:"redirect_url"`
	CAFile           yamlfile.Text   `yaml:"ca_file"`
	Scopes           []yamlfile.Text `yaml:"scopes"`
	Rules            []struct {
		At     yamlfile.Place
		Claim  yamlfile.Text `yaml:"claim"`
		Value  yamlfile.Text `yaml:"value"`
		Tenant yamlfile.Text `yaml:"tenant"`
		Role   yamlfile.Text `yaml:"role"`
	} `yaml:"rules"`
}

type sessionSettings struct {
	At       yamlfile.Place
	KeyEnv   yamlfile.Text `yaml:"key_env"`
	KeyFile  yamlfile.Text `yaml:"key_file"`
	Lifetime age           `yaml:"lifetime"`
	Tokens   *bool         `yaml:"tokens"`
}

// checkOIDC checks what the file says of logins, when the rest of the server is
// known.
func (r *reader) checkOIDC(s *oidcSettings, publicURL, path string, tenant string) OIDC {
	if s == nil {
		return OIDC{}
	}
	o := OIDC{
		Issuer: s.Issuer.Value, ClientID: s.ClientID.Value, SecretEnv: s.ClientSecretEnv.Value, SecretFile: inPlace(path, s.ClientSecretFile.Value),
		RedirectURL: s.RedirectURL.Value, CAFile: inPlace(path, s.CAFile.Value), Line: s.At.Line,
	}
	for _, each := range s.Scopes {
		o.Scopes = append(o.Scopes, each.Value)
	}
	if o.RedirectURL == "" && publicURL != "" {
		o.RedirectURL = publicURL + access.CallbackPath
	}
	for _, each := range s.Rules {
		rule := access.ClaimRule{Claim: each.Claim.Value, Value: each.Value.Value, Tenant: cmp.Or(each.Tenant.Value, tenant), Role: engine.Role(each.Role.Value)}
		if err := rule.Check(); err != nil {
			r.At(each.At, "%s", wanting(err))
		}
		o.Rules = append(o.Rules, rule)
	}
	r.oneOf(s.ClientSecretEnv, s.ClientSecretFile)
	switch {
	case o.Issuer == "":
		r.At(s.At, "has no issuer; want the address of the OpenID provider, as it calls itself")
	case o.ClientID == "":
		r.At(s.At, "has no client_id; want how the provider knows readback")
	case len(o.Rules) == 0:
		r.At(s.At, "has no rules; want at least one: who fits none is not let in")
	case o.RedirectURL == "":
		r.At(s.At, "has no redirect_url, and server.public_url is missing too; want one of them")
	default:
		if err := access.CheckIssuer(o.Issuer); err != nil {
			r.At(s.Issuer.Place, "%s", wanting(err))
		}
		if err := access.CheckRedirect(o.RedirectURL); err != nil {
			r.At(cmp.Or(s.RedirectURL.Place, s.At), "%s", wanting(err))
		}
	}
	return o
}

// wanting is what an error of package access says, without its first word.
func wanting(err error) string {
	return strings.TrimPrefix(err.Error(), access.ErrInvalid.Error()+": ")
}

// oneOf refuses a secret that is in two places.
func (r *reader) oneOf(env, file yamlfile.Text) {
	if env.Value != "" && file.Value != "" {
		r.At(file.Place, "is given beside %s; want one of them", env.Field)
	}
}

func (r *reader) checkSessions(s *sessionSettings, path string) Sessions {
	if s == nil {
		return Sessions{}
	}
	r.oneOf(s.KeyEnv, s.KeyFile)
	if time.Duration(s.Lifetime) > access.MaxSession {
		r.At(s.At, "lifetime is %s; want at most %s: who may no longer is out then", time.Duration(s.Lifetime), access.MaxSession)
	}
	return Sessions{KeyEnv: s.KeyEnv.Value, KeyFile: inPlace(path, s.KeyFile.Value), Lifetime: time.Duration(s.Lifetime),
		NoTokens: s.Tokens != nil && !*s.Tokens, Line: s.At.Line}
}

// Logins is how people log in: what the configuration says, with the secrets
// from where it says. Tokens and Logger are left to the caller. It fails with
// [InvalidError].
func (c Config) Logins(env func(string) string) (access.LoginOptions, error) {
	o, s := c.Server.OIDC, c.Server.Sessions
	out := access.LoginOptions{Issuer: o.Issuer, ClientID: o.ClientID, RedirectURL: o.RedirectURL, Scopes: o.Scopes, Rules: o.Rules,
		SessionTTL: s.Lifetime, NoTokens: s.NoTokens}
	var problems []Problem
	wrong := func(line int, field string, err error) {
		if err != nil {
			problems = append(problems, Problem{Line: line, Field: field, Problem: err.Error()})
		}
	}
	dir := filepath.Dir(c.Path)
	var err error
	out.Secret, err = secretFrom(source{asVariable: "client_secret_env", asFile: "client_secret_file", variable: o.SecretEnv, file: o.SecretFile}, dir, env)
	wrong(o.Line, "server.oidc", err)
	key, err := secretFrom(source{asVariable: "key_env", asFile: "key_file", variable: s.KeyEnv, file: s.KeyFile}, dir, env)
	wrong(s.Line, "server.sessions", err)
	if out.Key = []byte(key); err == nil && key != "" && len(key) < access.MinKey {
		wrong(s.Line, "server.sessions", fmt.Errorf("the key has %d bytes; want at least %d that nobody guesses, such as `openssl rand -hex 32` prints", len(key), access.MinKey))
	}
	out.Client, err = trusting(o.CAFile)
	wrong(o.Line, "server.oidc", err)
	return out, invalid(c.Path, problems)
}

// secretFrom is a secret that is kept elsewhere, "" where none is.
func secretFrom(s source, dir string, env func(string) string) (string, error) {
	fetch, err := s.openIfGiven(dir, env)
	if err != nil || fetch == nil {
		return "", err
	}
	return fetch(context.Background())
}

// trusting is a client that trusts these certificates alone; nil for the
// system's.
func trusting(file string) (*http.Client, error) {
	if file == "" {
		return nil, nil
	}
	text, err := yamlfile.ReadBounded(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate; want PEM", file)
	}
	plain, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("ca_file: cannot be used in this program")
	}
	own := plain.Clone()
	own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: own}, nil
}
