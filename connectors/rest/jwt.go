package rest

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	// statementLasts is how long a signed statement is valid: Salesforce takes three minutes at the most.
	statementLasts = 3 * time.Minute
	// clockSkew is how far our clock may be ahead of that of the token endpoint, which refuses a
	// statement that is not valid yet.
	clockSkew = 10 * time.Second
	// maxKey bounds a private key in bytes: RSA of 8192 bits is a tenth of it.
	maxKey = 64 << 10
)

// claims are those of a login that is signed, without its times; nil for other grants.
func (c *Connector) claims(a *auth, issuer, audience string) (map[string]any, error) {
	if !a.signs {
		return nil, nil
	}
	all := map[string]any{"iss": issuer, "aud": audience}
	for name, p := range map[string]*pattern{"sub": a.subject, "aud": a.audience} {
		if p == nil {
			continue
		}
		text, _, err := p.expand(c.given(), false)
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	if len(a.scopes) > 0 {
		all["scope"] = strings.Join(a.scopes, " ")
	}
	return all, nil
}

// signed is the request of a token by a statement that is signed now (RFC 7523).
func (t *tokens) signed(ctx context.Context) (clientcredentials.Config, error) {
	key, err := t.c.privateKey(ctx, t.secret)
	if err != nil {
		return clientcredentials.Config{}, err
	}
	claims, now := maps.Clone(t.claims), time.Now()
	claims["iat"], claims["exp"] = now.Add(-clockSkew).Unix(), now.Add(statementLasts-clockSkew).Unix()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if t.keyID != "" {
		options = options.WithHeader("kid", t.keyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
	if err != nil {
		return clientcredentials.Config{}, fmt.Errorf("%w: %s cannot sign with RS256", errCredentials, t.secret)
	}
	statement, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return clientcredentials.Config{}, fmt.Errorf("%w: %s cannot sign with RS256", errCredentials, t.secret)
	}
	t.c.masks.Add(statement)
	return clientcredentials.Config{TokenURL: t.config.TokenURL, AuthStyle: oauth2.AuthStyleInParams, EndpointParams: url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {statement}}}, nil
}

// privateKey fetches a private RSA key. It has several lines, which no other secret may have. Errors
// do not contain it.
func (c *Connector) privateKey(ctx context.Context, name string) (*rsa.PrivateKey, error) {
	text, err := c.secrets[name](ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCredentials, name, err)
	}
	c.masks.Add(text)
	if block, _ := pem.Decode([]byte(text)); block != nil && len(text) <= maxKey {
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		}
		if private, ok := key.(*rsa.PrivateKey); ok && err == nil {
			return private, nil
		}
	}
	return nil, fmt.Errorf("%w: %s is no private RSA key; want PEM, which begins with -----BEGIN PRIVATE KEY-----, with its line ends", errCredentials, name)
}
