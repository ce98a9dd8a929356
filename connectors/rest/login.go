package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/yamlfile"
)

// login is how some requests of an account authenticate.
type login struct {
	auth   *auth
	tokens *tokens // nil: it needs none
}

func (c *Connector) newLogin(a *auth, transport http.RoundTripper) (*login, error) {
	by := &login{auth: a}
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
func (c *Connector) withSecrets(ctx context.Context, u *url.URL) (*url.URL, error) {
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
