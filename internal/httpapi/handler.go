package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/workflow"
)

// Options of the door. Nil and the zero value work.
type Options struct {
	// Who says who sends a request, and each route asks whether they may; see
	// [Routes]. It comes before Caller.
	Who access.Resolver
	// Caller says who sends a request where nobody else does. Default [Dev] for
	// the tenant "default".
	Caller Resolver
	// Timeout is how long one request may take. Default 30 s.
	Timeout time.Duration
	// Ready says whether requests can be served, for /readyz. Default: always.
	Ready func(context.Context) error
	// Logger gets what goes wrong, and at debug level every request; never a body,
	// a query or a header. Default none.
	Logger *slog.Logger
}

// api answers requests.
type api struct {
	gate    Gate
	caller  Resolver
	who     access.Resolver
	timeout time.Duration
	log     *slog.Logger
	mux     *http.ServeMux
}

// New returns the handler of all routes of the gate. Everything it answers is
// JSON, what it does not know as well.
func New(g Gate, o *Options) http.Handler {
	return http.HandlerFunc(newAPI(g, o).all)
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
			refuse(w, &workflow.Error{Code: methodNotAllowed, Message: "want " + strings.Join(methods, " or ")})
		})
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		a.mux.Handle("GET "+path, Health(o.Ready, a.log))
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, noRoute) })
	return a
}

var noRoute = &workflow.Error{Code: workflow.NotFound, Message: "there is no such route"}

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
		refuse(w, &workflow.Error{Code: workflow.Internal, Message: internalMessage})
	}()
	if !plain(r.URL) {
		refuse(w, noRoute)
		return
	}
	ctx, cancel := context.WithTimeout(access.Traced(r), a.timeout)
	defer cancel()
	a.mux.ServeHTTP(w, r.WithContext(ctx))
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

// call is one request, understood as far as the door understands it.
type call struct {
	workflow.Caller
	workflowID, stepID string
	path               func(name string) string
	query              url.Values
	body               []byte
	alias              bool
}

// serve answers the requests of one route.
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
			var nobody *unresolved
			if errors.As(err, &nobody) {
				var header http.Header
				e, header = nobody.refusal()
				maps.Copy(w.Header(), header)
			}
			status = statusOf(e.Code)
			a.tell(r, c, e, status)
			refuse(w, e)
		}
		a.log.Debug("request", "method", r.Method, "route", ro.path, "status", status, "tenant", c.Tenant,
			"workflow", c.workflowID, "step", c.stepID, "took", time.Since(began))
	}
}

// tell writes what went wrong here into the log.
func (a *api) tell(r *http.Request, c call, e *workflow.Error, status int) {
	if status < http.StatusInternalServerError {
		return
	}
	level := slog.LevelError
	if r.Context().Err() != nil && !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		level = slog.LevelDebug // its caller went away
	}
	a.log.Log(context.WithoutCancel(r.Context()), level, "a request failed", "route", r.Pattern, "tenant", c.Tenant,
		"workflow", c.workflowID, "step", c.stepID, "status", status, "error", e)
}

// understand finds out who asks, about what, and reads the body.
func (a *api) understand(w http.ResponseWriter, r *http.Request, ro route) (call, error) {
	c := call{path: r.PathValue, workflowID: r.PathValue("workflow_id"), stepID: r.PathValue("step_id"), alias: ro.alias}
	var err error
	if c.Caller, err = a.callerOf(r, ro.act); err != nil {
		return c, err
	}
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return c, &workflow.Error{Code: workflow.BadRequest, Field: "query", Message: "query of the address cannot be read"}
	}
	if r.Method == http.MethodPost {
		c.body, err = body(w, r)
	}
	return c, err
}

// Server is a server with bounds on everything a stranger can make it wait for.
// The caller sets nothing but, if it likes, its handler anew.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
	}
}
