package access_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

var narrow = &engine.Scope{Destinations: []string{"orders"}, Kinds: []string{"order"}, Writes: []intent.WriteType{intent.Create}, Tools: []string{"charge"},
	Max: []engine.Ceiling{{Field: "/amount", Most: "99.95"}}}

// The scope of a token is part of its caller, is listed, and does not change.
func TestAScopeStaysWithItsToken(t *testing.T) {
	notes := newFlaky()
	tokens := access.NewTokens(notes, nil)
	made, secret := create(t, tokens, but(func(n *access.NewToken) { n.Scope = narrow }))
	elsewhere := access.NewTokens(notes, nil) // another process
	if d := cmp.Diff(narrow, resolve(t, elsewhere, with(secret), nil).Scope); d != "" {
		t.Error(d)
	}
	if got := resolve(t, elsewhere, with(secret), nil).Principal().Scope; cmp.Diff(narrow, got) != "" {
		t.Errorf("the engine gets the scope %v", got)
	}
	if all, err := tokens.List(t.Context(), "acme"); err != nil || cmp.Diff(narrow, all[0].Scope) != "" {
		t.Errorf("it is listed as %+v, %v", all, err)
	}
	if err := tokens.Revoke(t.Context(), "acme", made.ID, "alice"); err != nil {
		t.Fatal(err)
	}
	if all, err := tokens.List(t.Context(), "acme"); err != nil || cmp.Diff(narrow, all[0].Scope) != "" || all[0].Revoked.IsZero() {
		t.Errorf("revoked it is listed as %+v, %v", all, err)
	}
	_, wide := create(t, tokens, bot)
	if got := resolve(t, tokens, with(wide), nil).Scope; got != nil {
		t.Errorf("a token without a scope has %v", got)
	}
}

func TestScopesThatCannotBe(t *testing.T) {
	tokens := access.NewTokens(newFlaky(), &access.TokenOptions{People: true})
	for want, n := range map[string]access.NewToken{
		"two ceilings":    but(func(n *access.NewToken) { n.Scope = &engine.Scope{Max: append(narrow.Max, narrow.Max...)} }),
		"want the role a": but(func(n *access.NewToken) { n.Role, n.Scope = engine.RoleOperator, narrow }),
		"or no scope":     but(func(n *access.NewToken) { n.Role, n.Scope = engine.RoleReviewer, &engine.Scope{} }),
	} {
		if _, secret, err := tokens.Create(t.Context(), n); !errors.Is(err, access.ErrInvalid) || !strings.Contains(err.Error(), want) || secret != "" {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A stored scope is read whole or not at all: a token whose scope this version, or an
// older one, does not understand is invalid.
func TestAScopeIsReadWholeOrNotAtAll(t *testing.T) {
	notes := newFlaky()
	made, secret := create(t, access.NewTokens(notes, nil), but(func(n *access.NewToken) { n.Scope = narrow }))
	kept, _, err := notes.Notes(t.Context(), "token/"+made.ID)
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	var old struct { // as versions without scopes read it
		Hash string `json:"hash"`
	}
	if err := json.Unmarshal(kept[0].Value, &old); err != nil || old.Hash != "" {
		t.Errorf("a version without scopes takes the token: %+v, %v", old, err)
	}
	text, version := string(kept[0].Value), kept[0].Version
	for name, change := range map[string]func(string) string{
		"a bound of a later version": func(s string) string { return strings.Replace(s, `"kinds":`, `"regions":["eu"],"kinds":`, 1) },
		"no scope":                   func(s string) string { return strings.Replace(s, `"scope":`, `"was":`, 1) },
		"an empty scope":             func(s string) string { return strings.Replace(s, `"scope":`, `"scope":null,"was":`, 1) },
		"the hash of other tokens":   func(s string) string { return strings.Replace(s, `"scoped_hash":`, `"hash":`, 1) },
		"a ceiling that is none":     func(s string) string { return strings.Replace(s, `"99.95"`, `"much"`, 1) },
		"another role":               func(s string) string { return strings.Replace(s, `"role":"agent"`, `"role":"operator"`, 1) },
	} {
		changed := change(text)
		if changed == text {
			t.Fatalf("%s: nothing was changed in %s", name, text)
		}
		n, err := notes.SetNote(t.Context(), ledger.Note{Name: kept[0].Name, Version: version, Value: []byte(changed)})
		if err != nil {
			t.Fatal(err)
		}
		version = n.Version
		if who, err := access.NewTokens(notes, &access.TokenOptions{People: true}).Resolve(with(secret)); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

// Tokens of people are refused where they are not configured, those that were made before
// too, and the refusal has the setting to add.
func TestTokensOfPeopleNeedTheSetting(t *testing.T) {
	const add = "set server.person_tokens: true"
	notes := newFlaky()
	allowed, refused := access.NewTokens(notes, &access.TokenOptions{People: true}), access.NewTokens(notes, nil)
	for _, role := range []engine.Role{engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor} {
		person := but(func(n *access.NewToken) { n.Role = role })
		if _, secret, err := refused.Create(t.Context(), person); !errors.Is(err, access.ErrInvalid) || !strings.Contains(err.Error(), add) || secret != "" {
			t.Errorf("a token of a %s is made: %v", role, err)
		}
		_, secret := create(t, allowed, person)
		resolve(t, allowed, with(secret), nil)
		who, err := refused.Resolve(with(secret))
		if status, _ := access.Refused(err); status != http.StatusForbidden || !strings.Contains(err.Error(), add) || who != (access.Identity{}) {
			t.Errorf("a token of a %s is taken: %+v, %v", role, who, err)
		}
		if _, err := refused.Resolve(with(strings.Replace(secret, secret[25:33], strings.Repeat("a", 8), 1))); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("without the secret the reason is given: %v", err)
		}
	}
	_, secret := create(t, refused, bot)
	resolve(t, refused, with(secret), nil)
}

// In a browser it is the same: a session that was begun with such a token is over, and
// the page has the reason.
func TestNoSessionByATokenOfAPerson(t *testing.T) {
	w := newWorld(t, nil)
	_, secret := w.as(engine.RoleReviewer, time.Hour)
	b := w.browser()
	if status, _ := b.paste(secret); status != http.StatusOK {
		t.Fatal(status)
	}
	w.tokens = access.NewTokens(w.notes, nil)
	w.restart(func(o *access.LoginOptions) { o.Tokens = w.tokens })
	if answer := b.send("GET", "/", nil); answer.StatusCode != http.StatusForbidden {
		t.Errorf("the session continues: %d", answer.StatusCode)
	}
	if status, page := w.browser().paste(secret); status != http.StatusForbidden || !strings.Contains(page, "server.person_tokens: true") {
		t.Errorf("the token is taken, or nothing says what to add: %d %s", status, page)
	}
	if page := w.get(site + "/login").Body.String(); strings.Contains(page, `name="token"`) {
		t.Errorf("there is a form: %s", page)
	}
	w.restart(func(o *access.LoginOptions) { o.Issuer = "" })
	if page := w.get(site + "/login").Body.String(); !strings.Contains(page, "server.person_tokens: true") {
		t.Errorf("the page does not say that there is no way in: %s", page)
	}
}
