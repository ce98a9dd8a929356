package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/office"
)

// Options of the door. Who is required: a door without it lets nobody in.
type Options struct {
	// Who finds out who sends a request.
	Who access.Resolver
	// MaxWait is how long a call may wait at most. Default 60 s.
	MaxWait time.Duration
	// Timeout is how long a call may take besides waiting. Default 30 s.
	Timeout time.Duration
	// Version is what the document says of this server. Default "0".
	Version string
	// Receipts issues receipts. Default nil: there are none.
	Receipts Receipts
	// Closing ends event streams and waiting when it is closed, so that a server
	// can be stopped. Default: never.
	Closing <-chan struct{}
	// Logger gets what goes wrong, and at debug level every request; never a body,
	// a query or a header. Default none.
	Logger *slog.Logger
}

// api answers requests.
type api struct {
	office   *office.Office
	opts     Options
	log      *slog.Logger
	mux      *http.ServeMux
	document []byte
	waiting  *places
	streams  *places
}

// New returns the handler of /v1/ and /openapi.json. Everything it answers is
// JSON, but for the event stream.
func New(o *office.Office, opts *Options) http.Handler {
	return http.HandlerFunc(newAPI(o, opts).all)
}

func newAPI(o *office.Office, opts *Options) *api {
	a := &api{office: o, mux: http.NewServeMux(),
		waiting: newPlaces(maxWaiting, maxWaitingTenant), streams: newPlaces(maxStreams, maxStreamsTenant)}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.MaxWait <= 0 {
		a.opts.MaxWait = maxWait
	}
	if a.opts.Timeout <= 0 {
		a.opts.Timeout = callTime
	}
	if a.opts.Version == "" {
		a.opts.Version = "0"
	}
	if a.opts.Who == nil {
		a.opts.Who = nobody{}
	}
	if a.log = a.opts.Logger; a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.document = document(a.opts.Version)
	a.register()
	return a
}

// nobody lets nobody in.
type nobody struct{}

func (nobody) Resolve(*http.Request) (access.Identity, error) {
	return access.Identity{}, access.ErrUnknown
}

// Routes lists the routes, and what it takes to ask each.
func Routes() []access.Route {
	var all []access.Route
	for _, r := range routes() {
		all = append(all, access.Route{Method: r.method, Pattern: r.pattern, Act: r.act})
	}
	return all
}

// register gives every route its handler, and every address an answer to whoever
// asks it another way.
func (a *api) register() {
	allowed := map[string][]string{}
	for _, r := range routes() {
		a.mux.HandleFunc(r.method+" "+r.pattern, a.serve(r))
		allowed[r.pattern] = append(allowed[r.pattern], r.method)
		if r.method == http.MethodGet {
			allowed[r.pattern] = append(allowed[r.pattern], http.MethodHead)
		}
	}
	for pattern, methods := range allowed {
		methods = append(methods, http.MethodOptions)
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			k, p := problemOf(&problemError{kind: wrongMethod, detail: "want one of " + allow}, "")
			refuse(w, k, p)
		})
	}
	a.mux.HandleFunc("/", noRoute)
}

func noRoute(w http.ResponseWriter, _ *http.Request) {
	k, p := problemOf(&problemError{kind: notFound, detail: "there is no such route; /openapi.json lists them"}, "")
	refuse(w, k, p)
}

// all is around every request.
func (a *api) all(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		a.log.Error("a request panicked", "route", r.Pattern, "panic", p, "stack", string(debug.Stack()))
		k, said := problemOf(errors.New("panic"), "")
		refuse(w, k, said)
	}()
	if !plain(r.URL) {
		noRoute(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// plain reports whether a path is as it is meant. The mux would answer any other
// with a redirect, which makes a GET of a POST.
func plain(u *url.URL) bool {
	parts := strings.Split(u.EscapedPath(), "/")
	for _, part := range parts[1:] {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return parts[0] == "" && len(parts) > 1
}

// The types of what is answered.
const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	streamType  = "text/event-stream"
)

// reply is the answer of a route.
type reply struct {
	status int
	body   any
	header map[string]string
}

// serve answers the requests of one route.
func (a *api) serve(ro route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := &call{api: a, w: w, r: r.WithContext(access.Traced(r)), route: ro}
		out, err := a.answer(c)
		status := out.status
		if err == nil && out.body != nil {
			for name, value := range out.header {
				w.Header().Set(name, value)
			}
			err = write(w, status, jsonType, out.body)
		}
		if err != nil {
			k, p := problemOf(err, c.who.Tenant)
			a.office.Clean(c.who, &p)
			status = k.status
			a.tell(c, status, err)
			refuse(w, k, p)
		}
		a.log.Debug("request", "method", r.Method, "route", ro.pattern, "status", status, "tenant", c.who.Tenant,
			"credentials", c.who.ID, "took", time.Since(began))
	}
}

// answer finds out who asks and what, and asks the office.
func (a *api) answer(c *call) (reply, error) {
	if err := c.enter(); err != nil {
		return reply{}, err
	}
	if err := c.read(); err != nil {
		return reply{}, err
	}
	if c.route.stream { // it takes as long as it takes
		return c.route.do(c, c.r.Context())
	}
	leave, err := c.takePlace()
	if err != nil {
		return reply{}, err
	}
	defer leave()
	limit := c.wait + a.opts.Timeout
	c.extend(limit)
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	return c.route.do(c, ctx)
}

// tell writes what went wrong here into the log.
func (a *api) tell(c *call, status int, err error) {
	if status < http.StatusInternalServerError {
		return
	}
	level := slog.LevelError
	if c.r.Context().Err() != nil {
		level = slog.LevelDebug // its caller went away
	}
	a.log.Log(context.WithoutCancel(c.r.Context()), level, "a request failed", "route", c.route.pattern, "tenant", c.who.Tenant,
		"credentials", c.who.ID, "status", status, "error", err)
}

// write answers with a value, all of it or an error.
func write(w http.ResponseWriter, status int, kind string, v any) error {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(v); err != nil { // < and > become escapes: some look at JSON in a browser
			return err
		}
		raw = b.Bytes()
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // who went away needs no answer
	return nil
}
