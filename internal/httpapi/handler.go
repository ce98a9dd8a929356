package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
)

// defaultTime is how long one request may take: a gate may read a destination once.
const defaultTime = 30 * time.Second

// Bounds of a connection, for [Server]. A slower caller is broken or hostile; the
// response may take as long as a request, plus its transfer.
const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	answerTime = defaultTime + 30*time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10 // long tokens fit
)

// Options configures the API. Nil and the zero value are valid.
type Options struct {
	// Who authenticates the sender of a request, and each route checks its permission;
	// see [Routes]. It takes precedence over Caller.
	Who access.Resolver
	// Caller authenticates the sender of a request if Who is not set. Default [Dev] for
	// the tenant "default".
	Caller Resolver
	// Timeout is how long one request may take. Default 30 s.
	Timeout time.Duration
	// Ready reports whether requests can be served, for /readyz. Default: always.
	Ready func(context.Context) error
	// Logger logs failures, and at debug level every request; never a body, a query or a
	// header. Default none.
	Logger *slog.Logger
}

// api serves requests.
type api struct {
	gate    Gate
	caller  Resolver
	who     access.Resolver
	timeout time.Duration
	log     *slog.Logger
	mux     *http.ServeMux
}

// New returns the handler of all routes of the gate. All its responses are JSON, also
// those for unknown paths.
func New(g Gate, o *Options) http.Handler {
	return newAPI(g, o).handler()
}

func newAPI(g Gate, o *Options) *api {
	if o == nil {
		o = &Options{}
	}
	a := &api{gate: g, caller: o.Caller, who: o.Who, timeout: o.Timeout, log: o.Logger, mux: http.NewServeMux()}
	if a.caller == nil {
		a.caller = Dev("default")
	}
	if a.timeout <= 0 {
		a.timeout = defaultTime
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	allowed := map[string][]string{}
	for _, r := range routes {
		a.mux.HandleFunc(r.method+" "+r.path, a.serve(r))
		allowed[r.path] = append(allowed[r.path], r.method)
	}
	for path, methods := range allowed {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			refuse(w, &gate.Error{Code: methodNotAllowed, Message: "want " + strings.Join(methods, " or ")})
		})
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		a.mux.Handle("GET "+path, Health(o.Ready, a.log))
	}
	a.mux.HandleFunc("/", noRoute)
	return a
}

func (a *api) handler() http.Handler {
	return Recover(http.HandlerFunc(a.timed), a.log, http.HandlerFunc(noRoute), func(w http.ResponseWriter) {
		refuse(w, &gate.Error{Code: gate.Internal, Message: internalMessage})
	})
}

func noRoute(w http.ResponseWriter, _ *http.Request) {
	refuse(w, &gate.Error{Code: gate.NotFound, Message: "there is no such route"})
}

// timed bounds the time of a request.
func (a *api) timed(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(access.Traced(r), a.timeout)
	defer cancel()
	a.mux.ServeHTTP(w, r.WithContext(ctx))
}

// call is one decoded request.
type call struct {
	gate.Caller
	workflowID, stepID string
	path               func(name string) string
	query              url.Values
	body               []byte
	alias              bool
}

// serve handles the requests of one route.
func (a *api) serve(ro route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		status := ro.status
		c, err := a.understand(w, r, ro)
		var out any
		if err == nil {
			out, err = ro.do(r.Context(), a.gate, c)
		}
		if err == nil {
			if status == http.StatusNoContent && out != nil {
				status = http.StatusOK
			}
			err = answer(w, status, out)
		}
		if err != nil {
			e := refusal(r.Context(), err)
			var anonymous *unresolved
			if errors.As(err, &anonymous) {
				var header http.Header
				e, header = anonymous.refusal()
				maps.Copy(w.Header(), header)
			}
			status = StatusOf(e.Code)
			a.send(r, c, e, status)
			refuse(w, e)
		}
		a.log.Debug("request", "method", r.Method, "route", ro.path, "status", status, "tenant", c.Tenant,
			"workflow", c.workflowID, "step", c.stepID, "took", time.Since(began))
	}
}

// send logs a failure.
func (a *api) send(r *http.Request, c call, e *gate.Error, status int) {
	if status < http.StatusInternalServerError {
		return
	}
	level := slog.LevelError
	if r.Context().Err() != nil && !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		level = slog.LevelDebug // its caller disconnected
	}
	a.log.Log(context.WithoutCancel(r.Context()), level, "a request failed", "route", r.Pattern, "tenant", c.Tenant,
		"workflow", c.workflowID, "step", c.stepID, "status", status, "error", e)
}

// understand authenticates the caller, reads the path, and decodes the body.
func (a *api) understand(w http.ResponseWriter, r *http.Request, ro route) (call, error) {
	c := call{path: r.PathValue, workflowID: r.PathValue("workflow_id"), stepID: r.PathValue("step_id"), alias: ro.alias}
	var err error
	if c.Caller, err = a.callerOf(r, ro.act); err != nil {
		return c, err
	}
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return c, &gate.Error{Code: gate.BadRequest, Field: "query", Message: "query of the address cannot be read"}
	}
	if r.Method == http.MethodPost {
		c.body, err = body(w, r)
	}
	return c, err
}

// Server is a server with bounds on everything for which a caller can make it wait. The
// caller of Server may replace its handler, and nothing else.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
	}
}
