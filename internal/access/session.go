package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

const day = 24 * time.Hour

const (
	// sessionPrefix begins the names of the notes of ended sessions.
	sessionPrefix = "session/"
	sessionCookie = "readback-session"
	attemptCookie = "readback-login"
)

// session is a session as the browser stores it, sealed. Its rights are in it, so that no
// server has to store them; its early end is in the ledger.
type session struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
	// Token is the id of the token that it was begun with. Then all rights are the
	// token's.
	Token  string      `json:"token,omitempty"`
	Tenant string      `json:"tenant,omitempty"`
	Name   string      `json:"name,omitempty"`
	Role   engine.Role `json:"role,omitempty"`
	// Rules identifies the rules by which it was granted; a session with other rules
	// ends.
	Rules string `json:"rules,omitempty"`
	// Confirmed is when the provider last confirmed the login.
	Confirmed time.Time `json:"confirmed,omitzero"`
	// Strong reports that the login has what decisions need.
	Strong bool `json:"strong,omitempty"`
}

// endedNote records the end of a session.
type endedNote struct {
	Until time.Time `json:"until"` // when it would have ended by itself
}

// rulesOf identifies a set of rules and its provider.
func rulesOf(o LoginOptions) string {
	text, err := json.Marshal([]any{o.Issuer, o.ClientID, o.Rules, o.StepUp})
	if err != nil {
		panic(err) // texts always marshal
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Resolve identifies the session of a request by its cookie, as [Tokens.Resolve] does by
// a header. A request that may change something must prove that it comes from a page of
// ours, by a header or by a form token.
func (l *Logins) Resolve(r *http.Request) (Identity, error) {
	s, err := l.session(r)
	if err == nil {
		err = l.ownPage(r, s)
	}
	if err != nil {
		return Identity{}, err
	}
	ended, err := l.tokens.recall.get(r.Context(), sessionPrefix+s.ID)
	switch {
	case err != nil:
		return Identity{}, err
	case len(ended.note.Value) > 0:
		return Identity{}, fmt.Errorf("%w: the session was ended", ErrUnknown)
	case s.Token != "":
		have, err := l.tokens.byID(r.Context(), s.Token)
		if err != nil {
			return Identity{}, err
		}
		return asPerson(have.identity())
	case s.Rules != l.rules:
		return Identity{}, fmt.Errorf("%w: the rules have changed since the session began", ErrUnknown)
	case l.unconfirmed(r, s):
		return Identity{}, fmt.Errorf("%w: the provider of logins must confirm the session again; open a page of the review UI", ErrUnknown)
	}
	who := s.identity()
	who.NeedsStepUp = l.stepUp.required() && !s.Strong
	return asPerson(who)
}

// identity is the identity in a session.
func (s session) identity() Identity {
	return Identity{Tenant: s.Tenant, Name: s.Name, Role: s.Role, Via: "login", ID: cmp.Or(s.Token, s.ID)}
}

// unconfirmed reports whether the provider has to confirm a session of its own again. A
// page asks for that at half of the time, so that a form sent from it does not come too
// late.
func (l *Logins) unconfirmed(r *http.Request, s session) bool {
	after := l.recheck
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		after /= 2
	}
	now := l.now()
	if ahead := s.Confirmed.Sub(now); ahead > 0 && ahead < maxSkew {
		now = s.Confirmed // another server, whose clock is ahead, confirmed it
	}
	return s.Token == "" && !within(now, s.Confirmed, after)
}

// asPerson refuses an agent: agents are not served in a browser.
func asPerson(who Identity) (Identity, error) {
	if who.Role == engine.RoleAgent {
		return Identity{}, fmt.Errorf("%w: an agent has no session", ErrUnknown)
	}
	return who, nil
}

// session opens the one session of a request.
func (l *Logins) session(r *http.Request) (session, error) {
	var s session
	kept := r.CookiesNamed(l.cookieName(r, sessionCookie))
	switch {
	case len(kept) == 0:
		return s, ErrNoCredentials
	case len(kept) > 1:
		return s, fmt.Errorf("%w: there is more than one session cookie", ErrUnknown)
	case l.sealing().sessions.open(kept[0].Value, &s) != nil || s.ID == "":
		return session{}, fmt.Errorf("%w: the session cannot be read; it may be of another server, or of before it was started anew", ErrUnknown)
	case !l.now().Before(s.Until):
		return session{}, fmt.Errorf("%w: the session has expired", ErrUnknown)
	}
	return s, nil
}

// begin gives the browser a session, and ends the previous one.
func (l *Logins) begin(w http.ResponseWriter, r *http.Request, s session) error {
	if old, err := l.session(r); err == nil {
		if err := l.end(r.Context(), old); err != nil {
			return err
		}
	}
	s.ID = randomText(randomBytes / 2)
	return l.keep(w, r, s)
}

// keep sets a session's cookie.
func (l *Logins) keep(w http.ResponseWriter, r *http.Request, s session) error {
	text, err := l.sealing().sessions.seal(s)
	if err != nil {
		return err
	}
	l.setCookie(w, r, sessionCookie, text, 0)
	return nil
}

// end ends a session for every process.
func (l *Logins) end(ctx context.Context, s session) error {
	value, err := json.Marshal(endedNote{s.Until})
	if err != nil {
		return err
	}
	name := sessionPrefix + s.ID
	err = change(ctx, l.tokens.notes, name, func(n ledger.Note) ([]byte, error) {
		if len(n.Value) > 0 {
			return nil, nil
		}
		return value, nil
	})
	l.tokens.recall.forget(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l.sweep(ctx)
	return nil
}

// sweep deletes the notes of sessions that would have ended by now. What it leaves is
// deleted another time.
func (l *Logins) sweep(ctx context.Context) {
	all, _, err := l.tokens.notes.Notes(ctx, sessionPrefix)
	if err != nil {
		return
	}
	swept := 0
	for _, n := range all {
		var e endedNote
		// A day more: other machines have other clocks.
		if json.Unmarshal(n.Value, &e) != nil || l.now().Sub(e.Until) < day || swept == maxSwept {
			continue
		}
		swept++
		_, _ = l.tokens.notes.SetNote(ctx, ledger.Note{Name: n.Name, Version: n.Version})
	}
}

// secure reports whether cookies need TLS: always, except from a browser to its own
// machine.
func (l *Logins) secure(r *http.Request) bool {
	return l.https || r.TLS != nil || !IsLocal(r.Host)
}

// IsLocal reports whether a host names this machine in a way that no DNS server can
// redirect.
func IsLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// cookieName has the prefix with which browsers let only this host set the cookie, where
// they support it: with TLS.
func (l *Logins) cookieName(r *http.Request, name string) string {
	if l.secure(r) {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie; an empty one ends it. It is Lax and not Strict: with Strict
// the first page after the provider's, and one that a message links to, would be
// requested without the session. Changes need a POST, with which Lax sends nothing from
// other sites, and Protect checks their origin.
func (l *Logins) setCookie(w http.ResponseWriter, r *http.Request, name, value string, lives time.Duration) {
	c := &http.Cookie{
		Name: l.cookieName(r, name), Value: value, Path: "/", MaxAge: int(lives.Seconds()),
		HttpOnly: true, Secure: l.secure(r), SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
