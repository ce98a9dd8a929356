package reviewui

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/access"
)

const (
	// pageTime is how long one page may take: a user waits for it.
	pageTime = 20 * time.Second
	// maxForm is how many bytes a form may have: a reason, and names.
	maxForm = 32 << 10
)

// route is one route of the review UI.
type route struct {
	method, pattern string
	act             access.Act // "" for every caller
	serve           func(*app, *visit) error
	endless         bool // a stream: it bounds its own time
}

// routes are all routes of the review UI.
var routes = []route{
	{method: "GET", pattern: "/{$}", act: access.Trace, serve: (*app).home},
	{method: "GET", pattern: "/inbox", act: access.Trace, serve: (*app).inbox},
	{method: "GET", pattern: "/writes/{id}", act: access.Trace, serve: (*app).write},
	{method: "GET", pattern: "/writes/{id}/receipt", act: access.Trace, serve: (*app).receipt},
	{method: "POST", pattern: "/writes/{id}/decision", act: access.Decide, serve: (*app).decide},
	{method: "POST", pattern: "/inbox/decisions", act: access.Decide, serve: (*app).decideMany},
	{method: "POST", pattern: "/writes/{id}/assignment", act: access.Decide, serve: (*app).assign},
	{method: "GET", pattern: "/writes/{id}/next", act: access.Trace, serve: (*app).next},
	{method: "POST", pattern: "/writes/{id}/yield", act: access.Operate, serve: (*app).yield},
	{method: "GET", pattern: "/workflows/{workflow}/steps/{step}", act: access.Trace, serve: (*app).step},
	{method: "POST", pattern: "/workflows/{workflow}/steps/{step}/decision", act: access.Decide, serve: (*app).decideStep},
	{method: "GET", pattern: "/destinations", act: access.Trace, serve: (*app).destinations},
	{method: "GET", pattern: "/destinations/{name}/health", act: access.Trace, serve: (*app).health},
	{method: "GET", pattern: "/destinations/stop", act: access.Operate, serve: (*app).previewStop},
	{method: "POST", pattern: "/destinations/stop", act: access.Operate, serve: (*app).stop},
	{method: "POST", pattern: "/destinations/release", act: access.Operate, serve: (*app).release},
	{method: "GET", pattern: "/activity", act: access.Trace, serve: (*app).activity},
	{method: "GET", pattern: "/search", act: access.Trace, serve: (*app).search},
	{method: "GET", pattern: "/sagas", act: access.Trace, serve: (*app).listSagas},
	{method: "GET", pattern: "/sagas/{id}", act: access.Trace, serve: (*app).saga},
	{method: "POST", pattern: "/sagas/{id}/cancel", act: access.Operate, serve: (*app).cancelSaga},
	{method: "POST", pattern: "/sagas/{id}/close", act: access.Operate, serve: (*app).closeSaga},
	{method: "GET", pattern: "/help", act: access.Trace, serve: (*app).help},
	{method: "POST", pattern: "/theme", act: access.Trace, serve: (*app).theme},
	{method: "GET", pattern: "/updates", act: access.Trace, serve: (*app).updates, endless: true},
	{method: "GET", pattern: "/static/{file...}", serve: (*app).static},
}

// Routes lists the routes of the review UI, with the permission that each needs.
func Routes() []access.Route {
	all := make([]access.Route, 0, len(routes))
	for _, r := range routes {
		all = append(all, access.Route{Method: r.method, Pattern: r.pattern, Act: r.act})
	}
	return all
}

// visit is one request.
type visit struct {
	w    http.ResponseWriter
	r    *http.Request
	who  access.Identity
	form url.Values // of a POST
}

// serve wraps every request: it authenticates the caller, checks the permission, and
// shows errors as pages.
func (d *app) serve(one route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r}
		if !one.endless {
			ctx, cancel := context.WithTimeout(r.Context(), pageTime)
			defer cancel()
			v.r = r.WithContext(ctx)
		}
		guarded(w.Header())
		if err := d.admit(v, one); err != nil {
			d.fail(v, err)
			return
		}
		if err := one.serve(d, v); err != nil {
			d.fail(v, err)
		}
	}
}

// admit admits a request, or refuses it.
func (d *app) admit(v *visit, one route) error {
	if one.act == "" {
		return nil
	}
	who, err := d.opts.Who.Resolve(v.r)
	if err == nil {
		v.who = who
		err = who.May(one.act)
	}
	if v.r.Method == http.MethodPost { // read in any case: the typed text is returned
		if wrong := v.read(); err == nil {
			err = wrong
		}
	}
	if err != nil {
		return err
	}
	if d.origin.Check(v.r) != nil {
		return errOrigin
	}
	return nil
}

// read reads the form of a POST, and nothing of the query.
func (v *visit) read() error {
	if kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return errForm
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return errForm
	}
	for _, values := range v.r.PostForm {
		if len(values) != 1 { // a repeated field is ambiguous
			return errForm
		}
	}
	v.form = v.r.PostForm
	return nil
}

// may reports whether the user may do something.
func (v *visit) may(a access.Act) bool { return v.who.May(a) == nil }

// guarded sets the security headers of a page. Only this program's resources are run or
// shown, nothing is cached, and no other page can frame it.
func guarded(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if vary := h.Values("Vary"); !slices.Contains(vary, "Cookie") {
		h.Add("Vary", "Cookie")
	}
}
