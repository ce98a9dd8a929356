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
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/readback-go/readback/engine"
)

// Bounds of logins and sessions.
const (
	// defaultSession is the default lifetime of a session, whatever is done in it: a day
	// at work. MaxSession is the longest: a user who was taken out of a group is out a
	// day later.
	defaultSession = 8 * time.Hour
	MaxSession     = 24 * time.Hour
	// defaultRecheck is after how long the provider must confirm a session: a closed
	// account is out within minutes. MinRecheck bounds the requests to the provider.
	defaultRecheck = 10 * time.Minute
	MinRecheck     = time.Minute
	// maxSkew is how far the clocks of servers that share sessions may differ: no server
	// sends a browser to the provider again right after another has confirmed the
	// session.
	maxSkew = time.Minute
	// attemptFor is how long a user has to log in at the provider: long enough to find
	// the phone with the second factor.
	attemptFor = 10 * time.Minute
	// MinKey is the shortest key of sessions in bytes, 256 bits.
	MinKey = 32
	// maxNext bounds the path after a login, in bytes: with all its other content a
	// cookie stays below the 4096 bytes that browsers accept.
	maxNext = 1 << 10
	// maxCookie bounds a cookie of ours in bytes: browsers accept no larger ones.
	maxCookie = 4096
	// maxForm bounds the form of /login in bytes: a token and the path after the login.
	maxForm = 8 << 10
	// maxSwept bounds how many old notes of sessions one logout deletes.
	maxSwept = 100
	// maxRules bounds the rules of claims, and maxPath their depth.
	maxRules = 1000
	maxPath  = 10
)

// LoginOptions of [NewLogins]. Tokens is required; without Issuer users log in with
// tokens alone.
type LoginOptions struct {
	// Issuer is the address of the OpenID provider, exactly as the provider states it.
	Issuer string
	// ClientID is our client ID at the provider.
	ClientID string
	// Secret fetches the client's secret for each login; nil for a public client.
	Secret func(ctx context.Context) (string, error)
	// SecretRefused is called when the provider has refused the secret. Default nil.
	SecretRefused func()
	// RedirectURL is the address of /login/callback as browsers reach it, exactly as
	// registered at the provider.
	RedirectURL string
	// Scopes are requested beside openid. Default email and profile.
	Scopes []string
	// Rules map users to tenants and roles. Required with Issuer: a user who matches no
	// rule gets no session.
	Rules []ClaimRule
	// Key seals cookies: at least 32 random bytes, the same for all processes that serve
	// one address. Default a random one: sessions end with the process.
	Key []byte
	// KeyNow fetches the current Key. When it changes, sessions end. Default: it does not
	// change.
	KeyNow func(ctx context.Context) ([]byte, error)
	// SessionTTL is how long a session lasts, whatever is done in it, at most a
	// day. Default 8 h.
	SessionTTL time.Duration
	// Recheck is after how long the provider must confirm again, without asking the user,
	// that the account still exists and what its claims are. A session that it does not
	// confirm ends. A minute at least. Default 10 min.
	Recheck time.Duration
	// StepUp is what a login must have for decisions. Default nothing.
	StepUp StepUp
	// Tokens are the tokens that users may log in with. Their ledger also knows which
	// sessions were ended.
	Tokens *Tokens
	// NoTokens omits the form for tokens. Default: it is shown if Tokens allows tokens of
	// people.
	NoTokens bool
	// Client sends requests to the provider. Default one of our own. In either case
	// redirects are not followed, and responses are bounded.
	Client *http.Client
	// Events records logins, their refusals and ends. Default none.
	Events *Events
	// Logger logs logins, logouts and failed logins, with the reason; never a code, a
	// token or a cookie. Default none.
	Logger *slog.Logger
}

// Logins logs users in: at an OpenID provider, or with a token of a person. It is safe
// for concurrent use.
type Logins struct {
	tokens   *Tokens
	form     bool
	provider *provider // nil: there is none
	https    bool
	rules    string
	claim    []ClaimRule
	ttl      time.Duration
	recheck  time.Duration
	stepUp   StepUp
	keyNow   func(context.Context) ([]byte, error) // nil: it does not change
	keyFails atomic.Bool                           // the last fetch, which was logged
	key      atomic.Pointer[sessionKey]
	codes    *failures // apart from those of tokens, which any caller can make up
	now      func() time.Time
	log      *slog.Logger
	events   *Events
	origins  *http.CrossOriginProtection
	mux      *http.ServeMux
}

// NewLogins makes the logins of a server. It contacts the provider at once. If that fails
// it logs the failure and continues: a login that needs the provider gets 503 until it is
// reachable. The error wraps [ErrInvalid] and has the remedy.
func NewLogins(ctx context.Context, o LoginOptions) (*Logins, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Logins{
		tokens: o.Tokens, form: !o.NoTokens && o.Tokens.people, https: strings.HasPrefix(o.RedirectURL, "https://"), rules: rulesOf(o), claim: o.Rules,
		ttl: cmp.Or(o.SessionTTL, defaultSession), recheck: cmp.Or(o.Recheck, defaultRecheck), stepUp: o.StepUp, now: o.Tokens.now, log: o.Logger, events: o.Events,
		origins: http.NewCrossOriginProtection(), mux: http.NewServeMux(), codes: newFailures(o.Tokens.now),
	}
	if len(o.Key) == 0 {
		o.Key = randomKey()
		l.log.Warn("sessions have no key of the configuration: they end with this process, and other processes do not know them")
	}
	key, err := newSessionKey(o.Key)
	if err != nil {
		return nil, err
	}
	l.key.Store(key)
	l.keyNow = o.KeyNow
	for _, each := range l.table() {
		l.mux.HandleFunc(each.Method+" "+each.Pattern, each.do)
	}
	if o.Issuer == "" {
		return l, nil
	}
	l.provider = &provider{issuer: o.Issuer, client: bounded(o.Client), now: l.now, log: l.log, secret: o.Secret, refused: o.SecretRefused, config: oauth2.Config{
		ClientID: o.ClientID, RedirectURL: o.RedirectURL, Scopes: append([]string{"openid"}, o.scopes()...),
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
		return fmt.Errorf("%w: the session key has %d bytes; want at least %d that cannot be guessed, such as `openssl rand -hex 32` prints", ErrInvalid, len(o.Key), MinKey)
	case o.SessionTTL < 0 || o.SessionTTL > MaxSession:
		return fmt.Errorf("%w: sessions last %s; want at most %s", ErrInvalid, o.SessionTTL, MaxSession)
	case o.Recheck < 0 || o.Recheck > 0 && o.Recheck < MinRecheck || o.Recheck > MaxSession:
		return fmt.Errorf("%w: recheck is %s; want %s to %s", ErrInvalid, o.Recheck, MinRecheck, MaxSession)
	case o.Issuer == "" && o.StepUp.required():
		return fmt.Errorf("%w: decisions need a login of a provider, and there is no issuer; want one", ErrInvalid)
	case o.Issuer == "" && o.NoTokens:
		return fmt.Errorf("%w: there is neither a provider nor a form for tokens; no user could log in", ErrInvalid)
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

// CallbackPath is the path to which the provider redirects users.
const CallbackPath = "/login/callback"

// CheckIssuer returns what is wrong with a [LoginOptions.Issuer]; the error wraps
// [ErrInvalid].
func CheckIssuer(text string) error { return checkURL("issuer", text) }

// CheckRedirect returns what is wrong with a [LoginOptions.RedirectURL]; the error wraps
// [ErrInvalid].
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

// table lists the routes. They are open to every caller.
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

// ServeHTTP serves the routes. All of them work without JavaScript.
func (l *Logins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := l.origins.Check(r); err != nil {
		l.refuse(w, r, errOrigin)
		return
	}
	l.mux.ServeHTTP(w, r)
}

// show serves the login page.
func (l *Logins) show(w http.ResponseWriter, r *http.Request) {
	p := page{Title: "Log in", Next: localPath(r.URL.Query().Get("next"))}
	if s, err := l.session(r); err == nil && l.unconfirmed(r, s) && !r.URL.Query().Has("out") {
		http.Redirect(w, r, "/login/provider?"+url.Values{"next": {p.Next}, "confirm": {"1"}}.Encode(), http.StatusSeeOther)
		return
	}
	status := http.StatusOK
	if r.URL.Query().Has("out") {
		p.Title, p.Lines = "Logged out", []string{"You are logged out, in every window and on every server."}
	}
	if l.provider != nil {
		if _, err := l.provider.get(r.Context()); err != nil {
			status, p.Lines = http.StatusServiceUnavailable, append(p.Lines, providerDown)
			w.Header().Set("Retry-After", "5")
		}
	} else if !l.form {
		p.Lines = append(p.Lines, noWayIn)
	}
	l.write(w, r, status, p)
}

const noWayIn = "This server has no login. Its configuration needs server.oidc, or server.person_tokens: true so that people may have tokens."

const providerDown = "The login provider does not answer now. Try again in a moment; the server need not be restarted."

// withToken begins a session with a token that was pasted into the form.
func (l *Logins) withToken(w http.ResponseWriter, r *http.Request) {
	switch {
	case !l.tokens.people:
		l.refuse(w, r, fmt.Errorf("%w: %w", ErrForbidden, errNoPeople))
		return
	case !l.form:
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
		err = l.begin(w, r, session{Token: have.ID, Until: l.now().Add(l.ttl)}) // at most as long as the token
	}
	if err != nil {
		l.refused(r, Event{}.of(have.identity()), err)
		l.refuse(w, r, err)
		return
	}
	l.events.Record(Event{Event: EventLogin, Address: r.RemoteAddr}.of(have.identity()))
	l.log.InfoContext(r.Context(), "logged in", "tenant", have.Tenant, "name", have.Name, "role", have.Role, "token", have.ID)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// toProvider sends a browser to the provider, and stores the purpose in the browser. With
// "confirm" the provider shows no page: it reports whether the user is still logged in
// there. With "step_up" it asks for what decisions need.
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
	q := r.URL.Query()
	a := attempt{State: randomText(randomBytes), Nonce: randomText(randomBytes), Verifier: oauth2.GenerateVerifier(),
		Next: localPath(q.Get("next")), Until: l.now().Add(attemptFor)}
	var asked []oauth2.AuthCodeOption
	if s, err := l.session(r); err == nil && q.Has("confirm") && s.Token == "" {
		a.Confirms = s.ID
		if begun, ok := l.begun(r); ok && begun.Confirms == s.ID {
			a.State, a.Nonce, a.Verifier = begun.State, begun.Nonce, begun.Verifier // another page of the browser waits for its response
		}
		asked = append(asked, oauth2.SetAuthURLParam("prompt", "none"))
	} else if q.Has("step_up") {
		asked = l.stepUp.asked()
	}
	text, err := l.sealing().attempts.seal(a)
	if err != nil {
		l.refuse(w, r, err)
		return
	}
	l.setCookie(w, r, attemptCookie, text, attemptFor)
	http.Redirect(w, r, f.where(a, asked...), http.StatusSeeOther)
}

var (
	errAgent      = fmt.Errorf("%w: this is the token of an agent; people have tokens of their own", ErrForbidden)
	errNoForm     = fmt.Errorf("%w: this server takes no logins with a token", ErrForbidden)
	errOrigin     = fmt.Errorf("%w: a page of another origin asks for this", ErrForbidden)
	errNoProvider = fmt.Errorf("%w: there is no provider of logins here", ErrForbidden)
	// errNotBegun: the browser has not begun this login.
	errNotBegun = fmt.Errorf("%w: this login was not begun in this browser, or under another address, or is too old", ErrUnknown)
)

// fromProvider handles the redirect back from the provider.
func (l *Logins) fromProvider(w http.ResponseWriter, r *http.Request) {
	if l.provider == nil {
		l.refuse(w, r, errNoProvider)
		return
	}
	a, err := l.attempt(r)
	if err != nil && l.confirmedBeside(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	l.setCookie(w, r, attemptCookie, "", 0) // it is valid once
	who, strong, err := l.proven(r, a, err)
	if err == nil {
		err = l.enter(w, r, a, who, strong)
	}
	if a.Confirms != "" && (errors.Is(err, ErrUnknown) || errors.Is(err, ErrForbidden)) {
		l.unconfirm(w, r, a, err)
		return
	}
	if err != nil {
		l.refused(r, Event{}.of(who), err)
		l.log.WarnContext(r.Context(), "a login was refused", "error", err)
		l.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, a.Next, http.StatusSeeOther)
}

// enter begins the session of a login, or continues the session that the provider has
// confirmed; its end does not change.
func (l *Logins) enter(w http.ResponseWriter, r *http.Request, a attempt, who Identity, strong bool) error {
	if s, err := l.session(r); err == nil && s.ID == a.Confirms && s.Rules == l.rules && s.Tenant == who.Tenant && s.Name == who.Name && s.Role == who.Role {
		s.Confirmed, s.Strong = l.now(), s.Strong || strong
		return l.keep(w, r, s)
	}
	err := l.begin(w, r, session{Tenant: who.Tenant, Name: who.Name, Role: who.Role, Rules: l.rules,
		Until: l.now().Add(l.ttl), Confirmed: l.now(), Strong: strong})
	if err == nil {
		l.events.Record(Event{Event: EventLogin, Address: r.RemoteAddr}.of(who))
		l.log.InfoContext(r.Context(), "logged in", "tenant", who.Tenant, "name", who.Name, "role", who.Role)
	}
	return err
}

// refused records a login that was refused, but not one that could not be checked.
func (l *Logins) refused(r *http.Request, e Event, err error) {
	if errors.Is(err, ErrUnknown) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrTooMany) {
		e.Event, e.Address, e.Reason = EventLoginRefused, r.RemoteAddr, reasonOf(err)
		l.events.Record(e)
	}
}

// unconfirm ends a session that the provider does not confirm: the account was closed,
// was taken out of its group, or has to log in there again.
func (l *Logins) unconfirm(w http.ResponseWriter, r *http.Request, a attempt, why error) {
	s, err := l.session(r)
	if err == nil && s.ID == a.Confirms {
		l.setCookie(w, r, sessionCookie, "", 0)
		err = l.end(r.Context(), s)
		l.events.Record(Event{Event: EventSessionEnded, Address: r.RemoteAddr, Reason: reasonOf(why)}.of(s.identity()))
		l.log.InfoContext(r.Context(), "a session has ended: the provider of logins does not confirm it", "tenant", s.Tenant, "name", s.Name, "error", why)
	}
	if errors.Is(why, ErrForbidden) || err != nil && !errors.Is(err, ErrUnknown) {
		l.refuse(w, r, cmp.Or(why, err))
		return
	}
	http.Redirect(w, r, "/login?"+url.Values{"next": {a.Next}}.Encode(), http.StatusSeeOther)
}

// begun is the login that the browser began last.
func (l *Logins) begun(r *http.Request) (a attempt, ok bool) {
	kept := r.CookiesNamed(l.cookieName(r, attemptCookie))
	ok = len(kept) == 1 && l.sealing().attempts.open(kept[0].Value, &a) == nil && l.now().Before(a.Until) && a.State != ""
	return a, ok
}

// attempt is the login that the browser has begun, if it is the one of this request.
func (l *Logins) attempt(r *http.Request) (attempt, error) {
	a, ok := l.begun(r)
	states := r.URL.Query()["state"]
	if !ok || len(states) != 1 || subtle.ConstantTimeCompare([]byte(a.State), []byte(states[0])) != 1 {
		return attempt{}, errNotBegun
	}
	return a, nil
}

// confirmedBeside reports whether a page that came back too late can continue: another
// page of the browser has had the session confirmed, or is about to.
func (l *Logins) confirmedBeside(r *http.Request) bool {
	s, err := l.session(r)
	if err != nil || s.Token != "" {
		return false
	}
	a, ok := l.begun(r)
	return ok && a.Confirms == s.ID || !l.unconfirmed(r, s)
}

// proven is the user that the provider names, and whether the login has what decisions
// need.
func (l *Logins) proven(r *http.Request, a attempt, err error) (who Identity, strong bool, _ error) {
	if err != nil {
		return Identity{}, false, err
	}
	q := r.URL.Query()
	switch {
	case q.Get("error") == "temporarily_unavailable" || q.Get("error") == "server_error":
		return Identity{}, false, fmt.Errorf("%w: the provider of logins answers %q", ErrUnavailable, q.Get("error"))
	case q.Has("error"):
		return Identity{}, false, fmt.Errorf("%w: the provider of logins refuses: %q", ErrUnknown, clip(q.Get("error")))
	case q.Has("iss") && q.Get("iss") != l.provider.issuer: // RFC 9207
		return Identity{}, false, fmt.Errorf("%w: another provider answers", ErrUnknown)
	case len(q["code"]) != 1 || q.Get("code") == "":
		return Identity{}, false, fmt.Errorf("%w: the provider of logins gives no code", ErrUnknown)
	}
	done, err := l.codes.admit(r.Context(), r.RemoteAddr, providerFor) // each costs the provider a request
	if err != nil {
		return Identity{}, false, err
	}
	defer done()
	f, err := l.provider.get(r.Context())
	if err != nil {
		return Identity{}, false, err
	}
	tokens, err := l.provider.redeem(r.Context(), f, a, q.Get("code"))
	if errors.Is(err, errAnswer) {
		return Identity{}, false, l.codes.count(r.RemoteAddr, fmt.Errorf("%w: %w", ErrUnknown, err))
	}
	if err != nil {
		return Identity{}, false, err
	}
	who, err = tokens.identity(l.claim)
	return who, l.stepUp.has(tokens), err
}

// logout ends the session, so that no copy of its cookie is valid.
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
		l.events.Record(Event{Event: EventLogout, Address: r.RemoteAddr}.of(s.identity()))
		l.log.InfoContext(r.Context(), "logged out", "tenant", s.Tenant, "name", s.Name, "token", s.Token)
	}
	http.Redirect(w, r, "/login?out=1", http.StatusSeeOther)
}

// localPath is the path after a login: a path of ours, or the first page.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\") ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || u.Scheme != "" || u.Host != "" || u.User != nil ||
		strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/logout") {
		return "/"
	}
	return u.RequestURI()
}
