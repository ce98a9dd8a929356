package config

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/yamlfile"
)

// OIDC configures logins at an OpenID provider. The zero value: there are none.
type OIDC struct {
	// Issuer is the address of the provider, ClientID our client ID there.
	Issuer, ClientID string
	// Secret is the source of the client's secret. Default: there is none.
	Secret Secret
	// RedirectURL is where the provider redirects users. Default /login/callback of the
	// public URL.
	RedirectURL string
	// CAFile has the certificates that verify the provider's, as PEM. Default "": the
	// system's.
	CAFile string
	// Scopes are requested beside openid. Default nil: email and profile.
	Scopes []string
	// Rules map users to tenants and roles; the first that matches.
	Rules []access.ClaimRule
	// Recheck is after how long the provider must confirm a session. Default 0: 10 min.
	Recheck time.Duration
	// StepUp is what a login must have for decisions. Default nothing.
	StepUp access.StepUp
	// Line is its line in the file, 0 if it is not set.
	Line int
}

// Sessions configures browser sessions.
type Sessions struct {
	// Key is the source of the key that seals cookies. Default: a random one, and
	// sessions end with the process.
	Key Secret
	// Lifetime is the lifetime of a session, at most a day. Default 0: 8 h.
	Lifetime time.Duration
	// NoTokens forbids logins with a token. Default false.
	NoTokens bool
	// Line is its line in the file, 0 if it is not set.
	Line int
}

type oidcSettings struct {
	At               yamlfile.Place
	Issuer           yamlfile.Text   `yaml:"issuer"`
	ClientID         yamlfile.Text   `yaml:"client_id"`
	ClientSecretEnv  yamlfile.Text   `yaml:"client_secret_env"`
	ClientSecretFile yamlfile.Text   `yaml:"client_secret_file"`
	ClientSecretArgv argv            `yaml:"client_secret_command"`
	RedirectURL      yamlfile.Text   `yaml:"redirect_url"`
	CAFile           yamlfile.Text   `yaml:"ca_file"`
	Scopes           []yamlfile.Text `yaml:"scopes"`
	Recheck          age             `yaml:"recheck"`
	Decisions        *struct {
		At  yamlfile.Place
		ACR []yamlfile.Text `yaml:"acr"`
		AMR []yamlfile.Text `yaml:"amr"`
	} `yaml:"decisions"`
	Rules []struct {
		At     yamlfile.Place
		Claim  yamlfile.Text `yaml:"claim"`
		Value  yamlfile.Text `yaml:"value"`
		Tenant yamlfile.Text `yaml:"tenant"`
		Role   yamlfile.Text `yaml:"role"`
	} `yaml:"rules"`
}

type sessionSettings struct {
	At       yamlfile.Place
	Key      keySettings `yaml:",inline"`
	Lifetime age         `yaml:"lifetime"`
	Tokens   *bool       `yaml:"tokens"`
}

// checkOIDC checks the settings of logins, when the rest of the server is known.
func (r *reader) checkOIDC(s *oidcSettings, publicURL, path string, tenant string) OIDC {
	if s == nil {
		return OIDC{}
	}
	o := OIDC{
		Issuer: s.Issuer.Value, ClientID: s.ClientID.Value, Secret: Secret{s.ClientSecretEnv.Value, s.ClientSecretFile.Value, s.ClientSecretArgv},
		RedirectURL: s.RedirectURL.Value, CAFile: inPlace(path, s.CAFile.Value), Line: s.At.Line,
	}
	o.Scopes = yamlfile.Values(s.Scopes)
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
	r.oneOf(s.ClientSecretEnv, s.ClientSecretFile, s.ClientSecretArgv)
	o.Recheck = time.Duration(s.Recheck)
	if o.Recheck != 0 && (o.Recheck < access.MinRecheck || o.Recheck > access.MaxSession) {
		r.At(s.At, "recheck is %s; want %s to %s: a session ends so long after the account does", o.Recheck, access.MinRecheck, access.MaxSession)
	}
	if d := s.Decisions; d != nil {
		o.StepUp = access.StepUp{ACR: yamlfile.Values(d.ACR), AMR: yamlfile.Values(d.AMR)}
		if len(d.ACR)+len(d.AMR) == 0 || slices.Contains(o.StepUp.ACR, "") || slices.Contains(o.StepUp.AMR, "") {
			r.At(d.At, "want acr, the classes of authentication, or amr, its methods, of which the provider must name one, such as amr: [mfa]")
		}
	}
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

// wanting is an error of package access, without its first word.
func wanting(err error) string {
	return strings.TrimPrefix(err.Error(), access.ErrInvalid.Error()+": ")
}

// oneOf refuses a secret with two sources.
func (r *reader) oneOf(env, file yamlfile.Text, command argv) {
	switch {
	case env.Value != "" && file.Value != "":
		r.At(file.Place, "is given beside %s; want one of them", env.Field)
	case len(command) > 0 && env.Value+file.Value != "":
		r.At(cmp.Or(env.Place, file.Place), "is given beside a command; want one of them")
	}
}

func (r *reader) checkSessions(s *sessionSettings, path string) Sessions {
	if s == nil {
		return Sessions{}
	}
	if time.Duration(s.Lifetime) > access.MaxSession {
		r.At(s.At, "lifetime is %s; want at most %s: who may no longer is out then", time.Duration(s.Lifetime), access.MaxSession)
	}
	return Sessions{Key: s.Key.secret(r), Lifetime: time.Duration(s.Lifetime),
		NoTokens: s.Tokens != nil && !*s.Tokens, Line: s.At.Line}
}

// Logins are the configured logins, with their secrets. Tokens and Logger are left to the
// caller. It fails with [InvalidError].
func (c Config) Logins(env func(string) string) (access.LoginOptions, error) {
	o, s := c.Server.OIDC, c.Server.Sessions
	out := access.LoginOptions{Issuer: o.Issuer, ClientID: o.ClientID, RedirectURL: o.RedirectURL, Scopes: o.Scopes, Rules: o.Rules,
		Recheck: o.Recheck, StepUp: o.StepUp, SessionTTL: s.Lifetime, NoTokens: s.NoTokens}
	var problems []Problem
	wrong := func(line int, field string, err error) {
		if err != nil {
			problems = append(problems, Problem{Line: line, Field: field, Problem: err.Error()})
		}
	}
	from := c.origin(env)
	var err error
	out.Secret, err = o.Secret.as("client_secret").openIfGiven(from)
	out.SecretRefused = from.refused()
	wrong(o.Line, "server.oidc", err)
	fetch, err := s.Key.as("key").openIfGiven(from)
	key := ""
	if err == nil && fetch != nil {
		key, err = fetch(context.Background())
		out.KeyNow = func(ctx context.Context) ([]byte, error) {
			key, err := fetch(ctx)
			return []byte(key), err
		}
	}
	wrong(s.Line, "server.sessions", err)
	if out.Key = []byte(key); err == nil && key != "" && len(key) < access.MinKey {
		wrong(s.Line, "server.sessions", fmt.Errorf("the key has %d bytes; want at least %d that cannot be guessed, such as `openssl rand -hex 32` prints", len(key), access.MinKey))
	}
	out.Client, err = trusting(o.CAFile)
	wrong(o.Line, "server.oidc", err)
	return out, invalid(c.Path, problems)
}

// trusting is a client that trusts these certificates alone; nil for the system's.
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
