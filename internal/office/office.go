package office

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// Who is whoever something is asked for.
type Who = access.Identity

// Writes carries out writes and decisions; see [engine.Engine].
type Writes interface {
	Do(ctx context.Context, w intent.WriteIntent) (engine.Outcome, error)
	Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (engine.Outcome, error)
	WaitFinal(ctx context.Context, tenant string, id ledger.ID, replayed bool) (engine.Outcome, error)
	Resolve(ctx context.Context, tenant string, id ledger.ID, d engine.Decision) (engine.Outcome, error)
	Yield(ctx context.Context, tenant string, id ledger.ID, by, reason string) error
	Choices(ctx context.Context, tenant string, id ledger.ID) ([]engine.Choice, error)
	Opened(r ledger.Record) (intent.WriteIntent, error)
}

// Sagas carries out sagas; see [saga.Runner].
type Sagas interface {
	Begin(ctx context.Context, p saga.Plan) (saga.Saga, error)
	Get(ctx context.Context, tenant, id string) (saga.Saga, error)
	List(ctx context.Context, tenant string, limit int, states ...saga.State) ([]saga.Saga, error)
	Cancel(ctx context.Context, tenant, id, by, reason string) (saga.Saga, error)
	Close(ctx context.Context, tenant, id, by, reason string) (saga.Saga, error)
}

// Steps is the part of the gate that people see; see [workflow.Gate].
type Steps interface {
	Pending(ctx context.Context, c workflow.Caller, limit int) ([]workflow.PendingApproval, error)
	Approve(ctx context.Context, c workflow.Caller, workflowID, stepID string, s workflow.Said) (workflow.ApprovalResult, error)
	Reject(ctx context.Context, c workflow.Caller, workflowID, stepID string, s workflow.Said) (workflow.ApprovalResult, error)
	Trace(ctx context.Context, c workflow.Caller, workflowID, stepID string) (workflow.StepTrace, error)
	Steps(ctx context.Context, c workflow.Caller, workflowID string, limit, offset int) (workflow.StepList, error)
}

// Parts is what an office is made of. Writes, Ledger and Registry are required;
// without another part what needs it fails with [ErrUnsupported].
type Parts struct {
	Writes   Writes
	Ledger   ledger.Ledger
	Registry *connectors.Registry
	Sagas    Sagas
	Steps    Steps
	// Types says of which type each destination is, for people.
	Types map[string]string
	// Redaction keeps sensitive values out of what is told. Default none are.
	Redaction Redaction
	Logger    *slog.Logger
}

// Errors of an office, besides those of the parts.
var (
	// ErrUnsupported: this server was made without what is needed.
	ErrUnsupported = errors.New("not supported here")
	// ErrTenant: the intent names another tenant than the credentials.
	ErrTenant = fmt.Errorf("%w: another tenant", access.ErrForbidden)
)

// Office answers the doors. It is safe for concurrent use.
type Office struct {
	parts Parts
	log   *slog.Logger
	pasts pasts
}

// New makes an office.
func New(p Parts) *Office {
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	return &Office{parts: p, log: p.Logger}
}

// Submit carries out an intent on behalf of somebody and waits for its outcome
// for so long, 0 for not at all: then the outcome is in progress. The tenant is
// that of the credentials; an intent that names another one is refused with
// [ErrTenant].
func (o *Office) Submit(ctx context.Context, who Who, w intent.WriteIntent, wait time.Duration) (engine.Outcome, error) {
	if err := who.May(access.Submit); err != nil {
		return engine.Outcome{}, err
	}
	if w.Tenant == "" {
		w.Tenant = who.Tenant
	}
	if w.Tenant != who.Tenant {
		return engine.Outcome{}, fmt.Errorf("%w: /tenant is not the one of the credentials; leave it out", ErrTenant)
	}
	if w.CorrelationID == "" {
		w.CorrelationID = engine.TraceID(ctx)
	}
	ctx, cancel := context.WithTimeout(engine.As(ctx, who.Principal()), wait)
	defer cancel()
	out, err := o.parts.Writes.Do(ctx, w)
	if errors.Is(err, connectors.ErrUnknownDestination) && slices.Contains(o.parts.Registry.Names(), w.Destination) &&
		!slices.Contains(o.parts.Registry.NamesFor(who.Tenant), w.Destination) {
		o.log.InfoContext(ctx, "an intent names a destination that does not serve its tenant; destinations.NAME.tenants lists those that it serves",
			"tenant", who.Tenant, "destination", w.Destination)
	}
	return told(who, out), o.cleaned(who, refused(who, err), w)
}

// Begun is the intent of the write that an intent with this structural key began,
// for doors whose intents depend on what they saw at the time. What is sensitive in
// it is as it was: it is for the engine again, and nobody may be shown it. It fails
// with [redact.ErrNoKey] where that cannot be opened, and with [ledger.ErrNotFound] where there is none, or no more of it than that it was.
func (o *Office) Begun(ctx context.Context, who Who, w intent.WriteIntent) (intent.WriteIntent, ledger.ID, error) {
	if err := who.May(access.Submit); err != nil {
		return intent.WriteIntent{}, "", err
	}
	w.Tenant = who.Tenant
	r, err := o.parts.Ledger.Get(ctx, who.Tenant, ledger.IDOf(w.StructuralKey()))
	if err != nil {
		return intent.WriteIntent{}, "", err
	}
	before, err := o.parts.Writes.Opened(r)
	if errors.Is(err, redact.ErrNoKey) {
		return intent.WriteIntent{}, "", err
	}
	if err != nil || before.StructuralKey() != w.StructuralKey() {
		return intent.WriteIntent{}, "", fmt.Errorf("%w: nothing is left of its intent", ledger.ErrNotFound)
	}
	return before, r.ID, nil
}

// Outcome is how a write stands, after waiting for its end for so long, a person's
// decision included.
func (o *Office) Outcome(ctx context.Context, who Who, id ledger.ID, wait time.Duration) (engine.Outcome, error) {
	return o.outcome(ctx, who, id, wait, o.parts.Writes.Wait)
}

// Final is Outcome, after waiting for pending rechecks too.
func (o *Office) Final(ctx context.Context, who Who, id ledger.ID, wait time.Duration) (engine.Outcome, error) {
	return o.outcome(ctx, who, id, wait, o.parts.Writes.WaitFinal)
}

func (o *Office) outcome(ctx context.Context, who Who, id ledger.ID, wait time.Duration,
	await func(context.Context, string, ledger.ID, bool) (engine.Outcome, error)) (engine.Outcome, error) {
	if err := who.May(access.Read); err != nil {
		return engine.Outcome{}, err
	}
	if wait <= 0 {
		r, err := o.parts.Ledger.Get(ctx, who.Tenant, id)
		if err != nil {
			return engine.Outcome{}, err
		}
		return told(who, engine.OutcomeIn(ctx, o.parts.Ledger, r)), nil
	}
	ctx, cancel := context.WithTimeout(engine.As(ctx, who.Principal()), wait)
	defer cancel()
	for {
		out, err := await(ctx, who.Tenant, id, true)
		person := out.Status == engine.StatusHeld || out.Status == engine.StatusReview
		if err != nil || !person || !pause(ctx) {
			return told(who, out), err
		}
	}
}

// pause waits a moment, and reports whether there is time left.
func pause(ctx context.Context) bool {
	t := time.NewTimer(glance)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// View is everything about one write that a person may want to know. Sensitive
// values are digests in it: whoever must see one looks at the destination, where
// Record.URL leads.
type View struct {
	Record  ledger.Record
	Outcome engine.Outcome
	Intent  intent.WriteIntent // zero for a tombstone, and for what a caller does itself
	Events  []ledger.Event     // none for a tombstone
	// Profile is what its destination can do, nil where that is not known here.
	Profile *connectors.Profile
	// Choices is what may be decided now, by whoever looks.
	Choices []engine.Choice
}

// View looks a write up with all that is known about it.
func (o *Office) View(ctx context.Context, who Who, id ledger.ID) (View, error) {
	if err := who.May(access.Trace); err != nil {
		return View{}, err
	}
	r, err := o.parts.Ledger.Get(ctx, who.Tenant, id)
	if err != nil {
		return View{}, err
	}
	v := View{Record: Shown(r), Outcome: engine.OutcomeIn(ctx, o.parts.Ledger, r)}
	if !r.Tombstone {
		events, err := o.parts.Ledger.Events(ctx, who.Tenant, id)
		if err != nil {
			return View{}, err
		}
		v.Events = ShownEvents(events)
	}
	if w, err := intent.DecodeStored(v.Record.Intent); err == nil {
		v.Intent = w
	}
	if _, p, err := o.parts.Registry.Lookup(r.Destination, r.Kind); err == nil {
		v.Profile = &p
	}
	if who.May(access.Decide) == nil {
		v.Choices, err = o.parts.Writes.Choices(engine.As(ctx, who.Principal()), who.Tenant, id)
	}
	return v, err
}

// Find looks for writes of the own tenant.
func (o *Office) Find(ctx context.Context, who Who, s ledger.Search) (ledger.Found, error) {
	if err := who.May(access.Trace); err != nil {
		return ledger.Found{}, err
	}
	s.Tenant = who.Tenant
	found, err := o.parts.Ledger.Find(ctx, s)
	found.Records = ShownAll(found.Records)
	return found, err
}

// Decide carries out what somebody decided, in their name, and waits for what
// follows for so long.
func (o *Office) Decide(ctx context.Context, who Who, id ledger.ID, d engine.Decision, wait time.Duration) (engine.Outcome, error) {
	if err := who.May(access.Decide); err != nil {
		return engine.Outcome{}, err
	}
	d.By = who.Name
	ctx, cancel := context.WithTimeout(engine.As(ctx, who.Principal()), wait)
	defer cancel()
	out, err := o.parts.Writes.Resolve(ctx, who.Tenant, id, d)
	err = o.cleaned(who, err)
	o.tell(ctx, who, "a write is decided about", err, "write", id, "word", d.Word)
	return out, err
}

// Yield lets the business operation of a write go.
func (o *Office) Yield(ctx context.Context, who Who, id ledger.ID, reason string) error {
	if err := who.May(access.Operate); err != nil {
		return err
	}
	err := o.parts.Writes.Yield(engine.As(ctx, who.Principal()), who.Tenant, id, who.Name, reason)
	o.tell(ctx, who, "an operation is let go", err, "write", id)
	return err
}
