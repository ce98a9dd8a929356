package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
)

// Bounds of requests.
const (
	// defaultBody is how many bytes of a body can be read by default: more than any route
	// accepts, as each has a bound of its own.
	defaultBody = 2 << 20
	// maxAddress bounds the address of a request in bytes: a search, and the path after a
	// login.
	maxAddress = 8 << 10
	// maxHeaders bounds the lines of its header: browsers send twenty.
	maxHeaders = 100
	// maxCookies bounds its cookies in bytes. Ours have less than two thousand; other
	// cookies of the same host count too.
	maxCookies = 16 << 10
	// hstsFor is how long browsers use TLS alone: a year, as is common.
	hstsFor = 365 * day
)

// ProtectOptions of [Protect]. The zero value is valid.
type ProtectOptions struct {
	// MaxBody is how many bytes of a body can be read. Default 2 MiB. A handler that
	// reads a body has a bound of its own and responds with its own kind of problem,
	// whether the length was announced or not.
	MaxBody int64
	// Proxies are the addresses of proxies in front, whose X-Forwarded-For is trusted.
	// Default none: a caller's address is that of its connection.
	Proxies []netip.Prefix
	// Logger logs panics, with the route and the stack; never a body, a query or a
	// header. Default none.
	Logger *slog.Logger
}

// Protect wraps all handlers of the server. It refuses requests that a page of another
// origin makes a browser send, headers that are too large, method override headers, and
// secrets in addresses. It sets the headers that stop browsers from sniffing types,
// framing and leaking referrers. It turns a panic into a response. A handler sets its own
// Content-Security-Policy and Cache-Control where these are too narrow.
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
	r.RemoteAddr = clientAddress(r, p.options.Proxies)
	g := &begun{ResponseWriter: w}
	defer func() { p.catch(recover(), g, r) }()
	if status, why := p.refuse(r); status != 0 {
		Refusal(g, r, status, why)
		return
	}
	r.Body = http.MaxBytesReader(g, r.Body, p.options.MaxBody)
	p.inner.ServeHTTP(g, r)
}

func setHeaders(h http.Header, tls bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	// Not no-referrer: with it browsers send the origin null with our own forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if tls {
		h.Set("Strict-Transport-Security", fmt.Sprintf("max-age=%d", int(hstsFor.Seconds())))
	}
}

// overrides are headers by which some frameworks treat a request as one of another
// method, after earlier checks of the method.
var overrides = []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}

// refuse returns why a request is refused before it is handled; 0 if it is not.
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

// encodedTwice reports whether a decoded path has a dot or a slash that is still encoded:
// a program that decodes it once more, such as a proxy, sees another path.
func encodedTwice(u *url.URL) bool {
	path := strings.ToLower(u.Path)
	for strings.Contains(path, "%25") {
		path = strings.ReplaceAll(path, "%25", "%")
	}
	return strings.Contains(path, "%2e") || strings.Contains(path, "%2f") || strings.Contains(path, "%5c")
}

// hasSecret reports whether an address holds a secret, in any encoding.
func hasSecret(u *url.URL) bool {
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		query = u.RawQuery
	}
	return u.Query().Has("access_token") || secretShape.MatchString(query) || secretShape.MatchString(u.Path)
}

// byBearerAlone reports whether no header that a browser adds by itself authenticates the
// request: no page of another origin can send this header by itself. A browser does add
// HTTP Basic, also with a token as its password.
func byBearerAlone(r *http.Request) bool {
	_, err := bearer(r.Header)
	_, _, basic := r.BasicAuth()
	return err == nil && !basic && len(r.Header.Values("Cookie")) == 0
}

// catch turns a panic into a response that reveals nothing about it. A response that has
// begun is aborted, so that no client takes its beginning for all of it.
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
	Refusal(g, r, http.StatusInternalServerError, "something went wrong here; it is in the log of the server")
}

// Problem responds with a problem document of RFC 9457.
func Problem(w http.ResponseWriter, status int, detail string) {
	text, err := json.Marshal(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail})
	if err != nil {
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that disconnected needs no response
}

// begun records whether a response has begun.
type begun struct {
	http.ResponseWriter
	began  bool
	status int
}

func (b *begun) WriteHeader(status int) {
	if !b.began && status >= http.StatusOK {
		b.began, b.status = true, status
	}
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(text []byte) (int, error) {
	b.began = true
	return b.ResponseWriter.Write(text)
}

// Flush is for handlers that look for an [http.Flusher].
func (b *begun) Flush() {
	b.began = true
	_ = http.NewResponseController(b.ResponseWriter).Flush() // a client that disconnected needs no response
}

// Unwrap is for [http.ResponseController].
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }
