package gate

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

const (
	// defaultLease is the lease of a step that does not request one; maxLease is the longest that
	// it may request. While it runs no other caller gets the step, even if its holder has died.
	defaultLease = time.Minute
	maxLease     = time.Hour
	// defaultWindow is how far back a settled business operation blocks another one of the same
	// name. It exceeds the time over which clients and queues repeat themselves.
	defaultWindow = 24 * time.Hour
	// defaultWithin is how long a step waits for a reviewer.
	defaultWithin = 24 * time.Hour
)

// Store holds a gate's state. Every ledger implements it.
type Store interface {
	ledger.Documents
	// Get returns one write, or [ledger.ErrNotFound].
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// Across selects what happens to a step whose business operation another workflow began.
type Across string

// The values. The zero value means block.
const (
	acrossBlock  Across = "block"
	AcrossIgnore Across = "ignore" // compare idempotency keys within one workflow only, as the published gate does
)

// Approvals configures the review of a step that the rules want approved and that no risk rule
// configures further.
type Approvals struct {
	// Approvers is how many different reviewers must approve. Default one.
	Approvers int
	// Within is the deadline for approvals. Default 24 hours.
	Within time.Duration
	// OnTimeout is the result after the deadline. Default deny.
	OnTimeout policies.Timeout
}

// Options configures a Gate. Nil and the zero value are valid.
type Options struct {
	// Rules decides about steps. Default: every step that no risk rule holds is allowed.
	Rules Decider
	// Reader reads destinations for steps that declare a WriteIntent. If it has a method
	// Check(intent.WriteIntent) error, an intent that fails it is refused. Default none: a step
	// that declares an intent is refused.
	Reader Reader
	// Risks raise the risk class of steps by their tool, and by destination and
	// kind of their intent. Default none.
	Risks []policies.RiskRule
	// Lease is the lease of a step that does not request one, MaxLease the longest that it may
	// request. Default a minute and an hour.
	Lease, MaxLease time.Duration
	// Window is how far back an idempotency key of another workflow blocks once its operation is
	// settled. Below zero: forever. Default 24 hours.
	Window time.Duration
	// AcrossWorkflows selects what happens to a business operation that another workflow began.
	// Default block.
	AcrossWorkflows Across
	// Approvals configures reviews.
	Approvals Approvals
	// BaseURL is the prefix of approval URLs, "https://host/api/v1". Default none: no URLs are
	// returned.
	BaseURL string
	// ReviewUI is the address of the review UI, "https://host". Default none: answers name no page.
	ReviewUI string
	// Redaction keeps sensitive values out of answers. Default: nothing is sensitive.
	Redaction Redaction
	// Logger receives errors that no caller receives. Default [slog.Default].
	Logger *slog.Logger
}

// Gate answers requests about steps of workflows. It is safe for concurrent use. Any number of
// gates, in any number of processes, may share a store.
type Gate struct {
	store Store
	opts  atomic.Pointer[Options] // replaced as a whole, never changed
	set   sync.Mutex              // serialises replacements of opts
	locks keyedMutex
	reads singleflight.Group
}

// New returns a gate on a store.
func New(s Store, o *Options) *Gate {
	g := &Gate{store: s, locks: newKeyedMutex()}
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
		opts.Window = 0 // the ledger's value for no bound
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

// options returns the current options. A call uses one snapshot throughout.
func (g *Gate) options() *Options { return g.opts.Load() }

func (g *Gate) change(how func(*Options)) {
	g.set.Lock()
	defer g.set.Unlock()
	opts := *g.options()
	how(&opts)
	g.opts.Store(&opts)
}

// SetRules replaces the rules for every later call. Nil allows every step that no risk rule
// holds. Decisions already made about a step remain: one that waits for reviewers keeps waiting,
// and one that was blocked or allowed is ruled on again only on request.
func (g *Gate) SetRules(d Decider) { g.change(func(o *Options) { o.Rules = d }) }

// SetRisks replaces the risk rules, with the semantics of [Gate.SetRules]. The slice is copied.
func (g *Gate) SetRisks(rules []policies.RiskRule) {
	rules = slices.Clone(rules)
	g.change(func(o *Options) { o.Risks = rules })
}

// Caller identifies the caller and its tenant.
type Caller struct {
	// Tenant owns the workflows of the call. Required.
	Tenant string
	// Name is recorded with the call's requests and decisions. "" is unknown.
	Name string
	// Role bounds what the caller may do. The zero value may do everything.
	Role engine.Role
	// Scope bounds the steps that the caller may gate, report and see. Default nil: all that the
	// role may.
	Scope *engine.Scope
}

// Create begins a workflow.
func (g *Gate) Create(ctx context.Context, c Caller, r CreateRequest) (Created, error) {
	opts := g.options()
	r.TraceID = cmp.Or(r.TraceID, engine.TraceID(ctx))
	f, err := newFlow(c, r)
	if err != nil {
		return Created{}, opts.redacted(c.Tenant, err)
	}
	for range maxTries {
		id := "wf_" + randomHex(4)
		committed, err := g.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{f.document(ledger.Document{
			Tenant: c.Tenant, Kind: kindWorkflow, ID: id, Collection: id, Subject: f.Source, Trace: f.TraceID,
		})}})
		switch {
		case errors.Is(err, ledger.ErrStale): // the ID is taken
			continue
		case err != nil:
			return Created{}, failed(err)
		}
		made := Created{WorkflowID: id, WorkflowName: f.Name, Source: f.Source, Status: f.Status, CreatedAt: committed.Documents[0].Created, TraceID: f.TraceID}
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

// failed maps an error below the gate to a refusal.
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
