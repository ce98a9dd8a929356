package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/saga"
)

// Who is the caller of a request.
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

// Steps is the part of the gate that reviewers see; see [workflow.Gate].
type Steps interface {
	Pending(ctx context.Context, c gate.Caller, limit int) ([]gate.PendingApproval, error)
	Approve(ctx context.Context, c gate.Caller, workflowID, stepID string, s gate.Comment) (gate.ApprovalResult, error)
	Reject(ctx context.Context, c gate.Caller, workflowID, stepID string, s gate.Comment) (gate.ApprovalResult, error)
	Trace(ctx context.Context, c gate.Caller, workflowID, stepID string) (gate.StepTrace, error)
	Steps(ctx context.Context, c gate.Caller, workflowID string, limit, offset int) (gate.StepList, error)
}

// Parts are the parts of a Service. Writes, Ledger and Registry are required. A call that
// needs another part that is missing fails with [ErrUnsupported].
type Parts struct {
	Writes   Writes
	Ledger   ledger.Ledger
	Registry *connectors.Registry
	Sagas    Sagas
	Steps    Steps
	// Types is the type of each destination, for display.
	Types map[string]string
	// Redaction keeps sensitive values out of responses. Default none are.
	Redaction Redaction
	// Events records refusals. Default none.
	Events *access.Events
	// ReviewUI is the address of the review UI, without a slash at the end. Default none.
	ReviewUI string
	Logger   *slog.Logger
}

// Errors of a Service, besides those of its parts.
var (
	// ErrUnsupported: this server was made without a part that the call needs.
	ErrUnsupported = errors.New("not supported here")
	// ErrTenant: the intent names another tenant than the credentials.
	ErrTenant = fmt.Errorf("%w: another tenant", access.ErrForbidden)
)

// Service serves the APIs. It is safe for concurrent use.
type Service struct {
	parts   Parts
	log     *slog.Logger
	pasts   pasts
	counts  counts
	cursors cursors
}

// New makes a Service.
func New(p Parts) *Service {
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{parts: p, log: p.Logger}
}

// Refused records that a tool was refused to a caller, for APIs that respond with another
// status than 403.
func (o *Service) Refused(who Who, tool string, err error) { o.parts.Events.Refused(who, tool, err) }

// Submit carries out an intent on behalf of a caller and waits for its outcome for the
// given time. With 0 it does not wait: the outcome is in progress. The tenant is that of
// the credentials; an intent that names another one is refused with [ErrTenant].
func (o *Service) Submit(ctx context.Context, who Who, w intent.WriteIntent, wait time.Duration) (engine.Outcome, error) {
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
	return o.shown(who, out), o.cleaned(who, refused(who, err), w)
}

// Begun is the intent of the write that an intent with this structural key began, for
// APIs whose intents depend on what they read at the time. Its sensitive values are not
// redacted: it is for the engine, and must be shown to no caller. It fails with
// [redact.ErrNoKey] if they cannot be opened, and with [ledger.ErrNotFound] if there is
// no write, or only its tombstone.
func (o *Service) Begun(ctx context.Context, who Who, w intent.WriteIntent) (intent.WriteIntent, ledger.ID, error) {
	if err := who.May(access.Submit); err != nil {
		return intent.WriteIntent{}, "", err
	}
	w.Tenant = who.Tenant
	r, err := o.get(ctx, who, ledger.IDOf(w.StructuralKey()))
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
	if err := who.Scope.Covers(before); err != nil {
		return intent.WriteIntent{}, "", err
	}
	return before, r.ID, nil
}

// get is the record of a write of the own tenant. One outside of the scope of the caller
// is not found, in the same words as one that does not exist.
func (o *Service) get(ctx context.Context, who Who, id ledger.ID) (ledger.Record, error) {
	r, err := o.parts.Ledger.Get(ctx, who.Tenant, id)
	if err == nil && !who.Scope.Shows(r) {
		return ledger.Record{}, fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
	}
	return r, err
}

// Outcome is the outcome of a write, after waiting for its end, a reviewer's decision
// included, for the given time.
func (o *Service) Outcome(ctx context.Context, who Who, id ledger.ID, wait time.Duration) (engine.Outcome, error) {
	return o.outcome(ctx, who, id, wait, o.parts.Writes.Wait)
}

// Final is Outcome, after waiting for pending rechecks too.
func (o *Service) Final(ctx context.Context, who Who, id ledger.ID, wait time.Duration) (engine.Outcome, error) {
	return o.outcome(ctx, who, id, wait, o.parts.Writes.WaitFinal)
}

func (o *Service) outcome(ctx context.Context, who Who, id ledger.ID, wait time.Duration,
	await func(context.Context, string, ledger.ID, bool) (engine.Outcome, error)) (engine.Outcome, error) {
	if err := who.May(access.Read); err != nil {
		return engine.Outcome{}, err
	}
	if wait <= 0 || who.Scope != nil {
		r, err := o.get(ctx, who, id)
		if err != nil {
			return engine.Outcome{}, err
		}
		if wait <= 0 {
			return o.shown(who, engine.OutcomeIn(ctx, o.parts.Ledger, r)), nil
		}
	}
	ctx, cancel := context.WithTimeout(engine.As(ctx, who.Principal()), wait)
	defer cancel()
	for {
		out, err := await(ctx, who.Tenant, id, true)
		if err != nil || out.Status.Group() != ledger.NeedsReview || !pause(ctx) {
			return o.shown(who, out), err
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

// View is everything about one write that a reviewer may need. Sensitive values are
// digests in it: a reviewer who must see one opens the record at the destination, at
// Record.URL.
type View struct {
	Record  ledger.Record
	Outcome engine.Outcome
	Business
	Intent intent.WriteIntent // zero for a tombstone, and for a write that the caller makes itself
	Events []ledger.Event     // none for a tombstone
	// Profile is the capabilities of its destination, nil where they are not known here.
	Profile *connectors.Profile
	// Assigned is the reviewer who has taken it, "" for none.
	Assigned string
	// Maker is the other write whose record the last read found, nil where there is none.
	Maker *ledger.Record
	// Choices are the decisions that this caller may make now.
	Choices []engine.Choice
}

// View reads a write with all that is known about it.
func (o *Service) View(ctx context.Context, who Who, id ledger.ID) (View, error) {
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
	v.Profile = o.profileOf(r)
	v.Business = business(v.Record, v.Intent, v.Profile)
	if v.Assigned, err = o.assignee(ctx, who.Tenant, id); err != nil {
		return View{}, err
	}
	v.Maker = o.maker(ctx, v)
	if who.May(access.Decide) == nil {
		v.Choices, err = o.parts.Writes.Choices(engine.As(ctx, who.Principal()), who.Tenant, id)
	}
	return v, err
}

// profileOf returns the profile of a write's destination, nil where it is not known here.
func (o *Service) profileOf(r ledger.Record) *connectors.Profile {
	_, p, err := o.parts.Registry.Lookup(r.Destination, r.Kind)
	if err != nil {
		return nil
	}
	return &p
}

// maker finds the write that made the one record which the last read found. It is for display:
// if the ledger cannot be searched, there is none.
func (o *Service) maker(ctx context.Context, v View) *ledger.Record {
	evidence := v.Record.Evidence
	for _, e := range slices.Backward(v.Events) {
		if len(evidence) > 0 {
			break
		}
		evidence = e.Evidence
	}
	var seen connectors.Observation
	if json.Unmarshal(evidence, &seen) != nil || len(seen.Records) != 1 || v.Record.KeyDigest == "" || v.Intent.Write == "" {
		return nil
	}
	stamp := seen.Records[0].Stamp
	if stamp == "" || stamp == v.Intent.Stamp() {
		return nil
	}
	found, err := o.parts.Ledger.Find(ctx, ledger.Search{Tenant: v.Record.Tenant, KeyDigest: v.Record.KeyDigest})
	if err != nil {
		o.log.WarnContext(ctx, "which write made a record could not be found out", "write", v.Record.ID, "error", err)
		return nil
	}
	for _, r := range found.Records {
		if w, err := intent.DecodeStored(r.Intent); err == nil && w.Stamp() == stamp {
			r = Shown(r)
			return &r
		}
	}
	return nil
}

// Found is a page of a search. Matched are the fields of each write that match its query, and
// Business describes each.
type Found struct {
	ledger.SearchResult
	Matched  map[ledger.ID][]string
	Business map[ledger.ID]Business
}

// Find searches writes of the own tenant. It finds sealed values that are the query too.
func (o *Service) Find(ctx context.Context, who Who, s ledger.Search) (Found, error) {
	if err := who.May(access.Trace); err != nil {
		return Found{}, err
	}
	s.Tenant = who.Tenant
	if s.QueryDigests = nil; s.Query != "" && o.parts.Redaction != nil {
		s.QueryDigests = o.parts.Redaction.Digests(who.Tenant, strings.TrimSpace(s.Query))
	}
	var err error
	if s.After, err = o.openCursor(ctx, who, s.After); err != nil {
		return Found{}, err
	}
	found := Found{Matched: make(map[ledger.ID][]string), Business: make(map[ledger.ID]Business)}
	if found.SearchResult, err = o.parts.Ledger.Find(ctx, s); err != nil {
		return Found{}, err
	}
	for _, r := range found.Records {
		found.Matched[r.ID] = s.Matched(r)
	}
	found.Records = ShownAll(found.Records)
	for _, r := range found.Records {
		w, _ := intent.DecodeStored(r.Intent) // without one, its tool names it
		found.Business[r.ID] = business(r, w, o.profileOf(r))
	}
	found.Next, err = o.sealCursor(ctx, who, found.Next)
	return found, err
}

// Decide carries out a reviewer's decision, in their name, and waits for the result for
// the given time.
func (o *Service) Decide(ctx context.Context, who Who, id ledger.ID, d engine.Decision, wait time.Duration) (engine.Outcome, error) {
	if err := who.May(access.Decide); err != nil {
		return engine.Outcome{}, err
	}
	d.By = who.Name
	ctx, cancel := context.WithTimeout(engine.As(ctx, who.Principal()), wait)
	defer cancel()
	out, err := o.parts.Writes.Resolve(ctx, who.Tenant, id, d)
	err = o.cleaned(who, err)
	o.describe(ctx, who, "a write is decided about", err, "write", id, "word", d.Word)
	return out, err
}

// Yield releases the business operation of a write.
func (o *Service) Yield(ctx context.Context, who Who, id ledger.ID, reason string) error {
	if err := who.May(access.Operate); err != nil {
		return err
	}
	err := o.parts.Writes.Yield(engine.As(ctx, who.Principal()), who.Tenant, id, who.Name, reason)
	o.describe(ctx, who, "release of an operation", err, "write", id)
	return err
}
