package main

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

	"github.com/readback-go/readback/connectors/mcp"
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
func (sv *serving) routes(ctx context.Context, h *services) ([]route, error) {
	known, logins, err := sv.who(ctx, h)
	if err != nil {
		return nil, err
	}
	shares := access.NewShares(sv.config.Server.Limits, nil, h.meter.Limited)
	who := shares.Resolver(known)
	from, err := sv.app.serverIssuer(h)
	if err != nil {
		return nil, err
	}
	on, log := sv.config.Server, h.app.log
	all := []route{{path: "/metrics", handler: permitted(who, h.app.tenant, access.Trace, http.MethodGet, h.meter.Numbers(log))}}
	for _, r := range logins.Routes() {
		all = append(all, route{path: r.Pattern, handler: logins})
	}
	if on.Gate {
		all = append(all, route{path: "/api/v1/", handler: httpapi.New(h.gate, &httpapi.Options{Who: who, Logger: log})})
	}
	if on.API {
		o := &v1.Options{Who: who, MaxWait: on.MaxWait, Version: built().Version, Closing: sv.mux.closing.Done(), Logger: log}
		if from != nil {
			o.Receipts = from
		}
		api := v1.New(h.service, o)
		all = append(all, route{path: "/v1/", handler: api, releases: true, ends: true}, route{path: "/openapi.json", handler: api})
	}
	if on.MCP {
		models, err := h.models(mcpapi.Config{Hosts: publicHosts(on.PublicURL), Closing: sv.mux.closing.Done()})
		if err != nil {
			return nil, err
		}
		all = append(all, route{path: mcpapi.Path, handler: models.HTTP(who), releases: true})
		gateways, err := h.gateways(ctx, who, sv.mux.closing.Done())
		if err != nil {
			return nil, err
		}
		all = append(all, gateways...)
	}
	if on.ReviewUI {
		o := &reviewui.Options{Who: who, FormToken: logins.FormToken, Version: built().Version, Logger: log}
		if from != nil && from.keys.Signer != nil {
			o.Receipts = from
		}
		if !sv.settings.dev {
			o.LoginPath = loginPath
		}
		all = append(all, route{path: "/", handler: reviewui.New(h.service, o)}) // everything else
	}
	for i, d := range all {
		all[i].handler = h.events.Around(shares.Handler(access.Watch(d.handler, known))) // a long request ends with its token
	}
	return all, nil
}

// gateways are the routes of the MCP gateways.
func (h *services) gateways(ctx context.Context, who access.Resolver, closing <-chan struct{}) ([]route, error) {
	var all []route
	for _, g := range h.app.config.MCP.Gateways {
		c, err := h.connectorOf(g.Destination)
		if err != nil {
			return nil, err
		}
		gate, err := mcpgate.New(ctx, h.service, mcpgate.Config{Destination: g.Destination, Connector: c, Tenant: g.Tenant,
			Reads: g.Reads, Hide: g.Hide, Wait: g.Wait, Version: built().Version, Hosts: publicHosts(h.app.config.Server.PublicURL), Closing: closing, Logger: h.app.log})
		if err != nil {
			return nil, err
		}
		all = append(all, route{path: mcpapi.Path + "/" + g.Name, handler: gate.HTTP(who), releases: true})
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

// connectorOf is the destination of a gateway.
func (h *services) connectorOf(destination string) (*mcp.Connector, error) {
	for _, kind := range kindsOf(h.reg, destination) {
		if c, _, err := h.reg.Lookup(destination, kind); err == nil {
			if found, ok := c.(*mcp.Connector); ok {
				return found, nil
			}
		}
	}
	return nil, fmt.Errorf("the destination %q is no server of the Model Context Protocol", destination)
}

// who authenticates the sender of a request: by an API token, by a login, and on this
// machine alone by the request's own headers.
func (sv *serving) who(ctx context.Context, h *services) (access.Resolver, *access.Logins, error) {
	tokens := access.NewTokens(h.app.ledger, &access.TokenOptions{Now: sv.app.now, Logger: h.app.log, People: sv.config.Server.PersonTokens})
	o, err := sv.config.Logins(sv.app.env)
	if err != nil {
		return nil, nil, err
	}
	if o.Tokens, o.Events, o.Logger = tokens, h.events, h.app.log; sv.settings.dev && len(o.Key) == 0 {
		o.Key = []byte(rand.Text() + rand.Text()) // no caller needs to log in here
	}
	logins, err := access.NewLogins(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	known := []access.Resolver{tokens, logins}
	if sv.settings.dev {
		known = append(known, access.Dev(h.app.tenant))
	}
	return h.events.Recording(logins.Deciding(access.First(known...))), logins, nil
}

// credentials describes what a caller needs.
func (sv *serving) credentials() string {
	switch {
	case sv.settings.dev:
		return "not checked"
	case sv.config.Server.OIDC.Issuer != "":
		return "token or login"
	}
	return "token"
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

func newFront(log *slog.Logger) *mux {
	f := &mux{log: log}
	f.closing, f.close = context.WithCancel(context.Background())
	f.health = httpapi.Health(f.ready, log)
	return f
}

var errNotYet = errors.New("the ledger has not been reached yet")

// ready reports whether requests can be served.
func (f *mux) ready(ctx context.Context) error {
	reached := f.reached.Load()
	switch {
	case f.closing.Err() != nil:
		return errors.New("the server is stopping")
	case reached == nil:
		return errNotYet
	}
	return (*reached)(ctx)
}

// open starts serving.
func (f *mux) open(doors []route, reached func(context.Context) error) {
	f.reached.Store(&reached)
	f.routes.Store(&doors)
}

// ServeHTTP passes a request to its route.
func (f *mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == "/healthz" || path == "/readyz" {
		f.health.ServeHTTP(w, r)
		return
	}
	doors := f.routes.Load()
	if doors == nil {
		unserved(w, r)
		return
	}
	for _, d := range *doors {
		if d.fits(path) {
			f.through(d, w, r)
			return
		}
	}
	v1.Refuse(w, http.StatusNotFound, "not-found", "There is no such route", "")
}

// through passes a request to a route. Callers that wait, for an outcome or for events,
// are released when the server stops: the outcome of a write can be read elsewhere.
func (f *mux) through(d route, w http.ResponseWriter, r *http.Request) {
	ctx, release := context.WithCancel(r.Context())
	defer release()
	r = r.WithContext(ctx)
	if !d.releases && strings.Contains(r.Header.Get("Prefer"), "wait") {
		defer context.AfterFunc(f.closing, release)()
	}
	if d.ends || r.Method != http.MethodGet { // other responses end by themselves
		d.handler.ServeHTTP(w, r)
		return
	}
	answer := &stream{ResponseWriter: w, closing: f.closing, release: release}
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
	v1.Refuse(w, http.StatusServiceUnavailable, "unavailable", "The ledger cannot be reached yet", "not applied")
}
