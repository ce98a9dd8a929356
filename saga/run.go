package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

const (
	// defaultLease is how long one worker has a saga before another may take it; it is renewed at
	// half time. It only saves work: two workers on one saga do no harm.
	defaultLease = 30 * time.Second
	// defaultWindow is how long an idempotency key blocks other writes, as in the engine.
	defaultWindow = 24 * time.Hour
	// defaultParallel is how many sagas one worker has at once: they wait for the network.
	defaultParallel = 16
	// workIdle and workFailed are a worker's pauses when nothing is due, and after the ledger
	// failed.
	workIdle   = 250 * time.Millisecond
	workFailed = 5 * time.Second
)

// Store holds sagas together with their writes.
type Store interface {
	ledger.Documents
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// Engine carries single writes. [engine.Engine] implements it.
type Engine interface {
	Check(w intent.WriteIntent) error
	Profile(w intent.WriteIntent) (connectors.Profile, error)
	NotChecked(w intent.WriteIntent) []string
	Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (engine.Outcome, error)
	Undo(ctx context.Context, tenant string, id ledger.ID, u engine.Undoing) (engine.Outcome, error)
	NewTrace(ctx context.Context, name, tenant, workflow string) context.Context
}

// Options configures a Runner. The zero value is valid.
type Options struct {
	// Attempts is how many times in a row a retryable step of a saga that is begun here is tried
	// before review. Default 5.
	Attempts int
	// Window is how long an idempotency key blocks other writes, as in engine.Options. Default 24
	// hours; negative: forever.
	Window time.Duration
	// Lease is how long one worker has a saga before another takes it. Default 30 s.
	Lease time.Duration
	// Parallel is how many sagas [Runner.Work] has at once. Default 16.
	Parallel int
	// Idle is the pause of [Runner.Work] when nothing is due. Default 250 ms.
	Idle time.Duration
	// Redaction removes sensitive values from what is returned and logged. Default: nothing is
	// sensitive.
	Redaction Redaction
	// Logger receives events for operators. Default: nothing.
	Logger *slog.Logger
}

// Runner carries out sagas. It is safe for concurrent use, and any number of them may work on one
// ledger. Create one with [New].
type Runner struct {
	store  Store
	engine Engine
	opts   Options
}

// New returns a runner; o may be nil.
func New(s Store, e Engine, o *Options) *Runner {
	r := &Runner{store: s, engine: e}
	if o != nil {
		r.opts = *o
	}
	if r.opts.Attempts <= 0 {
		r.opts.Attempts = defaultAttempts
	}
	if r.opts.Window == 0 {
		r.opts.Window = defaultWindow
	}
	r.opts.Window = max(r.opts.Window, 0)
	if r.opts.Lease <= 0 {
		r.opts.Lease = defaultLease
	}
	if r.opts.Parallel <= 0 {
		r.opts.Parallel = defaultParallel
	}
	if r.opts.Idle <= 0 {
		r.opts.Idle = workIdle
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return r
}

// Errors that callers can distinguish.
var (
	// ErrNotFound wraps [ledger.ErrNotFound]: no such saga in this tenant.
	ErrNotFound = fmt.Errorf("%w: no such saga", ledger.ErrNotFound)
	// ErrOtherPlan: the ID belongs to a saga with another plan. Nothing was changed.
	ErrOtherPlan = errors.New("another saga has this id")
)

// Check returns a [PlanError] for an invalid plan, or nil. It records and sends nothing.
func (r *Runner) Check(p Plan) error {
	_, err := r.order(p)
	return err
}

// Order returns the steps of a plan in the order of execution. It fails as Check does.
func (r *Runner) Order(p Plan) ([]string, error) {
	steps, err := r.order(p)
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return names, err
}

func (r *Runner) order(p Plan) ([]checked, error) {
	_, steps, err := r.prepared(p)
	return steps, err
}

// prepared checks a plan as a whole.
func (r *Runner) prepared(p Plan) (Plan, []checked, error) {
	p, steps, err := p.check(r.engine)
	if err != nil {
		return p, nil, err
	}
	text, err := p.Encode()
	if err != nil {
		return p, nil, err
	}
	if len(text) > MaxPlan {
		return p, nil, tooLarge(len(text))
	}
	return p, steps, nil
}

// Begin records a saga; [Runner.Work] or [Runner.Run] on this ledger carries it out. The same
// plan again returns the saga in its current state. Its writes are made without a caller, so the
// scope of the caller who begins it must cover all of them and all undoings in the plan. It fails
// with a [PlanError], with [ErrOtherPlan], or with an error of the ledger. A saga for which it
// returned nil is on disk.
func (r *Runner) Begin(ctx context.Context, p Plan) (Saga, error) {
	have, err := r.store.Document(ctx, p.Tenant, kind, p.ID)
	switch {
	case err == nil:
		return r.again(ctx, have, p)
	case !errors.Is(err, ledger.ErrNotFound):
		if checkErr := r.Check(p); checkErr != nil {
			return Saga{}, checkErr
		}
		return Saga{}, err
	}
	p, steps, err := r.prepared(p.correlated(engine.TraceID(ctx)))
	if err == nil {
		err = p.covered(engine.Caller(ctx).Scope)
	}
	if err != nil {
		return Saga{}, err
	}
	_, now, err := r.store.DueDocuments(ctx, kind, 1) // on the clock of the worker that will take it
	if err != nil {
		return Saga{}, err
	}
	b, err := newBody(p, steps, engine.Caller(ctx).Name, now)
	if err != nil {
		return Saga{}, err
	}
	b.Attempts = r.opts.Attempts
	b.Trace = engine.Traceparent(r.engine.NewTrace(ctx, "saga", p.Tenant, p.ID))
	b.Reason = "recorded; nothing was begun yet"
	text, err := b.encode()
	if err != nil {
		return Saga{}, err
	}
	committed, err := r.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{{Tenant: p.Tenant, Kind: kind, ID: p.ID,
		Trace: p.CorrelationID, State: string(b.State), Due: now, Body: text}}})
	if errors.Is(err, ledger.ErrStale) { // another actor was first
		have, err := r.store.Document(ctx, p.Tenant, kind, p.ID)
		if err != nil {
			return Saga{}, err
		}
		return r.again(ctx, have, p)
	}
	if err != nil {
		return Saga{}, err
	}
	return view(committed.Documents[0], b), nil
}

// again is a saga that is begun a second time. An accepted plan is not checked again:
// destinations change.
func (r *Runner) again(ctx context.Context, have ledger.Document, p Plan) (Saga, error) {
	p, err := p.filled()
	if err != nil {
		return Saga{}, err
	}
	digest, err := p.digest()
	if err != nil {
		return Saga{}, err
	}
	b, err := decodeBody(have)
	if err != nil {
		return Saga{}, err
	}
	if b.Plan != digest {
		return Saga{}, fmt.Errorf("%w: saga %q was begun with plan %s, this one is %s; give another id, or repeat the plan unchanged", ErrOtherPlan, p.ID, b.Plan, digest)
	}
	if err := p.covered(engine.Caller(ctx).Scope); err != nil {
		return Saga{}, err
	}
	return r.Get(ctx, have.Tenant, have.ID)
}

// Get returns a saga with the current ledger state of its writes. It fails with [ErrNotFound].
func (r *Runner) Get(ctx context.Context, tenant, id string) (Saga, error) {
	t, err := r.read(ctx, tenant, id)
	if err != nil {
		return Saga{}, err
	}
	return r.picture(ctx, t)
}

// picture is a saga with all that is known of its steps.
func (r *Runner) picture(ctx context.Context, t loaded) (Saga, error) {
	s := view(t.document, t.body)
	if m, decided := t.decided(); decided {
		s.State, s.Reason, s.Next = m.state, clipped(m.reason), t.document.Now
	}
	for i := range s.Steps {
		if t.known[i].there {
			s.Steps[i].fill(t.known[i].rec)
		}
		if s.Steps[i].Undoing == "" || t.known[i].rec.Child == "" {
			continue
		}
		undo, err := r.store.Get(ctx, t.document.Tenant, s.Steps[i].Undoing)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return s, err
		}
		s.Steps[i].fillUndo(undo)
	}
	return s, nil
}

// decided is the next move of a saga whose document still waits for a reviewer who has decided
// meanwhile, about a step or its undo: no reviewer is asked to decide twice.
func (t loaded) decided() (move, bool) {
	committed, err := decodeBody(t.document)
	if err != nil || t.body.over() && t.body.State != Review || t.body.Stuck {
		return move{}, false
	}
	for i, s := range committed.Steps {
		waited := s.Status.Group() == ledger.NeedsReview
		if f := t.known[i].fate(); !waited || f == fateReview || f == fateHeld {
			continue
		}
		m := next(t.body, t.known, t.document.Now, false)
		switch m.do {
		case rest, carry:
		case goBack, withdraw, undo:
			m.state, m.reason = Undoing, fmt.Sprintf("it was decided about step %q, and the saga goes back", s.Name)
		default:
			m.state, m.reason = Running, fmt.Sprintf("a reviewer decided about step %q, and the saga continues", s.Name)
		}
		return m, true
	}
	return move{}, false
}

// List returns sagas of a tenant, newest first, in the state of their last move; limit at most
// 1000, default 100. With states, it returns only sagas in these states.
func (r *Runner) List(ctx context.Context, tenant string, limit int, states ...State) ([]Saga, error) {
	documents, _, err := r.store.FindDocuments(ctx, query(tenant, limit, states))
	if err != nil {
		return nil, err
	}
	all := []Saga{}
	for _, p := range documents {
		b, err := decodeBody(p)
		if err != nil {
			return all, err
		}
		all = append(all, view(p, b))
	}
	return all, nil
}

// Count returns how many sagas of a tenant are in these states; all of them without states.
func (r *Runner) Count(ctx context.Context, tenant string, states ...State) (int, error) {
	_, total, err := r.store.FindDocuments(ctx, query(tenant, 1, states))
	return total, err
}

func query(tenant string, limit int, states []State) ledger.DocumentQuery {
	q := ledger.DocumentQuery{Tenant: tenant, Kind: kind, Limit: limit}
	for _, s := range states {
		q.States = append(q.States, string(s))
	}
	return q
}

// loaded is a saga as it was read, and the changes decided.
type loaded struct {
	document ledger.Document
	body     body
	known    []known
}

// read reads a saga and the last writes of its steps.
func (r *Runner) read(ctx context.Context, tenant, id string) (loaded, error) {
	p, err := r.store.Document(ctx, tenant, kind, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return loaded{}, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return loaded{}, err
	}
	return r.open(ctx, p)
}

func (r *Runner) open(ctx context.Context, p ledger.Document) (loaded, error) {
	b, err := decodeBody(p)
	if err != nil {
		return loaded{}, err
	}
	t := loaded{document: p, known: make([]known, len(b.Steps))}
	for i, s := range b.Steps {
		if !s.begun() {
			continue
		}
		rec, err := r.store.Get(ctx, p.Tenant, s.write())
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return loaded{}, err
		}
		t.known[i] = known{rec: rec, there: err == nil}
	}
	if err := r.lost(ctx, t, b); err != nil {
		return loaded{}, err
	}
	t.body = b.seen(t.known)
	return t, nil
}

// lost marks the steps that may have been begun or sent in a time of which the ledger lacks the
// history: those that have an unsent write and, where the saga goes back, those that were not begun.
func (r *Runner) lost(ctx context.Context, t loaded, b body) error {
	var last *ledger.Restore
	for i, s := range b.Steps {
		rec := t.known[i].rec
		if s.begun() && !unsent(rec) || !s.begun() && b.Back == nil {
			continue
		}
		if last == nil {
			found, _, err := ledger.Restored(ctx, r.store)
			if err != nil {
				return err
			}
			last = &found
		}
		t.known[i].lost = last.Covers(rec)
		if !s.begun() {
			t.known[i].lost = last.Open() && t.document.Created.Before(last.Until)
		}
	}
	return nil
}

// file commits the document of a saga with its other changes.
func (r *Runner) file(ctx context.Context, t *loaded, due time.Time, reserve *ledger.Reservation, appended ...ledger.Appending) (ledger.Committed, error) {
	t.body = r.cleaned(t.document.Tenant, t.body)
	text, err := t.body.encode()
	if err != nil {
		return ledger.Committed{}, err
	}
	p := t.document
	p.State, p.Due, p.Body = string(t.body.State), due, text
	p.Done = t.body.final()
	committed, err := r.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}, Reserve: reserve, Append: appended})
	if err != nil {
		return committed, err
	}
	if p.State == string(Review) && t.document.State != p.State {
		r.opts.Logger.Warn("a reviewer must decide about a saga", "saga", p.ID, "tenant", p.Tenant, "correlation", t.body.CorrelationID, "reason", t.body.Reason)
	}
	t.document = committed.Documents[0]
	return committed, nil
}

// jitter is a short pause before the next decision.
func jitter() time.Duration { return rand.N(stalePause) + time.Millisecond }
