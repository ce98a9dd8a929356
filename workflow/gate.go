package workflow

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Store is where a gate keeps what it knows. All ledgers are one.
type Store interface {
	ledger.Papers
	// Get returns one write, or [ledger.ErrNotFound].
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// Across says what becomes of a step whose business operation was begun by
// another workflow.
type Across string

// The ways. The zero value means block.
const (
	AcrossBlock  Across = "block"
	AcrossIgnore Across = "ignore" // idempotency keys are compared within one workflow only, as in the published gate
)

// Approvals says how people are asked about a step that the rules want approved
// and that no risk rule says more about.
type Approvals struct {
	// Approvers is how many different people must approve. Default one.
	Approvers int
	// Within is how long they may take. Default 24 hours.
	Within time.Duration
	// OnTimeout says what becomes of it then. Default deny.
	OnTimeout policies.Timeout
}

// Options of a gate. Nil and the zero value work.
type Options struct {
	// Rules decide about steps. Default: everything is allowed that no risk rule
	// holds.
	Rules Decider
	// Look reads destinations for steps that declare a WriteIntent. If it has a
	// method Check(intent.WriteIntent) error, an intent that fails it is refused.
	// Default none: a step that declares an intent is refused.
	Look Looker
	// Risks raise the risk class of steps by their tool, and by destination and
	// kind of their intent. Default none.
	Risks []policies.RiskRule
	// Lease is how long a step may take that does not say, MaxLease how long it
	// may say. Default a minute and an hour.
	Lease, MaxLease time.Duration
	// Window is how far back an idempotency key of another workflow blocks once
	// its operation is settled; below zero for ever. Default 24 hours.
	Window time.Duration
	// AcrossWorkflows says what becomes of a business operation that was begun
	// by another workflow. Default block.
	AcrossWorkflows Across
	// Approvals says how people are asked.
	Approvals Approvals
	// BaseURL stands before the addresses of approvals, "https://host/api/v1".
	// Default none: no addresses are given.
	BaseURL string
	// Redaction keeps sensitive values out of answers. Default: nothing is sensitive.
	Redaction Redaction
	// Logger gets what nobody is told otherwise. Default [slog.Default].
	Logger *slog.Logger
}

// Gate answers for steps of workflows. It is safe for concurrent use, and any
// number of gates, in any number of processes, may share a store.
type Gate struct {
	store Store
	opts  atomic.Pointer[Options] // replaced as a whole, never changed
	set   sync.Mutex              // of whoever replaces them
	turns turns
	looks singleflight.Group
}

// New returns a gate on a store.
func New(s Store, o *Options) *Gate {
	g := &Gate{store: s, turns: newTurns()}
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Risks = slices.Clone(opts.Risks)
	opts.MaxLease = cmp.Or(opts.MaxLease, maxLease)
	opts.Lease = min(cmp.Or(opts.Lease, defaultLease), opts.MaxLease)
	switch {
	case opts.Window == 0:
		opts.Window = defaultWindow
	case opts.Window < 0:
		opts.Window = 0 // for ever, to the ledger
	}
	opts.Approvals.Approvers = max(opts.Approvals.Approvers, 1)
	if opts.Approvals.Within <= 0 {
		opts.Approvals.Within = defaultWithin
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	g.opts.Store(&opts)
	return g
}

// options are those in force, for one call from its begin to its end.
func (g *Gate) options() *Options { return g.opts.Load() }

func (g *Gate) change(how func(*Options)) {
	g.set.Lock()
	defer g.set.Unlock()
	opts := *g.options()
	how(&opts)
	g.opts.Store(&opts)
}

// SetRules replaces the rules, for every call from then on; nil allows everything
// that no risk rule holds. What was decided about a step stays: one that waits for
// people goes on waiting, and one that was blocked or allowed is ruled upon again
// only when it is asked to be.
func (g *Gate) SetRules(d Decider) { g.change(func(o *Options) { o.Rules = d }) }

// SetRisks replaces the risk rules as [Gate.SetRules] does the rules. The slice is
// copied.
func (g *Gate) SetRisks(rules []policies.RiskRule) {
	rules = slices.Clone(rules)
	g.change(func(o *Options) { o.Risks = rules })
}

// Caller is who calls, and for whom.
type Caller struct {
	// Tenant owns what is called about. Required.
	Tenant string
	// Name is kept with what the call asks for and decides. "" is not known.
	Name string
	// Role bounds what the caller may do. The zero value may do everything.
	Role engine.Role
}

// Create begins a workflow.
func (g *Gate) Create(ctx context.Context, c Caller, r CreateRequest) (Created, error) {
	opts := g.options()
	r.TraceID = cmp.Or(r.TraceID, engine.TraceID(ctx))
	f, err := newFlow(c, r)
	if err != nil {
		return Created{}, opts.told(c.Tenant, err)
	}
	for range maxTries {
		id := "wf_" + randomHex(4)
		filed, err := g.store.File(ctx, ledger.Filing{Papers: []ledger.Paper{f.paper(ledger.Paper{
			Tenant: c.Tenant, Kind: kindWorkflow, ID: id, Binder: id, Subject: f.Source, Trace: f.TraceID,
		})}})
		switch {
		case errors.Is(err, ledger.ErrStale): // the name is taken
			continue
		case err != nil:
			return Created{}, failed(err)
		}
		made := Created{WorkflowID: id, WorkflowName: f.Name, Source: f.Source, Status: f.Status, CreatedAt: filed.Papers[0].Created, TraceID: f.TraceID}
		opts.clean(c.Tenant, &made)
		return made, nil
	}
	return Created{}, &Error{Code: Internal, Message: "no free name for a workflow was found; nothing was recorded"}
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// failed is the refusal for what went wrong below the gate.
func failed(err error) error {
	var refused *Error
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, ledger.ErrUnsure):
		return &Error{Code: Internal, Message: "the ledger broke down; it is not known whether this was recorded", Err: err}
	}
	return &Error{Code: Internal, Message: "the ledger could not record this; nothing was changed", Err: err}
}
