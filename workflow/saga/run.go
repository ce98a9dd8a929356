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

// Store is where sagas are kept, together with the writes that they are about.
type Store interface {
	ledger.Papers
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// Engine carries single writes. [engine.Engine] is one.
type Engine interface {
	Check(w intent.WriteIntent) error
	Profile(w intent.WriteIntent) (connectors.Profile, error)
	Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (engine.Outcome, error)
	Undo(ctx context.Context, tenant string, id ledger.ID, u engine.Undoing) (engine.Outcome, error)
	NewTrace(ctx context.Context, name, tenant, workflow string) context.Context
}

// Options are what a runner can be told. The zero value works.
type Options struct {
	// Attempts is how many times in a row a retryable step of a saga that is
	// begun here is tried before a person is asked. Default 5.
	Attempts int
	// Window is how long an idempotency key blocks other writes, as in
	// engine.Options. Default 24 hours; negative: for ever.
	Window time.Duration
	// Lease is for how long a saga is in one worker's hands before another one
	// takes it up. Default 30 s.
	Lease time.Duration
	// Parallel is how many sagas [Runner.Work] has in hand at once. Default 16.
	Parallel int
	// Idle is its pause after nothing was due. Default 250 ms.
	Idle time.Duration
	// Redaction keeps sensitive values out of what is told. Default: nothing is
	// sensitive.
	Redaction Redaction
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
}

// Runner carries sagas out. It is safe for concurrent use, and any number of
// them may work on one ledger. Create one with [New].
type Runner struct {
	store  Store
	engine Engine
	opts   Options
}

// New makes a runner; o may be nil.
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

// Errors that callers can tell apart.
var (
	// ErrNotFound wraps [ledger.ErrNotFound]: no such saga in this tenant.
	ErrNotFound = fmt.Errorf("%w: no such saga", ledger.ErrNotFound)
	// ErrOtherPlan: the ID is that of a saga with another plan. Nothing was
	// changed.
	ErrOtherPlan = errors.New("another saga has this id")
)

// Check says what is wrong with a plan, with a [PlanError], or nil. Nothing is
// recorded or sent.
func (r *Runner) Check(p Plan) error {
	_, err := r.order(p)
	return err
}

// Order is the steps of a plan in the order in which they will be carried out.
// It fails as Check does.
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

// Begin records a saga; whoever runs [Runner.Work] on this ledger, or
// [Runner.Run], carries it out. The same plan again returns the saga as it
// stands. It fails with a [PlanError], with [ErrOtherPlan], or with an error of
// the ledger; a saga for which it returned nil is on disk.
func (r *Runner) Begin(ctx context.Context, p Plan) (Saga, error) {
	have, err := r.store.Paper(ctx, p.Tenant, kind, p.ID)
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
	if err != nil {
		return Saga{}, err
	}
	_, now, err := r.store.DuePapers(ctx, kind, 1) // by the clock of who will take it up
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
	filed, err := r.store.File(ctx, ledger.Filing{Papers: []ledger.Paper{{Tenant: p.Tenant, Kind: kind, ID: p.ID,
		Trace: p.CorrelationID, State: string(b.State), Due: now, Body: text}}})
	if errors.Is(err, ledger.ErrStale) { // somebody else was quicker
		have, err := r.store.Paper(ctx, p.Tenant, kind, p.ID)
		if err != nil {
			return Saga{}, err
		}
		return r.again(ctx, have, p)
	}
	if err != nil {
		return Saga{}, err
	}
	return view(filed.Papers[0], b), nil
}

// again is a saga that is begun a second time. What was acceptable once is not
// checked again: destinations change.
func (r *Runner) again(ctx context.Context, have ledger.Paper, p Plan) (Saga, error) {
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
	return r.Get(ctx, have.Tenant, have.ID)
}

// Get returns a saga with what the ledger knows of its writes now. It fails with
// [ErrNotFound].
func (r *Runner) Get(ctx context.Context, tenant, id string) (Saga, error) {
	t, err := r.read(ctx, tenant, id)
	if err != nil {
		return Saga{}, err
	}
	return r.picture(ctx, t)
}

// picture is a saga with all that is known of its steps.
func (r *Runner) picture(ctx context.Context, t turn) (Saga, error) {
	s := view(t.paper, t.body)
	if m, decided := t.decided(); decided {
		s.State, s.Reason, s.Next = m.state, m.reason, t.paper.Now
	}
	for i := range s.Steps {
		if t.known[i].there {
			s.Steps[i].tell(t.known[i].rec)
		}
		if s.Steps[i].Undoing == "" || t.known[i].rec.Child == "" {
			continue
		}
		undo, err := r.store.Get(ctx, t.paper.Tenant, s.Steps[i].Undoing)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return s, err
		}
		s.Steps[i].tellUndo(undo)
	}
	return s, nil
}

// decided is the next move of a saga whose paper still says that it waits for a
// person who has decided meanwhile, about a step or its undo: no reviewer is to be
// told to decide once more.
func (t turn) decided() (move, bool) {
	filed, err := decodeBody(t.paper)
	if err != nil || t.body.over() && t.body.State != Review || t.body.Stuck {
		return move{}, false
	}
	for i, s := range filed.Steps {
		waited := s.Status == engine.StatusReview || s.Status == engine.StatusHeld
		if f := t.known[i].fate(); !waited || f == fateReview || f == fateHeld {
			continue
		}
		m := next(t.body, t.known, t.paper.Now, false)
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

// List returns sagas of a tenant, newest first, as they were when they were last
// worked on; limit at most 1000, default 100. With states only those that stand
// so.
func (r *Runner) List(ctx context.Context, tenant string, limit int, states ...State) ([]Saga, error) {
	papers, _, err := r.store.FindPapers(ctx, query(tenant, limit, states))
	if err != nil {
		return nil, err
	}
	all := []Saga{}
	for _, p := range papers {
		b, err := decodeBody(p)
		if err != nil {
			return all, err
		}
		all = append(all, view(p, b))
	}
	return all, nil
}

// Count is how many sagas of a tenant stand so; all of them without states.
func (r *Runner) Count(ctx context.Context, tenant string, states ...State) (int, error) {
	_, total, err := r.store.FindPapers(ctx, query(tenant, 1, states))
	return total, err
}

func query(tenant string, limit int, states []State) ledger.PaperQuery {
	q := ledger.PaperQuery{Tenant: tenant, Kind: kind, Limit: limit}
	for _, s := range states {
		q.States = append(q.States, string(s))
	}
	return q
}

// turn is a saga as it was read, and what was decided about it.
type turn struct {
	paper ledger.Paper
	body  body
	known []known
}

// read reads a saga and the last writes of its steps.
func (r *Runner) read(ctx context.Context, tenant, id string) (turn, error) {
	p, err := r.store.Paper(ctx, tenant, kind, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return turn{}, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return turn{}, err
	}
	return r.open(ctx, p)
}

func (r *Runner) open(ctx context.Context, p ledger.Paper) (turn, error) {
	b, err := decodeBody(p)
	if err != nil {
		return turn{}, err
	}
	t := turn{paper: p, known: make([]known, len(b.Steps))}
	for i, s := range b.Steps {
		if !s.begun() {
			continue
		}
		rec, err := r.store.Get(ctx, p.Tenant, s.write())
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return turn{}, err
		}
		t.known[i] = known{rec, err == nil}
	}
	t.body = b.seen(t.known)
	return t, nil
}

// file writes the paper of a turn, and whatever belongs to it.
func (r *Runner) file(ctx context.Context, t *turn, due time.Time, reserve *ledger.Reservation, appended ...ledger.Appending) (ledger.Filed, error) {
	t.body = r.cleaned(t.paper.Tenant, t.body)
	text, err := t.body.encode()
	if err != nil {
		return ledger.Filed{}, err
	}
	p := t.paper
	p.State, p.Due, p.Body = string(t.body.State), due, text
	p.Done = t.body.final()
	filed, err := r.store.File(ctx, ledger.Filing{Papers: []ledger.Paper{p}, Reserve: reserve, Append: appended})
	if err != nil {
		return filed, err
	}
	if p.State == string(Review) && t.paper.State != p.State {
		r.opts.Logger.Warn("a person must look at a saga", "saga", p.ID, "tenant", p.Tenant, "correlation", t.body.CorrelationID, "reason", t.body.Reason)
	}
	t.paper = filed.Papers[0]
	return filed, nil
}

// jitter is a short pause before something is decided again.
func jitter() time.Duration { return rand.N(stalePause) + time.Millisecond }
