package rest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/egress"
)

const (
	// maxToken limits the answer of a token endpoint in bytes.
	maxToken = 64 << 10
	// tokenTimeout bounds the fetch of a token where the context has no
	// deadline.
	tokenTimeout = 30 * time.Second
)

// tokens fetches access tokens by a grant of OAuth 2.0, or opens sessions, and keeps the last one.
type tokens struct {
	c      *Connector
	secret string // the name of the client's
	// refresh is the name of the refresh token, "" for the grant of client credentials.
	refresh string
	rotates bool // it gives the next one
	// claims are what a login states that is signed with the secret, a private key; nil for another grant.
	claims map[string]any
	keyID  string // of that key, "" if it is not declared
	config clientcredentials.Config
	http   *http.Client
	// session is a login by a call of its own, nil for a grant.
	session *session
	// fetching is held by the goroutine that reads last or fetches a new token, so that concurrent
	// requests fetch one token. A wait for it can be cancelled by a context.
	fetching chan struct{}
	last     *token
}

// token is one access token, or one session.
type token struct {
	value  string
	cookie *http.Cookie // which has the value; nil: it goes into a header
	until  time.Time    // zero: until it is refused
}

// expiryMargin is how long before its end a token is no longer used: it must
// not end on the way.
const expiryMargin = 30 * time.Second

func (c *Connector) newTokens(a *auth, transport http.RoundTripper) (*tokens, error) {
	if a.session != nil {
		return &tokens{c: c, session: a.session, fetching: make(chan struct{}, 1)}, nil
	}
	text, _, err := a.tokenURL.expand(c.given(), false)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err == nil && strings.HasPrefix(text, "/") {
		u, err = c.url(text, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("auth.oauth2.token_url: %w", err)
	}
	if err := c.reachable(u); err != nil {
		return nil, fmt.Errorf("auth.oauth2.token_url: %w", err)
	}
	id, _, err := a.clientID.expand(c.given(), false)
	if err != nil {
		return nil, err
	}
	style := oauth2.AuthStyleInHeader
	if a.inParams {
		style = oauth2.AuthStyleInParams
	}
	claims, err := c.claims(a, id, u.String())
	if err != nil {
		return nil, err
	}
	keyID := ""
	if a.keyID != nil {
		if keyID, _, err = a.keyID.expand(c.given(), false); err != nil {
			return nil, err
		}
	}
	return &tokens{
		c:      c,
		secret: a.secret, refresh: a.refresh, rotates: a.rotates, claims: claims, keyID: keyID,
		config: clientcredentials.Config{ClientID: id, TokenURL: u.String(), Scopes: a.scopes, AuthStyle: style},
		http: &http.Client{
			Transport:     brief{transport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		fetching: make(chan struct{}, 1),
	}, nil
}

// get is a token that can be used now.
func (t *tokens) get(ctx context.Context) (*token, error) {
	select {
	case t.fetching <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.fetching }()
	if t.last != nil && (t.last.until.IsZero() || time.Now().Before(t.last.until)) {
		return t.last, nil
	}
	fresh, err := t.fetch(ctx)
	t.last = fresh
	return fresh, err
}

func (t *tokens) fetch(ctx context.Context) (*token, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.session != nil {
		return t.c.logIn(ctx, t.session)
	}
	config := t.config
	var err error
	if t.claims != nil {
		config, err = t.signed(ctx)
	} else {
		config.ClientSecret, err = t.c.fetchSecret(ctx, t.secret)
		// As it is in the header of the call for a token.
		t.c.masks.Add(base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(config.ClientID) + ":" + url.QueryEscape(config.ClientSecret))))
	}
	if err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		bounded, cancel := context.WithTimeout(ctx, tokenTimeout)
		defer cancel()
		ctx = bounded
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.http)
	var got *oauth2.Token
	if t.refresh == "" {
		if got, err = config.Token(ctx); err != nil {
			err = tokenError(err)
		}
	} else {
		got, err = t.refreshed(ctx, config.ClientSecret)
	}
	if err != nil {
		return nil, err
	}
	if len(got.AccessToken) > maxHeader || strings.ContainsFunc(got.AccessToken, isControl) {
		return nil, errors.New("the token is too long, or has a control character")
	}
	t.c.masks.Add(got.AccessToken)
	fresh := &token{value: got.AccessToken}
	if !got.Expiry.IsZero() {
		fresh.until = got.Expiry.Add(-expiryMargin)
	}
	return fresh, nil
}

// refreshed fetches a token by the refresh token. One that replaces it is kept before the token is used.
func (t *tokens) refreshed(ctx context.Context, secret string) (got *oauth2.Token, err error) {
	if t.rotates {
		err = t.c.rotate[t.refresh](ctx, func(refresh string) (string, error) {
			if err := t.c.usable(t.refresh, refresh); err != nil {
				return "", err
			}
			if got, err = t.refreshedBy(ctx, secret, refresh); err != nil {
				return "", err
			}
			return got.RefreshToken, t.c.usable(t.refresh, got.RefreshToken)
		})
		return got, err
	}
	refresh, err := t.c.fetchSecret(ctx, t.refresh)
	if err != nil {
		return nil, err
	}
	if got, err = t.refreshedBy(ctx, secret, refresh); err == nil && got.RefreshToken != refresh {
		t.c.masks.Add(got.RefreshToken)
		return nil, connectors.LoginRefused("", errors.New("the token endpoint replaced the refresh token, which is kept nowhere here; want rotates: true in the declaration, and a new refresh token"))
	}
	return got, err
}

func (t *tokens) refreshedBy(ctx context.Context, secret, refresh string) (*oauth2.Token, error) {
	config := oauth2.Config{ClientID: t.config.ClientID, ClientSecret: secret, Scopes: t.config.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: t.config.TokenURL, AuthStyle: t.config.AuthStyle}}
	got, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return nil, tokenError(err)
	}
	return got, nil
}

// tokenError is the part of a failure that may be shown: the library's own error repeats the
// answer, and an answer can repeat the secret.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		status := refused.Response.StatusCode
		err := fmt.Errorf("the token endpoint answered %d", status)
		if status == http.StatusOK {
			err = errors.New("the token endpoint answered 200 with an error")
		}
		if status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusOK {
			return connectors.LoginRefused(strconv.Itoa(status), err)
		}
		return err
	}
	var outside *egress.Error
	if errors.As(err, &outside) {
		return fmt.Errorf("the token endpoint: %w", outside)
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return fmt.Errorf("the token endpoint: %w", known)
		}
	}
	return errors.New("the token endpoint did not answer with a token")
}

// drop forgets a token that was refused, unless there is a newer one already.
func (t *tokens) drop(ctx context.Context, used *token) {
	select {
	case t.fetching <- struct{}{}:
	case <-ctx.Done():
		return // the next send is refused as well, and drops it
	}
	if t.last == used {
		t.last = nil
	}
	<-t.fetching
}

// brief limits the answers of a transport.
type brief struct{ next http.RoundTripper }

func (b brief) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxToken), res.Body}
	}
	return res, err
}
