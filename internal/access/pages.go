package access

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"strings"
)

//go:embed login.css
var styles string

//go:embed login.html.tmpl
var loginPage string

var loginTemplate = template.Must(template.New("login").Parse(loginPage))

// page is shown to a user who is not logged in.
type page struct {
	Title string
	Lines []string
	// Wrong marks a failure.
	Wrong bool
	// Next is the path after the login.
	Next string
	// Provider and Form are the ways to log in.
	Provider, Form bool
	// Unkept marks a browser that will keep no session.
	Unkept bool
	// Home shows a link to the inbox.
	Home   bool
	Styles template.CSS
}

// pagePolicy allows the page its own styles and forms, and nothing else.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(styles))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

func (l *Logins) write(w http.ResponseWriter, r *http.Request, status int, p page) {
	p.Provider, p.Form = l.provider != nil, l.form
	p.Unkept = l.secure(r) && r.TLS == nil && !l.https && r.Header.Get("X-Forwarded-Proto") != "https"
	if p.Next == "" {
		p.Next = "/"
	}
	if err := writePage(w, status, p); err != nil {
		l.log.ErrorContext(r.Context(), "the page of logins cannot be made", "error", err)
		Problem(w, http.StatusInternalServerError, "something went wrong here; it is in the log of the server")
	}
}

func writePage(w http.ResponseWriter, status int, p page) error {
	p.Styles = template.CSS(styles)
	var b bytes.Buffer
	if err := loginTemplate.Execute(&b, p); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that disconnected needs no response
	return nil
}

// Refusal responds to a request that is refused before it is handled: browsers that open a
// page get one, programs a problem document. It repeats nothing of the request.
func Refusal(w http.ResponseWriter, r *http.Request, status int, why string) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		Problem(w, status, why)
		return
	}
	lines := []string{strings.ToUpper(why[:1]) + why[1:] + ".", "Nothing was done."}
	switch status {
	case http.StatusForbidden:
		lines = append(lines, "If you sent a form of readback, go back, reload the page and send it again. If you did not, another site tried to act in your name.")
	case http.StatusInternalServerError:
		lines = []string{"This is a fault of readback, not yours. The operator of this server finds the reason in its log.", "Read what you changed again before you repeat it."}
	case http.StatusServiceUnavailable:
		lines = append(lines, "Recorded writes are safe. Try again in a moment.")
	default:
		lines = append(lines, "Go back, or open the inbox.")
	}
	if writePage(w, status, page{Title: titleOf(status), Lines: lines, Wrong: true, Home: true}) != nil {
		Problem(w, status, why)
	}
}

// refuse shows a user in plain words why the login failed.
func (l *Logins) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, header := Refused(err)
	for name, values := range header {
		w.Header()[name] = values
	}
	next := r.URL.Query().Get("next")
	if r.PostForm.Has("next") { // the page that was asked for is not lost with a wrong token
		next = r.PostForm.Get("next")
	}
	l.write(w, r, status, page{Title: titleOf(status), Lines: words(err, status), Wrong: true, Next: localPath(next)})
}

func titleOf(status int) string {
	switch status {
	case http.StatusForbidden:
		return "Not permitted"
	case http.StatusServiceUnavailable:
		return "Not available now"
	case http.StatusTooManyRequests:
		return "Too many attempts"
	case http.StatusUnauthorized:
		return "Not logged in"
	}
	return "Something went wrong"
}

// plain are errors for which a user needs more than the status.
var plain = []struct {
	is    error
	words []string
}{
	{errNotBegun, []string{"This login took more than ten minutes, or began in another browser or under another address of this server.", "Begin again."}},
	{errAnswer, []string{"The login provider's answer does not prove who you are.", "Begin again. If it fails again, ask the operator of this server: the reason is in its log."}},
	{errNoProvider, []string{"This server has no login provider.", "Log in with a token."}},
	{errNoForm, []string{"This server does not accept logins with a token.", "Log in with your account."}},
	{errNoPeople, []string{"This server does not accept people's tokens.", "Ask its operator: server.person_tokens: true in the configuration allows them."}},
	{errAgent, []string{"This is the token of an agent. Agents cannot log in here.", "Use your own token, of a reviewer, an operator or an auditor."}},
	{ErrNoFormToken, []string{"The form belongs to an earlier session, or the browser did not say which page sent it. Nothing was done.", "Open the page again and send its form."}},
	{errOrigin, []string{"A page of another site sent this request. Nothing was done.", "Open readback and do it there."}},
}

// words describes an error to a user. It does not repeat text from a provider or a
// caller.
func words(err error, status int) []string {
	for _, each := range plain {
		if errors.Is(err, each.is) {
			return each.words
		}
	}
	switch status {
	case http.StatusForbidden:
		return []string{"Your login is correct, but no rule of this server gives you a role.", "Ask its operator for one."}
	case http.StatusServiceUnavailable:
		return []string{"Your login cannot be checked now: the ledger or the login provider does not answer.", "Try again in a moment. Your token or account is not the reason."}
	case http.StatusTooManyRequests:
		return []string{"Too many logins from your network address failed.", "Wait a minute, then try again."}
	case http.StatusUnauthorized:
		return []string{"The token is unknown, has expired or was revoked, or the login provider refused you.", "Check that you copied the whole token, or ask the operator of this server for a new one."}
	}
	return []string{"The operator of this server finds the reason in its log."}
}
