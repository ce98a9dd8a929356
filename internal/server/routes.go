package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	v1 "github.com/readback-go/readback/internal/httpapi/v1"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/reviewui"
	"github.com/readback-go/readback/internal/service"
)

// comeBack is the Retry-After while nothing can be served.
const comeBack = 2 * time.Second

// loginPath is the login page.
const loginPath = "/login"

// route is one entry point of the server: everything under a path, or the path alone.
type route struct {
	path    string
	handler http.Handler
	// releases: when the server stops, it releases its own waiting callers, with a better
	// hint than a cut connection. ends: it ends its event streams as well.
	releases, ends bool
}

// fits reports whether a path belongs to the route. A route that ends with a slash covers
// all paths below it.
func (d route) fits(path string) bool {
	return path == d.path || strings.HasSuffix(d.path, "/") && strings.HasPrefix(path, d.path)
}

// mux is the one handler of a server. Until the services exist it responds that it cannot
// serve yet; health is always served.
type mux struct {
	routes  atomic.Pointer[[]route]
	reached atomic.Pointer[func(context.Context) error]
	health  http.Handler
	log     *slog.Logger
	closing context.Context // ends when the server stops
	close   context.CancelFunc
}

// routes are the handlers of the paths; the first that fits.
func (sv *server) routes(ctx context.Context, h *Services) ([]route, error) {
	known, logins, err := sv.who(ctx, h)
	if err != nil {
		return nil, err
	}
	shares := access.NewShares(sv.Config.Server.Limits, nil, h.meter.Limited)
	who := shares.Resolver(known)
	from, err := h.issuer()
	if err != nil {
		return nil, err
	}
	on, log := sv.Config.Server, h.Instance.Log
	all := []route{{path: "/metrics", handler: permitted(who, h.Instance.Tenant, access.Trace, http.MethodGet, h.meter.Numbers(log))}}
	for _, r := range logins.Routes() {
		all = append(all, route{path: r.Pattern, handler: logins})
	}
	if on.Gate {
		all = append(all, route{path: "/api/v1/", handler: httpapi.New(h.gate, &httpapi.Options{Who: who, Logger: log})})
	}
	if on.API {
		o := &v1.Options{Who: who, MaxWait: on.MaxWait, Version: Built().Version, Closing: sv.mux.closing.Done(), Logger: log}
		if from != nil {
			o.Receipts = from
		}
		api := v1.New(h.Service, o)
		all = append(all, route{path: "/v1/", handler: api, releases: true, ends: true}, route{path: "/openapi.json", handler: api})
	}
	if on.MCP {
		models, err := h.MCP(mcpapi.Config{Hosts: publicHosts(on.PublicURL), Closing: sv.mux.closing.Done()})
		if err != nil {
			return nil, err
		}
		all = append(all, route{path: mcpapi.Path, handler: models.HTTP(who), releases: true})
		for _, g := range sv.Config.MCP.Gateways {
			gate, err := h.Gateway(ctx, g, mcpgate.Config{Hosts: publicHosts(on.PublicURL), Closing: sv.mux.closing.Done()})
			if err != nil {
				return nil, err
			}
			all = append(all, route{path: mcpapi.Path + "/" + g.Name, handler: gate.HTTP(who), releases: true})
		}
	}
	if on.ReviewUI {
		o := &reviewui.Options{Who: who, FormToken: logins.FormToken, Version: Built().Version, Logger: log}
		if from != nil && from.Signing.Signer != nil {
			o.Receipts = from
		}
		if !sv.Dev {
			o.LoginPath = loginPath
		}
		all = append(all, route{path: "/", handler: reviewui.New(h.Service, o)}) // everything else
	}
	for i, d := range all {
		all[i].handler = h.events.Around(shares.Handler(access.Watch(d.handler, known))) // a long request ends with its token
	}
	return all, nil
}

// publicHosts is the host name in the public address, if there is one.
func publicHosts(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{u.Host}
}

// who authenticates the sender of a request: by an API token, by a login, and on this
// machine alone by the request's own headers.
func (sv *server) who(ctx context.Context, h *Services) (access.Resolver, *access.Logins, error) {
	tokens := access.NewTokens(h.Instance.Ledger, &access.TokenOptions{Now: h.Instance.Clock, Logger: h.Instance.Log, People: sv.Config.Server.PersonTokens})
	o, err := sv.Config.Logins(h.Instance.Env.Get)
	if err != nil {
		return nil, nil, err
	}
	if o.Tokens, o.Events, o.Logger = tokens, h.events, h.Instance.Log; sv.Dev && len(o.Key) == 0 {
		o.Key = []byte(rand.Text() + rand.Text()) // no caller needs to log in here
	}
	logins, err := access.NewLogins(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	known := []access.Resolver{tokens, logins}
	if sv.Dev {
		known = append(known, access.Dev(h.Instance.Tenant))
	}
	return h.events.Recording(logins.Deciding(access.First(known...))), logins, nil
}

// permitted serves callers who may do act, by one method.
func permitted(who access.Resolver, tenant string, act access.Act, method string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			v1.Refuse(w, http.StatusMethodNotAllowed, "method-not-allowed", "Want "+method, "")
			return
		}
		id, err := who.Resolve(r)
		if err == nil {
			err = id.May(act)
		}
		if err == nil && id.Tenant != tenant {
			err = service.ErrTenant
		}
		if err != nil {
			status, header := access.Refused(err)
			maps.Copy(w.Header(), header)
			v1.Refuse(w, status, strings.ToLower(strings.ReplaceAll(http.StatusText(status), " ", "-")), http.StatusText(status), "")
			return
		}
		h.ServeHTTP(w, r)
	})
}

func newMux(log *slog.Logger) *mux {
	m := &mux{log: log}
	m.closing, m.close = context.WithCancel(context.Background())
	m.health = httpapi.Health(m.ready, log)
	return m
}

var errNotYet = errors.New("the ledger has not been reached yet")

// ready reports whether requests can be served.
func (m *mux) ready(ctx context.Context) error {
	reached := m.reached.Load()
	switch {
	case m.closing.Err() != nil:
		return errors.New("the server is stopping")
	case reached == nil:
		return errNotYet
	}
	return (*reached)(ctx)
}

// open starts serving.
func (m *mux) open(routes []route, reached func(context.Context) error) {
	m.reached.Store(&reached)
	m.routes.Store(&routes)
}

// ServeHTTP passes a request to its route.
func (m *mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == "/healthz" || path == "/readyz" {
		m.health.ServeHTTP(w, r)
		return
	}
	routes := m.routes.Load()
	if routes == nil {
		unserved(w, r)
		return
	}
	for _, each := range *routes {
		if each.fits(path) {
			m.pass(each, w, r)
			return
		}
	}
	v1.Refuse(w, http.StatusNotFound, "not-found", "There is no such route", "")
}

// pass passes a request to a route. Callers that wait, for an outcome or for events,
// are released when the server stops: the outcome of a write can be read elsewhere.
func (m *mux) pass(d route, w http.ResponseWriter, r *http.Request) {
	ctx, release := context.WithCancel(r.Context())
	defer release()
	r = r.WithContext(ctx)
	if !d.releases && strings.Contains(r.Header.Get("Prefer"), "wait") {
		defer context.AfterFunc(m.closing, release)()
	}
	if d.ends || r.Method != http.MethodGet { // other responses end by themselves
		d.handler.ServeHTTP(w, r)
		return
	}
	answer := &stream{ResponseWriter: w, closing: m.closing, release: release}
	defer answer.end()
	d.handler.ServeHTTP(answer, r)
}

// unserved responds to a request that came too early.
func unserved(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", strconv.Itoa(int(comeBack.Seconds())))
	if strings.HasPrefix(r.URL.Path, "/api/v1/") { // in the form of its contract
		httpapi.NotYet(w)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		access.Refusal(w, r, http.StatusServiceUnavailable, "readback is starting, or its ledger cannot be reached")
		return
	}
	v1.Refuse(w, http.StatusServiceUnavailable, "unavailable", "The ledger cannot be reached yet", "not applied")
}

// stream is a response that may become an event stream, whatever its client requested: it
// lasts as long as the client reads, and must not keep a server from stopping.
type stream struct {
	http.ResponseWriter
	closing context.Context // ends when the server stops
	release context.CancelFunc
	forget  func() bool // nil before it is known to be a stream
}

// watch ensures that a stream is released.
func (l *stream) watch() {
	if l.forget == nil && strings.HasPrefix(l.Header().Get("Content-Type"), "text/event-stream") {
		l.forget = context.AfterFunc(l.closing, l.release)
	}
}

// end sends the clients of a released stream the time to reconnect.
func (l *stream) end() {
	if l.forget == nil || l.forget() || l.closing.Err() == nil {
		return
	}
	_, _ = fmt.Fprintf(l.ResponseWriter, ": the server is stopping; come back\nretry: %d\n\n", comeBack.Milliseconds()) // a client that disconnected needs no hint
}

func (l *stream) WriteHeader(status int) {
	l.watch()
	l.ResponseWriter.WriteHeader(status)
}

func (l *stream) Write(text []byte) (int, error) {
	l.watch()
	return l.ResponseWriter.Write(text)
}

// Flush is for handlers that look for an [http.Flusher].
func (l *stream) Flush() {
	l.watch()
	_ = http.NewResponseController(l.ResponseWriter).Flush() // a client that disconnected needs no response
}

// Unwrap is for [http.ResponseController].
func (l *stream) Unwrap() http.ResponseWriter { return l.ResponseWriter }
