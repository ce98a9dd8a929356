package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// flaky is a ledger's notes that can fail, and count who asks.
type flaky struct {
	inner       ledger.Notes
	down, hangs bool
	asked       int
}

func (f *flaky) Notes(ctx context.Context, prefix string) ([]ledger.Note, time.Time, error) {
	f.asked++
	switch {
	case f.hangs:
		<-ctx.Done()
		return nil, time.Time{}, ctx.Err()
	case f.down:
		return nil, time.Time{}, ledger.ErrUnavailable
	}
	return f.inner.Notes(ctx, prefix)
}

func newFlaky() *flaky { return &flaky{inner: ledger.NewMemory()} }

func create(t *testing.T, tokens *access.Tokens, n access.NewToken) (access.Token, string) {
	t.Helper()
	made, secret, err := tokens.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return made, secret
}

var bot = access.NewToken{Tenant: "acme", Name: "billing bot", Role: engine.RoleAgent, TTL: time.Hour, By: "alice"}

func with(secret string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/writes", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	return r
}

func resolve(t *testing.T, tokens access.Resolver, secret string, want error) access.Identity {
	t.Helper()
	who, err := tokens.Resolve(with(secret))
	if !errors.Is(err, want) || (want == nil) != (err == nil) {
		t.Fatalf("got %v, %v; want error %v", who, err, want)
	}
	return who
}

func TestTokenIsKnown(t *testing.T) {
	tokens := access.NewTokens(newFlaky(), nil)
	made, secret := create(t, tokens, bot)
	want := access.Identity{Tenant: "acme", Name: "billing bot", Role: engine.RoleAgent, Via: "token", ID: made.ID}
	if diff := cmp.Diff(want, resolve(t, tokens, secret, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestRevocationIsSeenInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		here, there := access.NewTokens(notes, nil), access.NewTokens(notes, nil)
		made, secret := create(t, here, bot)
		resolve(t, here, secret, nil)
		resolve(t, there, secret, nil)
		if err := here.Revoke(t.Context(), "acme", made.ID, "alice"); err != nil {
			t.Fatal(err)
		}
		resolve(t, here, secret, access.ErrUnknown)
		time.Sleep(5 * time.Second)
		resolve(t, there, secret, access.ErrUnknown)
	})
}

func (f *flaky) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if f.down || f.hangs {
		return ledger.Note{}, ledger.ErrUnavailable
	}
	return f.inner.SetNote(ctx, n)
}
