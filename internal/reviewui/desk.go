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
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// writes is what the desk asks about writes.
type writes interface {
	View(ctx context.Context, who access.Identity, id ledger.ID) (office.View, error)
	Find(ctx context.Context, who access.Identity, s ledger.Search) (ledger.Found, error)
	Decide(ctx context.Context, who access.Identity, id ledger.ID, d engine.Decision, wait time.Duration) (engine.Outcome, error)
	Yield(ctx context.Context, who access.Identity, id ledger.ID, reason string) error
}

// tray is what waits, and what is and was decided about steps.
type tray interface {
	Inbox(ctx context.Context, who access.Identity) (office.Inbox, error)
	StepTrace(ctx context.Context, who access.Identity, workflowID, stepID string) (workflow.StepTrace, error)
	WorkflowSteps(ctx context.Context, who access.Identity, workflowID string, limit, offset int) (workflow.StepList, error)
	DecideStep(ctx context.Context, who access.Identity, workflowID, stepID string, approve bool, s workflow.Said) (workflow.ApprovalResult, error)
}

// switches is what the desk asks about destinations.
type switches interface {
	Destinations(ctx context.Context, who access.Identity) ([]office.Destination, error)
	Stops(ctx context.Context, who access.Identity) ([]guards.Stopped, error)
	Stop(ctx context.Context, who access.Identity, s guards.Scope, reason string) error
	Release(ctx context.Context, who access.Identity, s guards.Scope, reason string) error
}

// sagas is what the desk asks about sagas.
type sagas interface {
	Saga(ctx context.Context, who access.Identity, id string) (saga.Saga, error)
	Sagas(ctx context.Context, who access.Identity, limit int, states ...saga.State) ([]saga.Saga, error)
	CancelSaga(ctx context.Context, who access.Identity, id, reason string) (saga.Saga, error)
	CloseSaga(ctx context.Context, who access.Identity, id, reason string) (saga.Saga, error)
}

// past is what happens, and what has happened.
type past interface {
	Follow(ctx context.Context, who access.Identity, after string, limit int) ([]ledger.Change, string, error)
	Latest(ctx context.Context, who access.Identity) (string, error)
	Woken(ctx context.Context) <-chan struct{}
	History(ctx context.Context, who access.Identity, q ledger.Past) ([]ledger.Span, error)
	Replays(ctx context.Context, who access.Identity, since, until time.Time) ([]office.Replays, error)
}

// Options of the desk. Nil and the zero value work.
type Options struct {
	// Who says who sends a request. Default: nobody is known.
	Who access.Resolver
	// LoginPath is where whoever is not known is sent, with the page that was
	// asked for as the query's next. Default: nowhere, such a request is answered
	// with 401.
	LoginPath string
	// FormToken is what the forms of a page carry, for browsers that send no Origin
	// header; see [access.Logins.FormToken]. Default none.
	FormToken func(*http.Request) string
	// Receipts issues receipts. Default nil: there are none.
	Receipts Receipts
	// Version is shown at the foot of each page. Default none.
	Version string
	// Logger gets what goes wrong; never a body, a query or a header. Default
	// none.
	Logger *slog.Logger
}

// desk answers requests for pages.
type desk struct {
	writes   writes
	tray     tray
	switches switches
	sagas    sagas
	past     past

	opts   Options
	log    *slog.Logger
	mux    *http.ServeMux
	origin *http.CrossOriginProtection

	inHand    sync.Map // decisions that are being carried out, by write
	listeners listeners
}

// New returns the handler of all pages. It answers whatever path it is asked
// for; what it does not know with a page that says so.
func New(o *office.Office, opts *Options) http.Handler {
	d := &desk{writes: o, tray: o, switches: o, sagas: o, past: o}
	return d.open(opts)
}

// open makes a desk ready to answer.
func (d *desk) open(opts *Options) *desk {
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.Who == nil {
		d.opts.Who = nobody{}
	}
	if d.log = d.opts.Logger; d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.origin = http.NewCrossOriginProtection()
	d.listeners.by = map[string]int{}
	d.mux = http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range routes {
		d.mux.HandleFunc(r.method+" "+r.pattern, d.serve(r))
		allowed[r.pattern] = append(allowed[r.pattern], r.method)
	}
	for pattern, methods := range allowed {
		if pattern == "/{$}" {
			continue // what it does not take is no page
		}
		d.mux.HandleFunc(pattern, d.serve(route{act: access.Trace, serve: func(d *desk, v *visit) error {
			v.w.Header().Set("Allow", strings.Join(methods, ", "))
			return errMethod
		}}))
	}
	d.mux.HandleFunc("/", d.serve(route{act: access.Trace, serve: func(*desk, *visit) error { return errNoPage }}))
	return d
}

// ServeHTTP answers a request.
func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// nobody knows nobody.
type nobody struct{}

// Resolve fails.
func (nobody) Resolve(*http.Request) (access.Identity, error) {
	return access.Identity{}, access.ErrUnknown
}

// Errors of requests, besides those of the office.
var (
	errNoPage = errors.New("there is no such page")
	errMethod = errors.New("this page does not take that method")
	errForm   = errors.New("the form cannot be read")
	errOrigin = errors.New("the request came from another site")
	// errOtherStop: it was stopped anew since somebody looked.
	errOtherStop = errors.New("the stop is another one")
)
