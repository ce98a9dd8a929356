package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// flaky are a ledger's notes that can fail, and count calls.
type flaky struct {
	ledger.Documents

	mu          sync.Mutex
	down, hangs bool
	asked       int
}

func newFlaky() *flaky { return &flaky{Documents: ledger.NewMemory()} }

// is sets whether the ledger fails ("down"), hangs ("hangs"), or works ("").
func (f *flaky) is(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.hangs = how == "down", how == "hangs"
}

func (f *flaky) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *flaky) fails(ctx context.Context) error {
	f.mu.Lock()
	f.asked++
	down, hangs := f.down, f.hangs
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if down {
		return ledger.ErrUnavailable
	}
	return nil
}

func (f *flaky) Notes(ctx context.Context, prefix string) ([]ledger.Note, time.Time, error) {
	if err := f.fails(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return f.Documents.Notes(ctx, prefix)
}

func (f *flaky) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if err := f.fails(ctx); err != nil {
		return ledger.Note{}, err
	}
	return f.Documents.SetNote(ctx, n)
}

var bot = access.NewToken{Tenant: "acme", Name: "billing bot", Role: engine.RoleAgent, TTL: time.Hour, By: "alice"}

// but is bot with something changed.
func but(change func(*access.NewToken)) access.NewToken {
	n := bot
	change(&n)
	return n
}

func create(t *testing.T, tokens *access.Tokens, n access.NewToken) (access.Token, string) {
	t.Helper()
	made, secret, err := tokens.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return made, secret
}

func with(secret string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/writes", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	return r
}

// resolve expects an error of this kind, or none.
func resolve(t *testing.T, who access.Resolver, r *http.Request, want error) access.Identity {
	t.Helper()
	got, err := who.Resolve(r)
	if !errors.Is(err, want) {
		t.Helper()
		t.Fatalf("got %+v, %v; want %v", got, err, want)
	}
	if err != nil && got != (access.Identity{}) {
		t.Errorf("with the error %v comes %+v; want no identity", err, got)
	}
	return got
}

func TestCreate(t *testing.T) {
	tokens := access.NewTokens(newFlaky(), nil)
	for name, c := range map[string]struct {
		n      access.NewToken
		wrong  string // what the error names; "" for none
		reason string
	}{
		"as it should be": {bot, "", "everything is there"},
		"no time":         {but(func(n *access.NewToken) { n.TTL = 0 }), "", "the default is 90 days"},
		"the longest":     {but(func(n *access.NewToken) { n.TTL = access.MaxTTL }), "", "400 days are allowed"},
		"too long":        {but(func(n *access.NewToken) { n.TTL = access.MaxTTL + 1 }), "ttl", "none is good for ever"},
		"before now":      {but(func(n *access.NewToken) { n.TTL = -time.Hour }), "ttl", "it would never be good"},
		"too short":       {but(func(n *access.NewToken) { n.TTL = time.Second }), "ttl", "it would be gone before it is used"},
		"no tenant":       {but(func(n *access.NewToken) { n.Tenant = "" }), "tenant", "every caller has a tenant"},
		"NUL in tenant":   {but(func(n *access.NewToken) { n.Tenant = "ac\x00me" }), "tenant", "some ledgers cut it off there"},
		"long tenant":     {but(func(n *access.NewToken) { n.Tenant = strings.Repeat("a", 256) }), "tenant", "the ledger has no such names"},
		"broken tenant":   {but(func(n *access.NewToken) { n.Tenant = "a\xff" }), "tenant", "it is not UTF-8"},
		"no name":         {but(func(n *access.NewToken) { n.Name = " " }), "name", "a reviewer has a name"},
		"padded name":     {but(func(n *access.NewToken) { n.Name = "bob " }), "name", "it would be read as bob"},
		"unseen in name":  {but(func(n *access.NewToken) { n.Name = "bo\u200bb" }), "name", "it would be read as bob"},
		"turned name":     {but(func(n *access.NewToken) { n.Name = "bob\u202e" }), "name", "it reverses the text behind it"},
		"no role":         {but(func(n *access.NewToken) { n.Role = "" }), "role", "no role is the default"},
		"other role":      {but(func(n *access.NewToken) { n.Role = "admin" }), "role", "it could do nothing"},
		"role in capital": {but(func(n *access.NewToken) { n.Role = "Agent" }), "role", "roles are compared letter by letter"},
		"no maker":        {but(func(n *access.NewToken) { n.By = "" }), "by", "who makes one is recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			made, secret, err := tokens.Create(t.Context(), c.n)
			if c.wrong == "" {
				if err != nil || secret == "" || made.CreatedBy != "alice" {
					t.Errorf("%s: got %+v, %v", c.reason, made, err)
				}
				return
			}
			if !errors.Is(err, access.ErrInvalid) || !strings.Contains(err.Error(), c.wrong+" ") || secret != "" {
				t.Errorf("%s: got %v; want what is wrong with %s", c.reason, err, c.wrong)
			}
		})
	}
}

func TestDefaultLifetime(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	tokens := access.NewTokens(newFlaky(), &access.TokenOptions{Now: func() time.Time { return now }})
	made, _ := create(t, tokens, but(func(n *access.NewToken) { n.TTL = 0 }))
	if want := now.AddDate(0, 0, 90); !made.Expires.Equal(want) {
		t.Errorf("it expires %s, want %s", made.Expires, want)
	}
}

func TestSecretsAreRandomAndOfOneForm(t *testing.T) {
	tokens, seen := access.NewTokens(newFlaky(), nil), map[string]bool{}
	for range 50 {
		made, secret := create(t, tokens, bot)
		if len(secret) != 4+16+1+52+7 || !strings.HasPrefix(secret, "rbk_"+made.ID+"_") || seen[secret] || seen[made.ID] {
			t.Fatalf("the secret has %d letters, or is there twice", len(secret))
		}
		seen[secret], seen[made.ID] = true, true
	}
}

func TestOnlyAHashIsKept(t *testing.T) {
	notes := newFlaky()
	made, secret := create(t, access.NewTokens(notes, nil), bot)
	kept, _, err := notes.Notes(t.Context(), "")
	if err != nil || len(kept) != 1 || kept[0].Name != "token/"+made.ID {
		t.Fatalf("%+v, %v", kept, err)
	}
	for i := range secret[21:] { // any eight letters of a secret
		if end := 21 + i + 8; end < len(secret) && strings.Contains(string(kept[0].Value), secret[21+i:end]) {
			t.Errorf("the ledger has a piece of the secret: %s", kept[0].Value)
		}
	}
}

func TestListAndRevoke(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	tokens := access.NewTokens(newFlaky(), &access.TokenOptions{Now: func() time.Time { return now }})
	first, _ := create(t, tokens, bot)
	now = now.Add(time.Minute)
	second, secret := create(t, tokens, but(func(n *access.NewToken) { n.Name = "Ben" }))
	foreign, _ := create(t, tokens, but(func(n *access.NewToken) { n.Tenant = "other" }))
	for name, c := range map[string]struct{ tenant, id, by, reason string }{
		"foreign":       {"acme", foreign.ID, "alice", "of another tenant is not there"},
		"unknown":       {"acme", strings.Repeat("a", 16), "alice", "there is none"},
		"a prefix":      {"acme", first.ID[:8], "alice", "documents are read by prefix"},
		"nothing":       {"acme", "", "alice", "every token begins so"},
		"other letters": {"acme", first.ID[:14] + "/%", "alice", "no id is written so"},
	} {
		if err := tokens.Revoke(t.Context(), c.tenant, c.id, c.by); !errors.Is(err, access.ErrNoToken) {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
	}
	if err := tokens.Revoke(t.Context(), "acme", second.ID, " "); !errors.Is(err, access.ErrInvalid) {
		t.Errorf("by no caller: %v", err)
	}
	for _, by := range []string{"alice", "bob"} { // once more changes nothing
		if err := tokens.Revoke(t.Context(), "acme", second.ID, by); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if _, err := tokens.Resolve(with(secret)); !errors.Is(err, access.ErrUnknown) || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("the holder of the secret gets %v", err)
	}
	second.Revoked, second.RevokedBy = now.Add(-2*time.Second), "alice"
	got, err := tokens.List(t.Context(), "acme")
	if diff := cmp.Diff([]access.Token{second, first}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestTokensAreForgottenAndBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	notes := newFlaky()
	tokens := access.NewTokens(notes, &access.TokenOptions{Now: func() time.Time { return now }})
	old, _ := create(t, tokens, bot)
	now = now.Add(time.Hour + access.MaxTTL)
	create(t, tokens, bot)
	if got, _ := tokens.List(t.Context(), "acme"); len(got) != 2 {
		t.Errorf("%d tokens are listed; want the ended one too: its time is not over", len(got))
	}
	now = now.Add(2 * time.Second)
	made, _ := create(t, tokens, but(func(n *access.NewToken) { n.TTL = access.MaxTTL }))
	got, err := tokens.List(t.Context(), "acme")
	if err != nil || len(got) != 2 || got[0].ID == old.ID || got[1].ID == old.ID {
		t.Errorf("%+v, %v; want all but the one that ended long ago", got, err)
	}
	kept, _, _ := notes.Notes(t.Context(), "token/"+made.ID)
	for i := range 1000 {
		id := fmt.Sprintf("aaaaaaaaaaaa%04s", strings.NewReplacer("0", "a", "1", "b", "8", "y", "9", "z").Replace(fmt.Sprint(i)))
		n := ledger.Note{Name: "token/" + strings.ReplaceAll(id, " ", "q"), Value: []byte(strings.Replace(string(kept[0].Value), made.ID, strings.ReplaceAll(id, " ", "q"), 1))}
		if _, err := notes.SetNote(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := tokens.Create(t.Context(), bot); !errors.Is(err, access.ErrInvalid) || !strings.Contains(err.Error(), "revoke some") {
		t.Errorf("one more than a thousand: %v", err)
	}
	create(t, tokens, but(func(n *access.NewToken) { n.Tenant = "other" }))
}
