package rest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// login is how some requests of an account authenticate.
type login struct {
	auth   *auth
	tokens *tokens        // nil: it needs none
	name   string         // whom it logs in, "" where only the secret says so
	used   declared.Masks // what its requests lately carried
}

func (c *Connector) newLogin(a *auth, transport http.RoundTripper) (*login, error) {
	by := &login{auth: a}
	for _, p := range a.names() {
		name, _, err := p.expand(c.given(), false)
		if err != nil {
			return nil, err
		}
		by.name += name + "\n"
	}
	var err error
	if a.scheme == "oauth2" || a.session != nil {
		by.tokens, err = c.newTokens(a, transport)
	}
	return by, err
}

// heed forgets a token, or a session, that was refused.
func (by *login) heed(ctx context.Context, used *token, status int, err error) {
	if used != nil && (status == http.StatusUnauthorized || connectors.FateOf(err) == connectors.FateLogin) {
		by.tokens.drop(ctx, used)
	}
}

// own are the names of the secrets by which the login differs from others: that of an app whose user has
// a refresh token is the same for all users.
func (a *auth) own() []string {
	switch {
	case a.session != nil:
		return a.session.secrets
	case a.refresh != "":
		return []string{a.refresh}
	}
	return []string{a.secret}
}

// names are whom it logs in, as far as the declaration shows it.
func (a *auth) names() []*pattern {
	switch {
	case a.refresh != "":
		return nil
	case a.username != nil:
		return []*pattern{a.username}
	case a.subject != nil:
		return []*pattern{a.clientID, a.subject}
	case a.clientID != nil:
		return []*pattern{a.clientID}
	}
	return nil
}

// independence is by which way the reads of a kind were made. What is declared as two logins is one
// where both are configured with one secret, or one name. What was lately used counts as well as what
// would be used now: secrets are exchanged, and the write may have been sent before.
func (c *Connector) independence(ctx context.Context, k *kind) connectors.Independence {
	w, r := c.writes, c.reads
	if !k.otherLogin || w.name != "" && strings.EqualFold(w.name, r.name) {
		return connectors.OwnCall
	}
	for _, by := range []*login{w, r} {
		for _, name := range by.auth.own() {
			secret, err := c.fetchSecret(ctx, name)
			if err != nil || len(secret) < declared.MinMask { // what cannot be compared shows nothing
				return connectors.OwnCall
			}
			by.used.Add(secret)
			if by.auth.username != nil {
				by.used.Add(base64.StdEncoding.EncodeToString([]byte(strings.TrimSuffix(by.name, "\n") + ":" + secret)))
			}
		}
	}
	if w.used.Shows(&r.used) || r.used.Shows(&w.used) {
		return connectors.OwnCall
	}
	return connectors.OtherLogin
}

// mark stands for a secret in a path until the request is made: what is built, compared and said before
// that has no secret. No value holds its control characters, so that none is taken for one.
const mark = "\x01"

// pathSecret reads {secret.token} in a path.
func (l *loader) pathSecret(h *hole, at yamlfile.Place) {
	name := l.secretName(yamlfile.Text{Value: h.path[1], Place: at}, at)
	if name != "" && !slices.Contains(l.d.pathSecrets, name) {
		l.d.pathSecrets = append(l.d.pathSecrets, name)
	}
}

// withSecrets is an address with the secrets of its path.
func (c *Connector) withSecrets(ctx context.Context, by *login, u *url.URL) (*url.URL, error) {
	path := u.EscapedPath()
	if !strings.Contains(u.Path, mark) {
		return u, nil
	}
	for _, name := range c.d.pathSecrets {
		marked := url.PathEscape(mark + name + mark)
		if !strings.Contains(path, marked) {
			continue
		}
		secret, err := c.fetchSecret(ctx, name)
		if err != nil {
			return nil, err
		}
		by.used.Add(secret)
		if strings.ContainsAny(secret, "/\\") || secret == "." || secret == ".." {
			return nil, fmt.Errorf("%w: %s has a slash or dots, which would make the path another one", errCredentials, name)
		}
		path = strings.ReplaceAll(path, marked, url.PathEscape(secret))
	}
	whole := *u
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("%w: the path cannot be made", errCredentials)
	}
	whole.Path, whole.RawPath = plain, path
	return &whole, nil
}
