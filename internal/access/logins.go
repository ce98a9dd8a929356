package access

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/readback-go/readback/engine"
)

// LoginOptions of [NewLogins]. Tokens is required; without Issuer people log in
// with tokens alone.
type LoginOptions struct {
	// Issuer is the address of the OpenID provider, as it calls itself.
	Issuer string
	// ClientID is how it knows us; Secret may be "" for a public client.
	ClientID, Secret string
	// RedirectURL is the address of /login/callback as browsers reach it, exactly
	// as the provider has it.
	RedirectURL string
	// Scopes are asked for beside openid. Default email and profile.
	Scopes []string
	// Rules say who gets which tenant and role. Required with Issuer: who fits
	// none gets no session.
	Rules []ClaimRule
	// Key seals cookies, at least 32 bytes that nobody guesses, the same for all
	// processes that serve one address. Default one that is made up: sessions end
	// with the process.
	Key []byte
	// SessionTTL is how long a session lasts, whatever is done in it, at most a
	// day. Default 8 h.
	SessionTTL time.Duration
	// Tokens are the tokens that people may log in with, and whose ledger knows
	// which sessions were ended.
	Tokens *Tokens
	// NoTokens leaves the form for tokens out. Default: it is there.
	NoTokens bool
	// Client asks the provider. Default one of our own; redirects are not
	// followed, and answers bounded, whichever it is.
	Client *http.Client
	// Logger gets who logged in and out and who could not, and why; never a code,
	// a token or a cookie. Default none.
	Logger *slog.Logger
}

// Logins lets people in: at an OpenID provider, or with a token of a person. It
// is safe for concurrent use.
type Logins struct {
	tokens   *Tokens
	form     bool
	provider *provider // nil: there is none
	https    bool
	rules    string
	claim    []ClaimRule
	ttl      time.Duration
	sessions sealed
	attempts sealed
	forms    []byte    // the key of the tokens of forms
	codes    *failures // apart from those of tokens, which anybody can make up
	now      func() time.Time
	log      *slog.Logger
	origins  *http.CrossOriginProtection
	mux      *http.ServeMux
}

// NewLogins makes the logins of a server. It looks for the provider at once, and
// where it cannot be found logs that and goes on: a login that needs it is
// answered with 503 until it is there. The error wraps [ErrInvalid] and says
// what would be right.
func NewLogins(ctx context.Context, o LoginOptions) (*Logins, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Logins{
		tokens: o.Tokens, form: !o.NoTokens, https: strings.HasPrefix(o.RedirectURL, "https://"), rules: rulesOf(o), claim: o.Rules,
		ttl: cmp.Or(o.SessionTTL, defaultSession), now: o.Tokens.now, log: o.Logger,
		origins: http.NewCrossOriginProtection(), mux: http.NewServeMux(), codes: newFailures(o.Tokens.now),
	}
	if len(o.Key) == 0 {
		o.Key = randomKey()
		l.log.Warn("sessions have no key of the configuration: they end with this process, and other processes do not know them")
	}
	var err error
	if l.sessions, err = newSealed(o.Key, "session"); err != nil {
		return nil, err
	}
	if l.attempts, err = newSealed(o.Key, "login attempt"); err != nil {
		return nil, err
	}
	if l.forms, err = formKey(o.Key); err != nil {
		return nil, err
	}
	for _, each := range l.table() {
		l.mux.HandleFunc(each.Method+" "+each.Pattern, each.do)
	}
	if o.Issuer == "" {
		return l, nil
	}
	l.provider = &provider{issuer: o.Issuer, client: bounded(o.Client), now: l.now, log: l.log, config: oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.Secret, RedirectURL: o.RedirectURL, Scopes: append([]string{"openid"}, o.scopes()...),
	}}
	if _, err := l.provider.get(ctx); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return l, nil
}

func (o LoginOptions) scopes() []string {
	if o.Scopes == nil {
		return []string{"email", "profile"}
	}
	return o.Scopes
}

func (o LoginOptions) check() error {
	switch {
	case o.Tokens == nil:
		return fmt.Errorf("%w: Tokens are missing", ErrInvalid)
	case len(o.Key) > 0 && len(o.Key) < MinKey:
		return fmt.Errorf("%w: the session key has %d bytes; want at least %d that nobody guesses, such as `openssl rand -hex 32` prints", ErrInvalid, len(o.Key), MinKey)
	case o.SessionTTL < 0 || o.SessionTTL > MaxSession:
		return fmt.Errorf("%w: sessions last %s; want at most %s", ErrInvalid, o.SessionTTL, MaxSession)
	case o.Issuer == "" && o.NoTokens:
		return fmt.Errorf("%w: there is neither a provider nor a form for tokens; nobody could log in", ErrInvalid)
	case o.Issuer == "":
		return nil
	case o.ClientID == "":
		return fmt.Errorf("%w: client_id is missing; want how the provider knows readback", ErrInvalid)
	case len(o.Rules) == 0 || len(o.Rules) > maxRules:
		return fmt.Errorf("%w: there are %d rules; want 1 to %d: who fits none is not let in", ErrInvalid, len(o.Rules), maxRules)
	}
	for i, rule := range o.Rules {
		if err := rule.Check(); err != nil {
			return fmt.Errorf("rules[%d]: %w", i, err)
		}
	}
	return cmp.Or(CheckIssuer(o.Issuer), CheckRedirect(o.RedirectURL))
}

// CallbackPath is where the provider sends people back to.
const CallbackPath = "/login/callback"

// CheckIssuer says what is wrong with a [LoginOptions.Issuer]; the error wraps
// [ErrInvalid].
func CheckIssuer(text string) error { return checkURL("issuer", text) }

// CheckRedirect says what is wrong with a [LoginOptions.RedirectURL]; the error
// wraps [ErrInvalid].
func CheckRedirect(text string) error {
	if err := checkURL("redirect_url", text); err != nil {
		return err
	}
	if u, err := url.Parse(text); err != nil || u.Path != CallbackPath || u.RawQuery != "" {
		return fmt.Errorf("%w: redirect_url is %q; want the address of this server with the path %s, such as https://readback.example.org%s", ErrInvalid, clip(text), CallbackPath, CallbackPath)
	}
	return nil
}

type loginRoute struct {
	Route
	do http.HandlerFunc
}

// table is what there is to ask. Anybody may.
func (l *Logins) table() []loginRoute {
	return []loginRoute{
		{Route{Method: http.MethodGet, Pattern: "/login"}, l.show},
		{Route{Method: http.MethodPost, Pattern: "/login"}, l.withToken},
		{Route{Method: http.MethodGet, Pattern: "/login/provider"}, l.toProvider},
		{Route{Method: http.MethodGet, Pattern: CallbackPath}, l.fromProvider},
		{Route{Method: http.MethodPost, Pattern: "/logout"}, l.logout},
	}
}

// Routes lists the routes.
func (l *Logins) Routes() []Route {
	var all []Route
	for _, each := range l.table() {
		all = append(all, each.Route)
	}
	return all
}

// ServeHTTP serves the routes. Without JavaScript all of them work.
func (l *Logins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := l.origins.Check(r); err != nil {
		l.refuse(w, r, errOrigin)
		return
	}
	l.mux.ServeHTTP(w, r)
}

// show is the page that asks who somebody is.
func (l *Logins) show(w http.ResponseWriter, r *http.Request) {
	p := page{Title: "Log in", Next: localPath(r.URL.Query().Get("next"))}
	status := http.StatusOK
	if r.URL.Query().Has("out") {
		p.Title, p.Lines = "Logged out", []string{"You are logged out, in every window and on every server."}
	}
	if l.provider != nil {
		if _, err := l.provider.get(r.Context()); err != nil {
			status, p.Lines = http.StatusServiceUnavailable, append(p.Lines, providerDown)
			w.Header().Set("Retry-After", "5")
		}
	}
	l.write(w, r, status, p)
}

const providerDown = "The provider of logins does not answer now. Try again in a moment; nothing has to be started anew."

// withToken begins a session with a token that was pasted into the form.
func (l *Logins) withToken(w http.ResponseWriter, r *http.Request) {
	if !l.form {
		l.refuse(w, r, errNoForm)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil || len(r.PostForm["token"]) != 1 {
		l.refuse(w, r, fmt.Errorf("%w: the form cannot be read", ErrUnknown))
		return
	}
	next := localPath(r.PostForm.Get("next"))
	have, err := l.tokens.check(r.Context(), r.RemoteAddr, strings.TrimSpace(r.PostForm["token"][0]))
	if err == nil && have.Role == engine.RoleAgent {
		err = errAgent
	}
	if err == nil {
		err = l.begin(w, r, session{Token: have.ID, Until: l.now().Add(l.ttl)}) // and no longer than the token
	}
	if err != nil {
		l.refuse(w, r, err)
		return
	}
	l.log.InfoContext(r.Context(), "logged in", "tenant", have.Tenant, "name", have.Name, "role", have.Role, "token", have.ID)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// toProvider sends somebody to the provider, and the browser remembers what for.
func (l *Logins) toProvider(w http.ResponseWriter, r *http.Request) {
	if l.provider == nil {
		l.refuse(w, r, errNoProvider)
		return
	}
	f, err := l.provider.get(r.Context())
	if err != nil {
		l.refuse(w, r, err)
		return
	}
	a := attempt{State: randomText(randomBytes), Nonce: randomText(randomBytes), Verifier: oauth2.GenerateVerifier(),
		Next: localPath(r.URL.Query().Get("next")), Until: l.now().Add(attemptFor)}
	text, err := l.attempts.seal(a)
	if err != nil {
		l.refuse(w, r, err)
		return
	}
	l.setCookie(w, r, attemptCookie, text, attemptFor)
	http.Redirect(w, r, f.where(a), http.StatusSeeOther)
}

var (
	errAgent      = fmt.Errorf("%w: this is the token of an agent; people have tokens of their own", ErrForbidden)
	errNoForm     = fmt.Errorf("%w: nobody logs in with a token here", ErrForbidden)
	errOrigin     = fmt.Errorf("%w: a page of another origin asks for this", ErrForbidden)
	errNoProvider = fmt.Errorf("%w: there is no provider of logins here", ErrForbidden)
	// errNotBegun: the browser has not begun this login.
	errNotBegun = fmt.Errorf("%w: this login was not begun in this browser, or under another address, or is too old", ErrUnknown)
)

// fromProvider is where people come back to from the provider.
func (l *Logins) fromProvider(w http.ResponseWriter, r *http.Request) {
	if l.provider == nil {
		l.refuse(w, r, errNoProvider)
		return
	}
	a, err := l.attempt(r)
	l.setCookie(w, r, attemptCookie, "", 0) // it serves once
	who, err := l.proven(r, a, err)
	if err == nil {
		err = l.begin(w, r, session{Tenant: who.Tenant, Name: who.Name, Role: who.Role, Rules: l.rules, Until: l.now().Add(l.ttl)})
	}
	if err != nil {
		l.log.WarnContext(r.Context(), "a login was refused", "error", err)
		l.refuse(w, r, err)
		return
	}
	l.log.InfoContext(r.Context(), "logged in", "tenant", who.Tenant, "name", who.Name, "role", who.Role)
	http.Redirect(w, r, a.Next, http.StatusSeeOther)
}

// attempt is the login that the browser has begun, if it is this one.
func (l *Logins) attempt(r *http.Request) (attempt, error) {
	var a attempt
	kept, states := r.CookiesNamed(l.cookieName(r, attemptCookie)), r.URL.Query()["state"]
	if len(kept) != 1 || len(states) != 1 || l.attempts.open(kept[0].Value, &a) != nil || !l.now().Before(a.Until) ||
		a.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(states[0])) != 1 {
		return attempt{}, errNotBegun
	}
	return a, nil
}

// proven is who the provider says that somebody is.
func (l *Logins) proven(r *http.Request, a attempt, err error) (Identity, error) {
	if err != nil {
		return Identity{}, err
	}
	q := r.URL.Query()
	switch {
	case q.Has("error"):
		return Identity{}, fmt.Errorf("%w: the provider of logins refuses: %q", ErrUnknown, clip(q.Get("error")))
	case q.Has("iss") && q.Get("iss") != l.provider.issuer: // RFC 9207
		return Identity{}, fmt.Errorf("%w: another provider answers", ErrUnknown)
	case len(q["code"]) != 1 || q.Get("code") == "":
		return Identity{}, fmt.Errorf("%w: the provider of logins gives no code", ErrUnknown)
	}
	if err := l.codes.held(r.RemoteAddr); err != nil { // each costs the provider a request
		return Identity{}, err
	}
	f, err := l.provider.get(r.Context())
	if err != nil {
		return Identity{}, err
	}
	said, err := l.provider.redeem(r.Context(), f, a, q.Get("code"))
	if errors.Is(err, errAnswer) {
		return Identity{}, l.codes.count(r.RemoteAddr, fmt.Errorf("%w: %w", ErrUnknown, err))
	}
	if err != nil {
		return Identity{}, err
	}
	return said.identity(l.claim)
}

// logout ends the session, so that no copy of its cookie is good for anything.
func (l *Logins) logout(w http.ResponseWriter, r *http.Request) {
	s, err := l.session(r)
	if err == nil {
		if err := l.ownPage(r, s); err != nil {
			l.refuse(w, r, err)
			return
		}
	}
	l.setCookie(w, r, sessionCookie, "", 0)
	if err == nil {
		if err := l.end(r.Context(), s); err != nil {
			l.log.ErrorContext(r.Context(), "a session could not be ended", "session", s.ID, "until", s.Until, "error", err)
			l.refuse(w, r, err)
			return
		}
		l.log.InfoContext(r.Context(), "logged out", "tenant", s.Tenant, "name", s.Name, "token", s.Token)
	}
	http.Redirect(w, r, "/login?out=1", http.StatusSeeOther)
}

// localPath is where a login goes on: a path of ours, or the first page.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\") ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || u.Scheme != "" || u.Host != "" || u.User != nil ||
		strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/logout") {
		return "/"
	}
	return u.RequestURI()
}
