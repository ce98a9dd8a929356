package access

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
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
	p.Styles = template.CSS(styles)
	if p.Next == "" {
		p.Next = "/"
	}
	var b bytes.Buffer
	if err := loginTemplate.Execute(&b, p); err != nil {
		l.log.ErrorContext(r.Context(), "the page of logins cannot be made", "error", err)
		Problem(w, http.StatusInternalServerError, "something went wrong here; it is in the log of the server")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that disconnected needs no response
}

// refuse shows a user in plain words why the login failed.
func (l *Logins) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, header := Refused(err)
	for name, values := range header {
		w.Header()[name] = values
	}
	l.write(w, r, status, page{Title: titleOf(status), Lines: words(err, status), Wrong: true})
}

func titleOf(status int) string {
	switch status {
	case http.StatusForbidden:
		return "Not for you"
	case http.StatusServiceUnavailable:
		return "Not possible now"
	case http.StatusTooManyRequests:
		return "Too many attempts"
	case http.StatusUnauthorized:
		return "That did not work"
	}
	return "Something went wrong"
}

// plain are errors for which a user needs more than the status.
var plain = []struct {
	is    error
	words []string
}{
	{errNotBegun, []string{"This login was not begun in this browser, was begun under another address of this server, or took more than ten minutes.", "Begin again."}},
	{errAnswer, []string{"What the provider of logins answered does not prove who you are. Begin again; if it stays so, the operator of this server finds the reason in its log."}},
	{errNoProvider, []string{"There is no provider of logins here."}},
	{errNoForm, []string{"This server takes no logins with a token."}},
	{errNoPeople, []string{"Tokens of people are not accepted here: the configuration of this server does not have server.person_tokens: true."}},
	{errAgent, []string{"This is the token of an agent. An agent cannot log in here: people have tokens of their own."}},
	{errNoFormToken, []string{"The browser did not say which page asks for this. Open the page again and send its form. Nothing was done."}},
	{errOrigin, []string{"A page of another site asked for this. Nothing was done."}},
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
		return []string{"You have proven who you are, but nothing here is for you: no rule of this server gives you a role.", "Its operator can change that."}
	case http.StatusServiceUnavailable:
		return []string{"Who you are cannot be checked now. Try again in a moment."}
	case http.StatusTooManyRequests:
		return []string{"From where you are there were too many attempts that did not work. Wait a minute."}
	case http.StatusUnauthorized:
		return []string{"The token is not known, has expired or was revoked, or the provider did not let you in."}
	}
	return []string{"The operator of this server finds the reason in its log."}
}
