package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
)

// ProtectOptions of [Protect]. The zero value works.
type ProtectOptions struct {
	// MaxBody is how many bytes of a body can be read. Default 2 MiB. What reads
	// one has a bound of its own and answers with its own kind of problem, whether
	// the length was announced or not.
	MaxBody int64
	// Logger gets panics, with the route and the stack; never a body, a query or
	// a header. Default none.
	Logger *slog.Logger
}

// Protect stands around everything that is served. It refuses what a page of
// another origin makes a browser ask for, headers that are too large, names of
// other methods in headers, and secrets in addresses; it sets the headers that
// keep browsers from guessing, framing and telling; and it makes an answer of a
// panic. A handler sets its own Content-Security-Policy and Cache-Control where
// these are too narrow.
func Protect(h http.Handler, o ProtectOptions) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultBody
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &protected{inner: h, options: o, origins: http.NewCrossOriginProtection()}
}

type protected struct {
	inner   http.Handler
	options ProtectOptions
	origins *http.CrossOriginProtection
}

func (p *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header(), r.TLS != nil)
	g := &begun{ResponseWriter: w}
	defer func() { p.catch(recover(), g, r) }()
	if status, why := p.refuse(r); status != 0 {
		problem(g, status, why)
		return
	}
	r.Body = http.MaxBytesReader(g, r.Body, p.options.MaxBody)
	p.inner.ServeHTTP(g, r)
}

func setHeaders(h http.Header, tls bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	// Not no-referrer: with it browsers call the origin of our own forms null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if tls {
		h.Set("Strict-Transport-Security", fmt.Sprintf("max-age=%d", int(hstsFor.Seconds())))
	}
}

// overrides are headers by which some frameworks take a request for one of
// another method, past whoever looked at it before.
var overrides = []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}

// refuse says why a request is not even looked at; 0 when it is.
func (p *protected) refuse(r *http.Request) (status int, why string) {
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	cookies := strings.Join(r.Header.Values("Cookie"), "; ")
	switch {
	case r.Method == http.MethodTrace || r.Method == http.MethodConnect:
		return http.StatusMethodNotAllowed, "the method is not served"
	case len(r.URL.RequestURI()) > maxAddress:
		return http.StatusRequestURITooLong, fmt.Sprintf("the address has more than %d bytes", maxAddress)
	case lines > maxHeaders || len(cookies) > maxCookies:
		return http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("want at most %d header lines, and %d bytes of cookies", maxHeaders, maxCookies)
	case encodedTwice(r.URL):
		return http.StatusBadRequest, "the path has a dot or a slash that is percent-encoded twice; encode it once"
	case hasSecret(r.URL):
		return http.StatusBadRequest, "there is a token in the address, where it is logged and kept; revoke it, and send another as Authorization: Bearer"
	}
	for _, name := range overrides {
		if len(r.Header.Values(name)) > 0 {
			return http.StatusBadRequest, name + " is not taken; send the request with the method that is meant"
		}
	}
	if p.origins.Check(r) != nil && !byBearerAlone(r) {
		return http.StatusForbidden, "a page of another origin asks for this"
	}
	return 0, ""
}

// encodedTwice reports whether a path has a dot or a slash that is still encoded
// after it was decoded: what decodes it once more, a proxy say, takes it for another
// path.
func encodedTwice(u *url.URL) bool {
	path := strings.ToLower(u.Path)
	for strings.Contains(path, "%25") {
		path = strings.ReplaceAll(path, "%25", "%")
	}
	return strings.Contains(path, "%2e") || strings.Contains(path, "%2f") || strings.Contains(path, "%5c")
}

// hasSecret reports whether an address holds a secret, however it is written
// there.
func hasSecret(u *url.URL) bool {
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		query = u.RawQuery
	}
	return u.Query().Has("access_token") || secretShape.MatchString(query) || secretShape.MatchString(u.Path)
}

// byBearerAlone reports whether nothing that a browser adds by itself says who
// asks: no page of another origin can send this header unasked. A browser does add
// HTTP Basic, also with a token as its password.
func byBearerAlone(r *http.Request) bool {
	_, err := bearer(r.Header)
	_, _, basic := r.BasicAuth()
	return err == nil && !basic && len(r.Header.Values("Cookie")) == 0
}

// catch makes an answer of a panic, which tells nothing about it. One that has
// begun is broken off, so that nobody takes its beginning for all of it.
func (p *protected) catch(caught any, g *begun, r *http.Request) {
	if caught == nil {
		return
	}
	if err, ok := caught.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(caught)
	}
	p.options.Logger.ErrorContext(r.Context(), "a request panicked", "method", r.Method, "route", r.Pattern,
		"panic", secretShape.ReplaceAllString(fmt.Sprint(caught), secretPrefix+"…"), "stack", string(debug.Stack()))
	if g.began {
		panic(http.ErrAbortHandler)
	}
	problem(g, http.StatusInternalServerError, "something went wrong here; it is in the log of the server")
}

// problem answers as RFC 9457 has it.
func problem(w http.ResponseWriter, status int, detail string) {
	text, err := json.Marshal(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail})
	if err != nil {
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who is gone needs no answer
}

// begun knows whether an answer has begun.
type begun struct {
	http.ResponseWriter
	began bool
}

func (b *begun) WriteHeader(status int) {
	b.began = b.began || status >= http.StatusOK
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(text []byte) (int, error) {
	b.began = true
	return b.ResponseWriter.Write(text)
}

// Flush is for handlers that look for it themselves.
func (b *begun) Flush() {
	b.began = true
	_ = http.NewResponseController(b.ResponseWriter).Flush() // who is gone needs no answer
}

// Unwrap is for [http.ResponseController].
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }
