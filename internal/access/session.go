package access

import (
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

const (
	// sessionPrefix begins the names of the notes of sessions that were ended.
	sessionPrefix = "session/"
	sessionCookie = "readback-session"
	attemptCookie = "readback-login"
)

// session is what the browser keeps of one, sealed. What it may do stands in it,
// so that no server has to remember it; that it has ended stands in the ledger.
type session struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
	// Token is the id of the token that it was begun with. Then all else is the
	// token's.
	Token  string      `json:"token,omitempty"`
	Tenant string      `json:"tenant,omitempty"`
	Name   string      `json:"name,omitempty"`
	Role   engine.Role `json:"role,omitempty"`
	// Rules is by which rules it was given; others end it.
	Rules string `json:"rules,omitempty"`
}

// endedNote says that a session is over.
type endedNote struct {
	Until time.Time `json:"until"` // when it would have been by itself
}

// rulesOf tells rules apart, of one provider and another too.
func rulesOf(o LoginOptions) string {
	text, err := json.Marshal([]any{o.Issuer, o.ClientID, o.Rules})
	if err != nil {
		panic(err) // they are texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Resolve finds out whose session a request belongs to by its cookie, as
// [Tokens.Resolve] does by a header. What may change something must say that a page of
// ours asks, by a header or by the token of a form.
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
	}
	return asPerson(Identity{Tenant: s.Tenant, Name: s.Name, Role: s.Role, Via: "login", ID: s.ID})
}

// asPerson refuses an agent: none is served in a browser.
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
	case l.sessions.open(kept[0].Value, &s) != nil || s.ID == "":
		return session{}, fmt.Errorf("%w: the session cannot be read; it may be of another server, or of before it was started anew", ErrUnknown)
	case !l.now().Before(s.Until):
		return session{}, fmt.Errorf("%w: the session has expired", ErrUnknown)
	}
	return s, nil
}

// begin gives the browser a session, and ends the one it has.
func (l *Logins) begin(w http.ResponseWriter, r *http.Request, s session) error {
	if old, err := l.session(r); err == nil {
		if err := l.end(r.Context(), old); err != nil {
			return err
		}
	}
	s.ID = randomText(randomBytes / 2)
	text, err := l.sessions.seal(s)
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

// sweep forgets the ends of sessions that would be over by now. What it leaves
// is swept another time.
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

// secure reports whether cookies are for TLS alone: always, but where a browser
// talks to its own machine.
func (l *Logins) secure(r *http.Request) bool {
	return l.https || r.TLS != nil || !isLocal(r.Host)
}

// isLocal reports whether a host names this machine by what nobody can point
// elsewhere.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// cookieName has the prefix by which browsers let nobody but this very host set
// the cookie, where they know it: with TLS.
func (l *Logins) cookieName(r *http.Request, name string) string {
	if l.secure(r) {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie; an empty one ends it. It is Lax and not Strict: with
// Strict the first page after the provider's, and one that a message links to,
// would be asked for without the session. What changes something is a POST, with
// which Lax sends nothing from other sites, and Protect looks at their origin.
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
