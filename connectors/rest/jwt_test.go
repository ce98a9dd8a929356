package rest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
)

const bySignature = `oauth2: {grant: jwt_bearer, token_url: /token, client_id: "{param.shop}@example", secret: token, scopes: [a, b]`

// signedItems is a connector of items whose secret is a text that a test gives.
func signedItems(t *testing.T, auth, secret string, h http.HandlerFunc) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(withAuth(auth)), "items.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Join(d.Explained("item"), "\n"); !strings.Contains(words, "The login is a statement for {param.shop}@example, signed with the private key token and valid for 3m0s.") {
		t.Errorf("the login is not explained: %s", words)
	}
	c, err := rest.New(d, rest.Options{Transport: wire.Transport(h, nil),
		Secrets: map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return secret, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pemOf(t *testing.T, kind string, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if rsaKey, ok := key.(*rsa.PrivateKey); ok && kind == "RSA PRIVATE KEY" {
		der, err = x509.MarshalPKCS1PrivateKey(rsaKey), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

func signingKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestASignedLogin(t *testing.T) {
	key := signingKey(t)
	for name, tt := range map[string]struct {
		kind, more, subject string
		audience            any
	}{
		"PKCS8":              {"PRIVATE KEY", "}", "", "http://127.0.0.1:1/api/token"},
		"PKCS1, for another": {"RSA PRIVATE KEY", `, subject: "{param.shop}@users.example", audience: https://aud.example}`, "main@users.example", "https://aud.example"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, text, statement := &tokenServer{expires: 3600}, pemOf(t, tt.kind, key), ""
				lost := false
				c := signedItems(t, bySignature+tt.more, text, func(rw http.ResponseWriter, r *http.Request) {
					d.serve(rw, r)
					if r.URL.Path == "/api/token" && lost {
						lost = false
						panic(http.ErrAbortHandler)
					}
				})
				write := func() error {
					_, err := c.Write(t.Context(), itemRequest(intent.Create))
					return err
				}
				lost = true
				if err := write(); connectors.FateOf(err) != connectors.FateNotSent || len(d.writes) > 0 {
					t.Errorf("a token that was lost on the way: %v, %d writes; want nothing sent", err, len(d.writes))
				}
				if err := write(); err != nil {
					t.Fatal(err)
				}
				form, _ := url.ParseQuery(strings.TrimSpace(d.asked))
				statement = form.Get("assertion")
				if form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(form) != 2 {
					t.Errorf("asked for a token with %q", d.asked)
				}
				signed, err := jwt.ParseSigned(statement, []jose.SignatureAlgorithm{jose.RS256})
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]any{}
				if err := signed.Claims(&key.PublicKey, &got); err != nil {
					t.Fatal(err)
				}
				now := float64(time.Now().Unix())
				want := map[string]any{"iss": "main@example", "aud": tt.audience, "scope": "a b", "iat": now - 10, "exp": now + 170}
				if tt.subject != "" {
					want["sub"] = tt.subject
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if masked := c.Mask(text + " " + statement); strings.Contains(masked, statement) || strings.Contains(masked, "PRIVATE") {
					t.Errorf("the key or what it signed is shown: %s", masked)
				}

				time.Sleep(time.Hour) // fake
				if err := write(); err != nil || d.tokens != 3 {
					t.Errorf("a token that ended: %v, %d tokens; want a fresh one", err, d.tokens)
				}
				d.valid = "revoked"
				if err := write(); connectors.FateOf(err) != connectors.FateLogin || len(d.writes) != 3 {
					t.Errorf("a token that is refused: %v, %d sends; want a refused login after one more", err, len(d.writes))
				}
				if err := write(); err != nil || d.tokens != 4 {
					t.Errorf("the next send: %v, %d tokens; want a fresh one", err, d.tokens)
				}
			})
		})
	}
}

func TestAKeyThatCannotSign(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"another kind": pemOf(t, "PRIVATE KEY", curve), "no PEM": "hunter2hunter2", "empty": "",
		"no key": "-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----",
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := signedItems(t, bySignature+"}", text, func(_ http.ResponseWriter, r *http.Request) {
				asked++
				_, _ = io.Copy(io.Discard, r.Body)
			})
			_, err := c.Write(t.Context(), itemRequest(intent.Create))
			if connectors.FateOf(err) != connectors.FateNotSent || asked > 0 || !strings.Contains(fmt.Sprint(err), "token is no private RSA key; want PEM") {
				t.Errorf("got %v after %d calls; want nothing sent, and what a key is", err, asked)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") || strings.Contains(fmt.Sprint(err), "aHVudGVyMg") {
				t.Errorf("the key is in the error: %v", err)
			}
		})
	}
}
