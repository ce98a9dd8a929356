package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// session is a login by a call of its own, whose answer has a token, or sets a cookie, for the calls
// after it.
type session struct {
	request *request
	secrets []string // their names, in the request
	place   *jsonplace.Place
	header  string // of the answer, where the token is; "": at place
	cookie  string // the name of the cookie; "": it is a token
	must    []*condition
	ended   []answerRule
}

// meansEnded is what an answer means that says that the session has ended. Nothing was applied then.
const meansEnded = "ended"

// errEnded is wrapped by the error of a call whose session had ended.
var errEnded = errors.New("the session has ended")

var cookieName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func (l *loader) session(a *auth, f *fileSession) {
	s := &session{cookie: f.Cookie.Value, header: f.Token.Header.Value, place: l.singular(f.Token.Path), must: l.conditions(f.Must)}
	a.scheme, a.session = "session", s
	s.request = l.newRequest(f.Request, f.At, http.MethodPost, known{"param": named, "secret": named})
	if f.Request.GraphQL != nil || s.request.method != http.MethodPost {
		l.At(f.At, "is no call to log in with; want a POST with body, form or text, which has the secrets")
	}
	s.request.writtenOut(l)
	inAddress := s.request.holesOfAddress()
	for _, h := range s.request.holes() {
		if h.path[0] != "secret" {
			continue
		}
		if slices.Contains(inAddress, h) {
			l.At(f.At, "has {%s} in its address, which servers log; want it in body, form or text", h.name)
		}
		if name := l.secretName(yamlfile.Text{Value: h.path[1], Place: f.At}, f.At); name != "" && !slices.Contains(s.secrets, name) {
			s.secrets = append(s.secrets, name)
		}
	}
	if len(s.secrets) == 0 {
		l.At(f.At, "sends no secret; want {secret.NAME} in body, form or text, such as {secret.password}")
	}
	l.sessionCarried(a, f)
	for i := range f.Ended {
		l.ending(s, &f.Ended[i])
	}
	if len(f.Ended) == 0 {
		l.warn(f.At, "has no ended: a call that meets the end of the session is taken for a refused login, and all writes wait; want ended: {status: 401}, or what else this API answers then")
	}
}

// sessionCarried reads what of the answer the calls after it carry, and where.
func (l *loader) sessionCarried(a *auth, f *fileSession) {
	byToken := f.Token.Path.Value+f.Token.Header.Value != ""
	a.header, a.prefix = f.Header.Value, f.Prefix
	switch {
	case byToken == (f.Cookie.Value != ""):
		l.At(f.At, "want exactly one of token, such as token: $.token, and cookie, the name of one that the answer sets")
	case !byToken && (a.header != "" || a.prefix != ""):
		l.At(f.At, "has header or prefix, which are of a token; want them left out, since the cookie is sent as a cookie")
	case !byToken && !cookieName.MatchString(f.Cookie.Value):
		l.At(f.Cookie.Place, "is no name of a cookie; want one such as JSESSIONID")
	case !byToken && len(f.Must) == 0:
		l.Say(f.At.Line, f.At.Field+".must", "is missing; want what only a login that succeeded is answered with, such as [{path: $.result.uid, exists: true}]: many APIs set the cookie for any call")
	case f.Token.Path.Value != "" && f.Token.Header.Value != "" || f.Token.Match.Value != "":
		l.At(f.Token.At, "want a path, or {header: Name}")
	case f.Token.Header.Value != "" && !headerName(f.Token.Header.Value):
		l.At(f.Token.Header.Place, "is no name of a header")
	case byToken && a.header == "":
		a.header = "Authorization"
		if a.prefix == "" {
			a.prefix = "Bearer "
		}
	case byToken && !headerName(a.header):
		l.At(f.Header.Place, "is no name of a header")
	}
	l.prefix(a.prefix, f.At)
}

// ending reads by which answer an API says that the session has ended.
func (l *loader) ending(s *session, f *fileEnding) {
	r, _ := l.answer(&fileAnswer{At: f.At, Status: f.Status, Where: f.Where, Means: yamlfile.Text{Value: "login_refused", Place: f.At}})
	for _, status := range r.statuses {
		if r.where == nil && status >= 300 && status < 500 && status != http.StatusUnauthorized {
			l.At(f.At, "says that each %d means an ended session; other refusals can have that status: want a where that only an ended session fulfils (401 needs none)", status)
		}
	}
	r.means = meansEnded
	s.ended = append(s.ended, r)
}

// writtenOut refuses secrets in a body that are no placeholders.
func (r *request) writtenOut(l *loader) {
	var below func(name string, t *tree)
	below = func(name string, t *tree) {
		if text, _ := t.fixed.(string); text != "" && yamlfile.IsSecret(name) {
			l.At(t.at, "looks like a secret written out; want {secret.NAME}, and the secret where the configuration says")
		}
		for _, m := range t.members {
			below(m.name, m.value)
		}
		for _, e := range t.list {
			below("", e)
		}
	}
	if r.body != nil {
		below("", r.body)
	}
}

// holesOfAddress lists the placeholders of a request that are part of its URL.
func (r *request) holesOfAddress() []*hole {
	of := &request{route: r.route, query: r.query}
	return of.holes()
}

// endings are the answers by which the API says that a session has ended; none for other logins.
func (a *auth) endings() []answerRule {
	if a.session == nil {
		return nil
	}
	return a.session.ended
}

// ofRead is the error of a read whose answer says that the session has ended.
func (a *auth) ofRead(got httpsend.Answer, as *shape, err error) error {
	for _, r := range a.endings() {
		if !slices.Contains(r.statuses, got.Status) {
			continue
		}
		if r.where != nil {
			doc, notJSON := as.decode(got)
			if holds, _ := r.where.holds(doc, notJSON == nil, got.Header); !holds {
				continue
			}
		}
		return r.verdict(got, err)
	}
	return err
}

// logIn makes the call that logs in. No error of it is of the write for which it is made, unless the
// login is refused.
func (c *Connector) logIn(ctx context.Context, s *session) (*token, error) {
	secrets := map[string]any{}
	for _, name := range s.secrets {
		secret, err := c.fetchSecret(ctx, name)
		if err != nil {
			return nil, err
		}
		secrets[name] = secret
	}
	v := c.given()
	v["secret"] = secrets
	var req *http.Request
	d, err := s.request.fill(filling{values: v})
	if err == nil {
		var u *url.URL
		if u, err = c.url(d.path, d.query); err == nil {
			// Like the calls of token endpoints it is none of the read's.
			req, _, err = c.request(connectors.CountCalls(ctx), &login{auth: &auth{}}, d, u)
		}
	}
	if err != nil {
		return nil, errors.New("the login cannot be made: " + err.Error()) // it is not about the intent
	}
	a, err := c.client.Write(req)
	var e *connectors.Error
	switch refused := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}; {
	case slices.Contains(refused, a.Status):
		return nil, connectors.LoginRefused(a.Code(), fmt.Errorf("the login was answered with %d", a.Status))
	case errors.As(err, &e):
		return nil, fmt.Errorf("the login: %w", e.Err)
	case err != nil:
		return nil, fmt.Errorf("the login: %w", err)
	}
	return s.opened(c, a)
}

// opened is what the answer to a login has, if it succeeded.
func (s *session) opened(c *Connector, a httpsend.Answer) (*token, error) {
	doc, notJSON := s.request.shape.decode(a)
	t := s.carried(doc, a.Header)
	c.masks.Add(t.value) // whatever else the answer says
	for _, m := range s.must {
		holds, known := m.holds(doc, notJSON == nil, a.Header)
		if !known {
			return nil, fmt.Errorf("the login was answered with %d, and %s cannot be read", a.Status, m.subject())
		}
		if !holds {
			return nil, connectors.LoginRefused(a.Code(), fmt.Errorf("the login was answered with %d, and what must hold of %s does not", a.Status, m.subject()))
		}
	}
	switch {
	case t.value == "" && notJSON != nil && s.place != nil:
		return nil, fmt.Errorf("the login was answered with %d, and what cannot be read", a.Status)
	case t.value == "":
		return nil, connectors.LoginRefused(a.Code(), fmt.Errorf("the login was answered with %d, and without a session", a.Status))
	case len(t.value) > maxHeader || strings.ContainsFunc(t.value, isControl):
		return nil, errors.New("the session is too long, or has a control character")
	}
	return t, nil
}

// carried is what the calls after a login carry of its answer.
func (s *session) carried(doc any, h http.Header) *token {
	t := &token{}
	switch {
	case s.cookie != "":
		for _, c := range (&http.Response{Header: h}).Cookies() {
			if c.Name == s.cookie && c.MaxAge >= 0 {
				t.value, t.cookie = c.Value, &http.Cookie{Name: c.Name, Value: c.Value, Quoted: c.Quoted}
			}
		}
	case s.header != "":
		t.value = h.Get(s.header)
	default:
		v, _ := s.place.Value(doc)
		t.value, _ = v.(string)
	}
	return t
}

// words say how the login works.
func (s *session) words() string {
	has := "has the token"
	if s.cookie != "" {
		has = "sets the cookie " + s.cookie
	}
	text := fmt.Sprintf("The login is a call of its own, %s, with the secret %s; its answer %s that the calls after it carry. The login succeeded only where the answer has that", s.request.written(), strings.Join(s.secrets, " and "), has)
	for _, m := range s.must {
		text += ", and what must hold of " + m.subject()
	}
	for i, r := range s.ended {
		text += map[bool]string{true: ". A session has ended where a call is answered ", false: " or "}[i == 0] + statuses(r.statuses)
		if r.where != nil {
			text += " with a certain " + r.where.subject()
		}
	}
	if len(s.ended) > 0 {
		text += ": nothing of the call was applied then, and it is made once more by a new session"
	}
	return text + "."
}
