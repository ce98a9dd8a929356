package reviewui

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/readback-go/readback/internal/access"
)

// route is one route of the desk.
type route struct {
	method, pattern string
	act             access.Act // "" for whoever asks
	serve           func(*desk, *visit) error
	endless         bool // a stream: it bounds its own time
}

// routes is all that can be asked of the desk.
var routes = []route{
	{method: "GET", pattern: "/{$}", act: access.Trace, serve: (*desk).home},
	{method: "GET", pattern: "/inbox", act: access.Trace, serve: (*desk).inbox},
	{method: "GET", pattern: "/writes/{id}", act: access.Trace, serve: (*desk).write},
	{method: "GET", pattern: "/writes/{id}/receipt", act: access.Trace, serve: (*desk).receipt},
	{method: "POST", pattern: "/writes/{id}/decision", act: access.Decide, serve: (*desk).decide},
	{method: "POST", pattern: "/writes/{id}/yield", act: access.Operate, serve: (*desk).yield},
	{method: "GET", pattern: "/workflows/{workflow}/steps/{step}", act: access.Trace, serve: (*desk).step},
	{method: "POST", pattern: "/workflows/{workflow}/steps/{step}/decision", act: access.Decide, serve: (*desk).decideStep},
	{method: "GET", pattern: "/destinations", act: access.Trace, serve: (*desk).destinations},
	{method: "POST", pattern: "/destinations/stop", act: access.Operate, serve: (*desk).stop},
	{method: "POST", pattern: "/destinations/release", act: access.Operate, serve: (*desk).release},
	{method: "GET", pattern: "/activity", act: access.Trace, serve: (*desk).activity},
	{method: "GET", pattern: "/search", act: access.Trace, serve: (*desk).search},
	{method: "GET", pattern: "/sagas", act: access.Trace, serve: (*desk).listSagas},
	{method: "GET", pattern: "/sagas/{id}", act: access.Trace, serve: (*desk).saga},
	{method: "POST", pattern: "/sagas/{id}/cancel", act: access.Operate, serve: (*desk).cancelSaga},
	{method: "POST", pattern: "/sagas/{id}/close", act: access.Operate, serve: (*desk).closeSaga},
	{method: "GET", pattern: "/help", act: access.Trace, serve: (*desk).help},
	{method: "POST", pattern: "/theme", act: access.Trace, serve: (*desk).theme},
	{method: "GET", pattern: "/updates", act: access.Trace, serve: (*desk).updates, endless: true},
	{method: "GET", pattern: "/static/{file...}", serve: (*desk).static},
}

// Routes lists what can be asked of the desk, and what it takes.
func Routes() []access.Route {
	all := make([]access.Route, 0, len(routes))
	for _, r := range routes {
		all = append(all, access.Route{Method: r.method, Pattern: r.pattern, Act: r.act})
	}
	return all
}

// visit is one request of somebody.
type visit struct {
	w    http.ResponseWriter
	r    *http.Request
	who  access.Identity
	form url.Values // of a POST
}

// serve is around every request: it finds out who asks and whether they may,
// and makes a page of what goes wrong.
func (d *desk) serve(one route) http.HandlerFunc {
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

// admit lets a request in, or not.
func (d *desk) admit(v *visit, one route) error {
	if one.act == "" {
		return nil
	}
	who, err := d.opts.Who.Resolve(v.r)
	if err == nil {
		v.who = who
		err = who.May(one.act)
	}
	if v.r.Method == http.MethodPost { // read all the same: what was typed is given back
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
		if len(values) != 1 { // one that says two things says nothing
			return errForm
		}
	}
	v.form = v.r.PostForm
	return nil
}

// may reports whether whoever asks may do something.
func (v *visit) may(a access.Act) bool { return v.who.May(a) == nil }

// guarded sets what keeps a page from doing what it should not. Nothing is run
// or shown but what this program serves, nothing of it is kept, and it stands in
// no other page.
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
