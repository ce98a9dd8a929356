package reviewui

import (
	"bytes"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
)

// themeAge is how long a browser stores the choice of light or dark.
const themeAge = 365 * 24 * time.Hour

//go:embed pages/*.html
var pageFiles embed.FS

// page is the common part of all pages, with the page's own part in Body.
type page struct {
	Title string
	Nav   string // the current entry of the navigation
	Who   string
	Role  string
	Realm string // the tenant
	Theme string // "light", "dark", "" for the system's
	Back  string // the page to return to after a change of the theme
	// StepUp leads to the login that decisions need and this user lacks, "" otherwise.
	StepUp string
	// LogOut reports that there is a session to end.
	LogOut  bool
	Live    bool // it subscribes to changes
	Version string
	Now     time.Time
	Message *message
	Body    any
}

// message is the result of a submitted form, at the top of the next page.
type message struct {
	Class string // "good", "bad", "calm"
	Text  string
	// About names the write that it is about, and Link leads to it, if the page is about others.
	About, Link string
}

// tokenMark is the placeholder for the form token while a page is rendered. It is random
// for each process, so that no text on a page equals it.
var tokenMark = rand.Text()

// pages are the templates, one set for each page. They call no function that turns text
// into markup.
var pages = mustPages("inbox", "write", "step", "destinations", "health", "stop", "activity", "search", "sagas", "saga", "help", "error", "many")

func mustPages(all ...string) map[string]*template.Template {
	sets := map[string]*template.Template{}
	base := template.Must(template.New("").Funcs(template.FuncMap{
		"static": func(name string) string { return names[name] },
		"token":  func() string { return tokenMark },
		"field":  func() string { return access.FormTokenField },
		"safe":   report.Safe,
		"clip":   func(n int, s string) string { return report.Clip(s, n) },
		"moment": report.Moment,
		"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"day":    func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
		"num":    func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) },
	}).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html", "pages/charts.html"))
	for _, name := range all {
		sets[name] = template.Must(template.Must(base.Clone()).ParseFS(pageFiles, "pages/"+name+".html"))
	}
	return sets
}

// page begins a page for the user.
func (d *app) page(v *visit, title, nav string, body any) page {
	p := page{Title: title, Nav: nav, Who: report.Clip(v.who.Name, maxName), Role: string(v.who.Role), Realm: report.Clip(v.who.Tenant, maxName),
		Theme: themeOf(v.r), LogOut: v.who.Via == "login", Version: d.opts.Version, Now: time.Now().UTC(), Body: body, Back: "/inbox"}
	if v.r.Method == http.MethodGet {
		p.Back = v.r.URL.RequestURI()
	}
	if errors.Is(v.who.May(access.Decide), access.ErrStepUp) {
		p.StepUp = d.stepUpPath(v.r)
	}
	return p
}

// show responds with a page.
func (d *app) show(v *visit, status int, name string, p page) error {
	set, ok := pages[name]
	if !ok {
		return fmt.Errorf("reviewui: no page %q", name)
	}
	var b bytes.Buffer
	if err := set.ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("reviewui: page %q: %w", name, err)
	}
	token := ""
	if d.opts.FormToken != nil {
		token = template.HTMLEscapeString(d.opts.FormToken(v.r))
	}
	text := bytes.ReplaceAll(b.Bytes(), []byte(tokenMark), []byte(token))
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(text) // the client may have disconnected
	}
	return nil
}

// to redirects to another page, with GET.
func (v *visit) to(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

const themeCookie = "readback_theme"

func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err == nil && (c.Value == "dark" || c.Value == "light") {
		return c.Value
	}
	return ""
}

// theme stores light or dark in the browser, and nothing else.
func (d *app) theme(v *visit) error {
	if to := v.form.Get("to"); to == "dark" || to == "light" {
		v.remember(themeCookie, to, themeAge)
	} else {
		v.remember(themeCookie, "", -time.Second)
	}
	return v.to(ownPath(v.form.Get("back")))
}

// remember stores a word in the browser; an age below zero deletes it. Only the appearance of
// pages depends on it.
func (v *visit) remember(name, word string, age time.Duration) {
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: word, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: v.r.TLS != nil, SameSite: http.SameSiteLaxMode})
}

// help shows how to use the review UI.
func (d *app) help(v *visit) error {
	return d.show(v, http.StatusOK, "help", d.page(v, "Help", "help", nil))
}

// home redirects to the inbox.
func (d *app) home(v *visit) error { return v.to("/inbox") }

// rights are the actions that a page offers to the user.
func (v *visit) rights() rights { return rights{v.may(access.Decide), v.may(access.Operate)} }

// rights are the forms that are on a page.
type rights struct{ Decide, Operate bool }
