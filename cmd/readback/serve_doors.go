package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	v1 "github.com/readback-go/readback/internal/httpapi/v1"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/internal/reviewui"
	"github.com/readback-go/readback/ledger"
)

// loginPath is where whoever is not known logs in.
const loginPath = "/login"

// door is one door of the server: everything under a path, or the path alone.
type door struct {
	path    string
	handler http.Handler
	// releases says that it releases whoever waits for an answer by itself, with a
	// better hint than being cut off, when the server is to stop; ends, that it ends
	// its event streams as well.
	releases, ends bool
}

// fits reports whether a path is behind the door. One that ends with a slash
// stands for all that is below it.
func (d door) fits(path string) bool {
	return path == d.path || strings.HasSuffix(d.path, "/") && strings.HasPrefix(path, d.path)
}

// front is the one handler of a server. Before there is a house it answers that
// it cannot serve yet; health is told in any case.
type front struct {
	doors   atomic.Pointer[[]door]
	reached atomic.Pointer[func(context.Context) error]
	health  http.Handler
	log     *slog.Logger
	closing context.Context // ends when the server is to stop
	close   context.CancelFunc
}

// doors are what is behind each path, the first that fits.
func (sv *serving) doors(ctx context.Context, h *house) ([]door, error) {
	who, logins, err := sv.who(ctx, h)
	if err != nil {
		return nil, err
	}
	from, err := sv.app.serverIssuer(h)
	if err != nil {
		return nil, err
	}
	on, log := sv.config.Server, h.desk.log
	all := []door{{path: "/metrics", handler: permitted(who, h.desk.tenant, access.Trace, http.MethodGet, h.meter.Numbers(log))}}
	for _, r := range logins.Routes() {
		all = append(all, door{path: r.Pattern, handler: logins})
	}
	if on.Gate {
		all = append(all, door{path: "/api/v1/", handler: httpapi.New(h.gate, &httpapi.Options{Who: who, Logger: log})})
	}
	if on.API {
		o := &v1.Options{Who: who, MaxWait: on.MaxWait, Version: built().Version, Closing: sv.front.closing.Done(), Logger: log}
		if from != nil {
			o.Receipts = from
		}
		api := v1.New(h.office, o)
		all = append(all, door{path: "/v1/", handler: api, releases: true, ends: true}, door{path: "/openapi.json", handler: api})
	}
	if on.MCP {
		models, err := h.models(mcpapi.Config{Hosts: publicHosts(on.PublicURL), Closing: sv.front.closing.Done()})
		if err != nil {
			return nil, err
		}
		all = append(all, door{path: mcpapi.Path, handler: models.HTTP(who), releases: true})
		gateways, err := h.gateways(ctx, who, sv.front.closing.Done())
		if err != nil {
			return nil, err
		}
		all = append(all, gateways...)
	}
	if on.Desk {
		o := &reviewui.Options{Who: who, FormToken: logins.FormToken, Version: built().Version, Logger: log}
		if from != nil && from.keys.Signer != nil {
			o.Receipts = from
		}
		if !sv.settings.dev {
			o.LoginPath = loginPath
		}
		all = append(all, door{path: "/", handler: reviewui.New(h.office, o)}) // everything else
	}
	for i, d := range all {
		all[i].handler = access.Watch(d.handler, who) // what goes on for long ends with its token
	}
	return all, nil
}

// gateways are the doors in front of servers of others.
func (h *house) gateways(ctx context.Context, who access.Resolver, closing <-chan struct{}) ([]door, error) {
	var all []door
	for _, g := range h.desk.config.MCP.Gateways {
		c, err := h.connectorOf(g.Destination)
		if err != nil {
			return nil, err
		}
		gate, err := mcpgate.New(ctx, h.office, mcpgate.Config{Destination: g.Destination, Connector: c, Tenant: g.Tenant,
			Reads: g.Reads, Hide: g.Hide, Wait: g.Wait, Version: built().Version, Hosts: publicHosts(h.desk.config.Server.PublicURL), Closing: closing, Logger: h.desk.log})
		if err != nil {
			return nil, err
		}
		all = append(all, door{path: mcpapi.Path + "/" + g.Name, handler: gate.HTTP(who), releases: true})
	}
	return all, nil
}

// publicHosts is the name in the address that callers know, where there is one.
func publicHosts(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{u.Host}
}

// connectorOf is the destination that a gateway stands in front of.
func (h *house) connectorOf(destination string) (*mcp.Connector, error) {
	for _, kind := range kindsOf(h.reg, destination) {
		if c, _, err := h.reg.Lookup(destination, kind); err == nil {
			if found, ok := c.(*mcp.Connector); ok {
				return found, nil
			}
		}
	}
	return nil, fmt.Errorf("the destination %q is no server of the Model Context Protocol", destination)
}

// who finds out who sends a request: by an API token, by a login, and on this
// machine alone by what a request says of itself.
func (sv *serving) who(ctx context.Context, h *house) (access.Resolver, *access.Logins, error) {
	notes, ok := h.desk.ledger.(ledger.Notes)
	if !ok {
		return nil, nil, errors.New("this ledger keeps no tokens")
	}
	tokens := access.NewTokens(notes, &access.TokenOptions{Now: sv.app.now, Logger: h.desk.log})
	o, err := sv.config.Logins(sv.app.env)
	if err != nil {
		return nil, nil, err
	}
	if o.Tokens, o.Logger = tokens, h.desk.log; sv.settings.dev && len(o.Key) == 0 {
		o.Key = []byte(rand.Text() + rand.Text()) // nobody need log in here
	}
	logins, err := access.NewLogins(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	known := []access.Resolver{tokens, logins}
	if sv.settings.dev {
		known = append(known, access.Dev(h.desk.tenant))
	}
	return access.First(known...), logins, nil
}

// credentials says what a caller needs.
func (sv *serving) credentials() string {
	switch {
	case sv.settings.dev:
		return "not checked"
	case sv.config.Server.OIDC.Issuer != "":
		return "token or login"
	}
	return "token"
}

// permitted serves who may, by one method.
func permitted(who access.Resolver, tenant string, act access.Act, method string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			refuse(w, http.StatusMethodNotAllowed, "method-not-allowed", "Want "+method, "")
			return
		}
		id, err := who.Resolve(r)
		if err == nil {
			err = id.May(act)
		}
		if err == nil && id.Tenant != tenant {
			err = office.ErrTenant
		}
		if err != nil {
			status, header := access.Refused(err)
			maps.Copy(w.Header(), header)
			refuse(w, status, strings.ToLower(strings.ReplaceAll(http.StatusText(status), " ", "-")), http.StatusText(status), "")
			return
		}
		h.ServeHTTP(w, r)
	})
}

func newFront(log *slog.Logger) *front {
	f := &front{log: log}
	f.closing, f.close = context.WithCancel(context.Background())
	f.health = httpapi.Health(f.ready, log)
	return f
}

var errNotYet = errors.New("the ledger has not been reached yet")

// ready reports whether requests can be served.
func (f *front) ready(ctx context.Context) error {
	reached := f.reached.Load()
	switch {
	case f.closing.Err() != nil:
		return errors.New("the server is stopping")
	case reached == nil:
		return errNotYet
	}
	return (*reached)(ctx)
}

// open lets callers in.
func (f *front) open(doors []door, reached func(context.Context) error) {
	f.reached.Store(&reached)
	f.doors.Store(&doors)
}

// ServeHTTP sends a request to its door.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == "/healthz" || path == "/readyz" {
		f.health.ServeHTTP(w, r)
		return
	}
	doors := f.doors.Load()
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
	refuse(w, http.StatusNotFound, "not-found", "There is no such route", "")
}

// through lets a request through a door. Whoever waits, for an outcome or for
// news, is released when the server is to stop: what became of a write can be
// asked for elsewhere.
func (f *front) through(d door, w http.ResponseWriter, r *http.Request) {
	ctx, release := context.WithCancel(r.Context())
	defer release()
	r = r.WithContext(ctx)
	if !d.releases && strings.Contains(r.Header.Get("Prefer"), "wait") {
		defer context.AfterFunc(f.closing, release)()
	}
	if d.ends || r.Method != http.MethodGet { // answers of others have an end
		d.handler.ServeHTTP(w, r)
		return
	}
	answer := &listened{ResponseWriter: w, closing: f.closing, release: release}
	defer answer.end()
	d.handler.ServeHTTP(answer, r)
}

// unserved answers who came too early.
func unserved(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", strconv.Itoa(int(comeBack.Seconds())))
	if strings.HasPrefix(r.URL.Path, "/api/v1/") { // in the words of its contract
		answerJSON(w, "application/json", http.StatusServiceUnavailable, map[string]string{
			"error": "unavailable", "code": "UNAVAILABLE", "message": "the ledger cannot be reached yet; the same request may be made again later"})
		return
	}
	refuse(w, http.StatusServiceUnavailable, "unavailable", "The ledger cannot be reached yet", "not applied")
}

// problem is an error as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Known is what is known of an effect.
	Known string `json:"known,omitempty"`
}

// refuse answers with a problem.
func refuse(w http.ResponseWriter, status int, kind, title, known string) {
	answerJSON(w, "application/problem+json", status, problem{"https://readback.invalid/problems/" + kind, title, status, known})
}

func answerJSON(w http.ResponseWriter, as string, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", as)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who went away needs no answer
}
