package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// maxWait is the default of the longest wait of a call: proxies allow an idle
	// connection about as long.
	maxWait = 60 * time.Second
	// callTime is how long a call may take besides waiting: ledgers answer in
	// milliseconds, or not at all.
	callTime = 30 * time.Second
)

// Options configures the API. Who is required: without it no caller is admitted.
type Options struct {
	// Who authenticates the sender of a request.
	Who access.Resolver
	// MaxWait is how long a call may wait at most. Default 60 s.
	MaxWait time.Duration
	// Timeout is how long a call may take besides waiting. Default 30 s.
	Timeout time.Duration
	// Version is the server's version in the document. Default "0".
	Version string
	// Receipts issues receipts. Default nil: there are none.
	Receipts Receipts
	// Closing ends event streams and waiting when it is closed, so that a server
	// can be stopped. Default: never.
	Closing <-chan struct{}
	// Logger logs failures, and at debug level every request; never a body, a query or a
	// header. Default none.
	Logger *slog.Logger
}

// api serves requests.
type api struct {
	service  *service.Service
	opts     Options
	log      *slog.Logger
	mux      *http.ServeMux
	document []byte
}

// New returns the handler of /v1/ and /openapi.json. All its responses are JSON, except
// the event stream.
func New(o *service.Service, opts *Options) http.Handler {
	return newAPI(o, opts).handler()
}

func newAPI(o *service.Service, opts *Options) *api {
	a := &api{service: o, mux: http.NewServeMux()}
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
		a.opts.Who = noCaller{}
	}
	if a.log = a.opts.Logger; a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.document = document(a.opts.Version)
	a.register()
	return a
}

// noCaller admits no caller.
type noCaller struct{}

func (noCaller) Resolve(*http.Request) (access.Identity, error) {
	return access.Identity{}, access.ErrUnknown
}

// Routes lists the routes, with the permission that each needs.
func Routes() []access.Route {
	var all []access.Route
	for _, r := range routes() {
		all = append(all, access.Route{Method: r.method, Pattern: r.pattern, Act: r.act})
	}
	return all
}

// register registers one handler for every path, which also responds to other methods: the mux
// takes no path for all methods beside a wider one for some.
func (a *api) register() {
	paths := map[string]map[string]http.HandlerFunc{}
	for _, r := range routes() {
		if paths[r.pattern] == nil {
			paths[r.pattern] = map[string]http.HandlerFunc{}
		}
		paths[r.pattern][r.method] = a.serve(r)
	}
	for pattern, serve := range paths {
		allowed := append(slices.Collect(maps.Keys(serve)), http.MethodOptions)
		if serve[http.MethodGet] != nil {
			allowed = append(allowed, http.MethodHead)
		}
		slices.Sort(allowed)
		allow := strings.Join(allowed, ", ")
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet
			}
			if do := serve[method]; do != nil {
				r.Pattern = method + " " + pattern
				do(w, r)
				return
			}
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

func (a *api) handler() http.Handler {
	return httpapi.Recover(a.mux, a.log, http.HandlerFunc(noRoute), func(w http.ResponseWriter) {
		k, p := problemOf(errors.New("panic"), "")
		refuse(w, k, p)
	})
}

func noRoute(w http.ResponseWriter, _ *http.Request) {
	k, p := problemOf(&problemError{kind: notFound, detail: "there is no such route; /openapi.json lists them"}, "")
	refuse(w, k, p)
}

// The content types of responses.
const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	streamType  = httpapi.StreamType
)

// reply is the response of a route.
type reply struct {
	status int
	body   any
	header map[string]string
}

// serve handles the requests of one route.
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
			k, p := c.failed(err)
			status = k.status
			refuse(w, k, p)
		}
		a.log.Debug("request", "method", r.Method, "route", ro.pattern, "status", status, "tenant", c.who.Tenant,
			"credentials", c.who.ID, "took", time.Since(began))
	}
}

// answer authenticates the caller, decodes the request, and calls the service.
func (a *api) answer(c *call) (reply, error) {
	if err := c.enter(); err != nil {
		return reply{}, err
	}
	if err := c.read(); err != nil {
		return reply{}, err
	}
	if c.route.stream { // it has no time-out
		return c.route.do(c, c.r.Context())
	}
	limit := c.wait + a.opts.Timeout
	c.extend(limit)
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	return c.route.do(c, ctx)
}

// failed describes an error to the caller, and logs a failure.
func (c *call) failed(err error) (*kind, Problem) {
	k, p := problemOf(err, c.who.Tenant)
	c.api.service.Clean(c.who, &p)
	p.visible()
	c.api.send(c, k.status, err)
	return k, p
}

// send logs a failure.
func (a *api) send(c *call, status int, err error) {
	if status < http.StatusInternalServerError {
		return
	}
	level := slog.LevelError
	if c.r.Context().Err() != nil {
		level = slog.LevelDebug // its caller disconnected
	}
	a.log.Log(context.WithoutCancel(c.r.Context()), level, "a request failed", "route", c.route.pattern, "tenant", c.who.Tenant,
		"credentials", c.who.ID, "status", status, "error", err)
}

// write responds with a value, whole, or returns an error.
func write(w http.ResponseWriter, status int, kind string, v any) error {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(v); err != nil { // < and > become escapes: browsers may display the JSON
			return err
		}
		raw = visible.JSON(b.Bytes())
	}
	httpapi.Respond(w, status, kind, raw)
	return nil
}
