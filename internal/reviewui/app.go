package reviewui

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// backend is what the review UI needs of a [service.Service].
type backend interface {
	View(ctx context.Context, who access.Identity, id ledger.ID) (service.View, error)
	Find(ctx context.Context, who access.Identity, s ledger.Search) (service.Found, error)
	Decide(ctx context.Context, who access.Identity, id ledger.ID, d engine.Decision, wait time.Duration) (engine.Outcome, error)
	Assign(ctx context.Context, who access.Identity, id ledger.ID, take bool) error
	Yield(ctx context.Context, who access.Identity, id ledger.ID, reason string) error

	Inbox(ctx context.Context, who access.Identity, q service.InboxQuery) (service.Inbox, error)
	PendingSteps(ctx context.Context, who access.Identity) ([]gate.PendingApproval, error)
	StepTrace(ctx context.Context, who access.Identity, workflowID, stepID string) (gate.StepTrace, error)
	WorkflowSteps(ctx context.Context, who access.Identity, workflowID string, limit, offset int) (gate.StepList, error)
	DecideStep(ctx context.Context, who access.Identity, workflowID, stepID string, approve bool, s gate.Comment) (gate.ApprovalResult, error)

	Destinations(ctx context.Context, who access.Identity) ([]service.Destination, error)
	Health(ctx context.Context, who access.Identity, name string) (service.Health, error)
	StopEffect(ctx context.Context, who access.Identity, s guards.Scope) (service.StopEffect, error)
	Stops(ctx context.Context, who access.Identity) ([]guards.Stopped, error)
	Stop(ctx context.Context, who access.Identity, s guards.Scope, reason string) error
	Release(ctx context.Context, who access.Identity, s guards.Scope, reason string) error

	Saga(ctx context.Context, who access.Identity, id string) (saga.Saga, error)
	Sagas(ctx context.Context, who access.Identity, limit int, states ...saga.State) ([]saga.Saga, error)
	CancelSaga(ctx context.Context, who access.Identity, id, reason string) (saga.Saga, error)
	CloseSaga(ctx context.Context, who access.Identity, id, reason string) (saga.Saga, error)

	Follow(ctx context.Context, who access.Identity, after string, limit int) ([]ledger.Change, string, error)
	Latest(ctx context.Context, who access.Identity) (string, error)
	Woken(ctx context.Context) <-chan struct{}
	History(ctx context.Context, who access.Identity, q ledger.Past) ([]ledger.Span, error)
	Replays(ctx context.Context, who access.Identity, since, until time.Time) ([]service.Replays, error)
}

// Options configures the review UI. Nil and the zero value are valid.
type Options struct {
	// Who authenticates the sender of a request. Default: no caller is known.
	Who access.Resolver
	// LoginPath is where an unknown user is redirected, with the requested page as the
	// query's next. Default none: such a request gets 401.
	LoginPath string
	// FormToken is the token in the forms of a page, for browsers that send no Origin
	// header; see [access.Logins.FormToken]. Default none.
	FormToken func(*http.Request) string
	// Receipts issues receipts. Default nil: there are none.
	Receipts Receipts
	// Version is shown at the foot of each page. Default none.
	Version string
	// Logger logs failures; never a body, a query or a header. Default none.
	Logger *slog.Logger
}

// app serves the pages.
type app struct {
	service backend
	opts    Options
	log     *slog.Logger
	mux     *http.ServeMux
	origin  *http.CrossOriginProtection

	inHand sync.Map // decisions in progress, by write
}

// New returns the handler of all pages. It serves every path; an unknown one gets a page
// that says so.
func New(o *service.Service, opts *Options) http.Handler {
	return (&app{service: o}).open(opts)
}

// open makes an app ready to serve.
func (d *app) open(opts *Options) *app {
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.Who == nil {
		d.opts.Who = noReviewer{}
	}
	if d.log = d.opts.Logger; d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.origin = http.NewCrossOriginProtection()
	d.mux = http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range routes {
		d.mux.HandleFunc(r.method+" "+r.pattern, d.serve(r))
		allowed[r.pattern] = append(allowed[r.pattern], r.method)
	}
	for pattern, methods := range allowed {
		if pattern == "/{$}" {
			continue // a method that it does not support is no page
		}
		d.mux.HandleFunc(pattern, d.serve(route{act: access.Trace, serve: func(d *app, v *visit) error {
			v.w.Header().Set("Allow", strings.Join(methods, ", "))
			return errMethod
		}}))
	}
	d.mux.HandleFunc("/", d.serve(route{act: access.Trace, serve: func(*app, *visit) error { return errNoPage }}))
	return d
}

// ServeHTTP serves a request.
func (d *app) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// noReviewer authenticates no caller.
type noReviewer struct{}

// Resolve fails.
func (noReviewer) Resolve(*http.Request) (access.Identity, error) {
	return access.Identity{}, access.ErrUnknown
}

// Errors of requests, besides those of the service.
var (
	errNoPage = errors.New("there is no such page")
	errMethod = errors.New("this page does not take that method")
	errForm   = errors.New("the form cannot be read")
	errOrigin = errors.New("the request came from another site")
	// errOtherStop: a newer stop replaced the one on the page.
	errOtherStop = errors.New("the stop is another one")
)
