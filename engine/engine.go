// Package engine is the only control flow: it takes an intent through its life.
//
// [Engine.Do] records an intent, sends it once, reads the destination back,
// and returns a verified [Outcome]. The same loop that does this for a new
// write continues one that a dead process left behind: it starts from the
// state in the ledger. [Engine.Work] does so for all that is due,
// [Engine.Resolve] carries out what a person decided.
//
// What is true is found out by package verify, what to do is decided by
// package policies; the engine acts. It knows destinations and ledgers as
// interfaces only, and it cannot see effects that were made outside it.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Engine carries out intents. It is safe for concurrent use. Create one with
// [New] and end it with [Engine.Close].
type Engine struct {
	ledger  ledger.Ledger
	reg     *connectors.Registry
	opts    Options
	ctx     context.Context // ends with Close: stops waiting, not sending
	stop    context.CancelFunc
	wg      sync.WaitGroup
	callers atomic.Int64
	queues  queues
	paths   paths
	readers readers
	wakes   wakes
	rules   atomic.Pointer[[]policies.RiskRule]
	mu      sync.Mutex
	flights map[ledger.ID]*flight
	closed  bool
	tracer  *tracer // nil: nobody is told
	meter   metered
	clock   clock
}

// Options are what an engine can be told. The zero value works.
type Options struct {
	// Policies are asked in order. Default: [policies.Standard].
	Policies []policies.Policy
	// Budget is how many sends may reach a destination over the life of one
	// write. Default: [policies.DefaultBudget].
	Budget int
	// Risks raise the risk classes of writes, and say how a held write is
	// approved. Default: nothing is raised.
	Risks []policies.RiskRule
	// Window is how long an idempotency key blocks other writes. Default:
	// 24 hours; negative: for ever.
	Window time.Duration
	// Owner names this engine in leases and events. Default: host, process and
	// a random part.
	Owner string
	// Patience is the longest pause that a goroutine sits out; longer ones
	// wait in the ledger. Default 2 s.
	Patience time.Duration
	// Slack is what a lease lasts beyond a send, a read and a pause: the
	// longest stall of a process, and of its disk, that is to be sat out. A
	// write that a dead process left is taken over when its lease has ended.
	// Default 15 s.
	Slack time.Duration
	// Guards decide whether a send may be made now. Default: always.
	Guards Guards
	// Lag knows when a look is likely to succeed. Default: nothing is known and
	// looks follow the standard pace.
	Lag Lag
	// Verify says which writes are looked at when. Default: every one at once.
	Verify []policies.Verification
	// Meter is told what happens, while it happens: it must not wait for anything.
	// What panics in it is ignored. Default: nobody.
	Meter Meter
	// MaxFlights bounds the writes that callers of this engine have in hand at
	// once; more are refused with [ledger.ErrFull]. Default 10,000.
	MaxFlights int
	// MaxQueued bounds the writes of one tenant that wait for one destination;
	// above it [Engine.Enqueue] is refused with [ledger.ErrFull]. Default
	// 100,000.
	MaxQueued int
	// Recheck is the shortest time after the last send at which a recheck is
	// made that is owed because a send could land late. Default 10 min.
	Recheck time.Duration
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
	// Vault seals sensitive values for the ledger. Default none: an intent that
	// marks fields as sensitive is refused, as is one for a destination that marks
	// some.
	Vault *redact.Vault
	// Tracer records spans of what is done, while it is done: what it hands them to
	// must have a queue and never wait, as the batch processor of OpenTelemetry's
	// SDK does. What panics in it is ignored. Default: none are made; the trace
	// that a caller is in is passed on all the same.
	Tracer trace.TracerProvider
	// Events receives the verdicts as events gen_ai.evaluation.result, as well as
	// they are in spans. It counts only with a Tracer. Default: none are made.
	Events log.LoggerProvider
	// TraceContent puts into spans what is asked for and what came of it, and into
	// events why, without what is sensitive. Default false: only names, numbers and
	// words of this program.
	TraceContent bool
}

// ErrClosed is returned by an engine after Close.
var ErrClosed = errors.New("the engine is closed")

// New makes an engine on a ledger and the registered destinations; opts may be
// nil.
func New(l ledger.Ledger, reg *connectors.Registry, opts *Options) *Engine {
	e := &Engine{ledger: l, reg: reg, flights: make(map[ledger.ID]*flight)}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Policies == nil {
		e.opts.Policies = policies.Standard()
	}
	if e.opts.Budget <= 0 {
		e.opts.Budget = policies.DefaultBudget
	}
	if e.opts.Window == 0 {
		e.opts.Window = defaultWindow
	}
	e.opts.Window = max(e.opts.Window, 0)
	if e.opts.Owner == "" {
		e.opts.Owner = newOwner()
	}
	if e.opts.Patience <= 0 {
		e.opts.Patience = defaultPatience
	}
	if e.opts.Slack <= 0 {
		e.opts.Slack = defaultSlack
	}
	if e.opts.Meter == nil {
		e.opts.Meter = unmetered{}
	}
	if e.opts.MaxFlights <= 0 {
		e.opts.MaxFlights = defaultFlights
	}
	if e.opts.MaxQueued <= 0 {
		e.opts.MaxQueued = defaultQueued
	}
	if e.opts.Recheck <= 0 {
		e.opts.Recheck = recheckFloor
	}
	if e.opts.Logger == nil {
		e.opts.Logger = slog.New(slog.DiscardHandler)
	}
	e.keeps(l)
	e.SetRisks(e.opts.Risks)
	e.tracer, e.meter = newTracer(e.opts), metered{e.opts.Meter}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// SetRisks replaces the risk rules, for every write that is looked at from then
// on: one that was held stays so, one that was approved is not held again, and
// one that waits to be sent and that nobody approved is held where the new rules
// ask for it. The slice is copied. Other engines on the same ledger have rules of
// their own.
func (e *Engine) SetRisks(rules []policies.RiskRule) {
	rules = slices.Clone(rules)
	e.rules.Store(&rules)
}

// risks are the rules in force. They are replaced as a whole and never changed.
func (e *Engine) risks() []policies.RiskRule { return *e.rules.Load() }

// Close waits for the sends and reads that are under way and hands everything
// else back to the ledger. It does not close the ledger.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.wg.Wait()
}

// Do carries out an intent and waits for its outcome, or for the end of ctx:
// then the outcome is in progress, the write is in the ledger and goes on, and a
// later Do with the same intent gets its outcome. Repeats of one logical write,
// here or in other processes, share one send and one outcome.
//
// An error means that there is no outcome; it wraps [ErrForbidden] for a reviewer
// or an auditor, [intent.ErrInvalid], [redact.ErrNoKey] beside it,
// [connectors.ErrUnknownDestination], [ledger.ErrDigestMismatch],
// [ledger.ErrBlocked], [ledger.ErrFull], one of the ledger's own errors, or
// [ErrClosed], and is an [Error] where something is known about the effect.
func (e *Engine) Do(ctx context.Context, w intent.WriteIntent) (out Outcome, err error) {
	began := time.Now()
	defer func(w intent.WriteIntent) { e.called(w, out, err, time.Since(began)) }(w)
	asked := w
	w, rec, err := e.accept(ctx, w)
	if err != nil {
		return Outcome{}, e.turnedAway(ctx, asked, err)
	}
	out, err = e.do(ctx, asked, w, rec)
	if err == nil && out.Replayed {
		e.repeated(rec)
	}
	return out, err
}

func (e *Engine) do(ctx context.Context, asked, w intent.WriteIntent, rec ledger.Record) (Outcome, error) {
	var mine *flight
	defer func() { e.vacate(mine) }()
	if n := e.callers.Add(1); n > int64(e.opts.MaxFlights) {
		return Outcome{}, e.turnedAway(ctx, asked, fmt.Errorf("%w: %d calls are in hand already, at most %d may be", ledger.ErrFull, n-1, e.opts.MaxFlights))
	}
	f, began, err := e.board(rec.ID, rec.Digest, false)
	if err != nil {
		return Outcome{}, e.turnedAway(ctx, asked, err)
	}
	if !began {
		return e.join(ctx, f, rec)
	}
	mine = f
	go func() {
		err := guarded(rec.ID, func() (err error) {
			_, err = e.begin(w, rec, f, e.lifeFor(ctx))
			return err
		})
		e.land(rec.ID, f, err)
	}()
	return e.wait(ctx, f, rec, false)
}

// join waits for a write that another call of this process has in hand.
func (e *Engine) join(ctx context.Context, f *flight, rec ledger.Record) (out Outcome, err error) {
	_, s := e.stretch(e.lifeFor(ctx), &rec, stageReplay)
	defer s.end()
	if f.digest != rec.Digest {
		err = e.refused(rec, &ledger.DigestMismatchError{ID: rec.ID, Recorded: f.digest, Received: rec.Digest})
	} else {
		out, err = e.wait(ctx, f, rec, true)
	}
	return out, s.told(out, err)
}

// vacate gives the place of a caller back when the flight that it began is over
// too: who asks and does not wait must not have ever more in hand.
func (e *Engine) vacate(f *flight) {
	if f == nil {
		e.callers.Add(-1)
		return
	}
	select {
	case <-f.done:
		e.callers.Add(-1)
	default:
		go func() {
			<-f.done
			e.callers.Add(-1)
		}()
	}
}

// accept refuses an intent that can never be carried out, and says what it is
// recorded as.
func (e *Engine) accept(ctx context.Context, w intent.WriteIntent) (intent.WriteIntent, ledger.Record, error) {
	if err := cmp.Or(Caller(ctx).asks(), wellFormed(w), foreign(ctx, w)); err != nil {
		return w, ledger.Record{}, err
	}
	rec, err := e.asked(w)
	if err != nil {
		return w, rec, err
	}
	rec.RequestedBy, rec.Trace = Caller(ctx).Name, Traceparent(ctx)
	if _, profile, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind); err == nil && alone(w, profile) {
		rec.KeyDigest = ""
	}
	return w, rec, e.acceptable(ctx, w, rec)
}

func wellFormed(w intent.WriteIntent) error {
	if err := w.Validate(); err != nil {
		return err
	}
	if w.Compensates != "" {
		return fmt.Errorf("%w: /compensates is set by the engine alone; leave it out", intent.ErrInvalid)
	}
	return nil
}

// Check says what is wrong with an intent as far as that can be said before
// anything is recorded, as [Engine.Do] would, or nil. It asks neither the ledger
// nor the destination. It answers as to a caller of a door.
func (e *Engine) Check(w intent.WriteIntent) error {
	if err := cmp.Or(wellFormed(w), Foreign(w.Destination, w.Tool)); err != nil {
		return err
	}
	if _, err := e.asked(w); err != nil {
		return err
	}
	conn, profile, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind)
	if err != nil {
		return err
	}
	return verify.Fits(conn, profile, w)
}

// Profile is what the destination of an intent can do with its kind of record.
// The error wraps [connectors.ErrUnknownDestination].
func (e *Engine) Profile(w intent.WriteIntent) (connectors.Profile, error) {
	_, p, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind)
	return p, err
}

// alone reports whether the write needs no place in a line: it creates a record
// whose key is made for it, so that its business key names no record but where
// it goes, say a mailbox.
func alone(w intent.WriteIntent, p connectors.Profile) bool {
	return w.Write == intent.Create && p.FreshKeys
}

// acceptable refuses an intent that its destination can never serve. One that
// is in the ledger already was acceptable when it came.
func (e *Engine) acceptable(ctx context.Context, w intent.WriteIntent, rec ledger.Record) error {
	conn, profile, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind)
	if err != nil {
		return err
	}
	if err = verify.Fits(conn, profile, w); err == nil {
		return nil
	}
	if _, missing := e.ledger.Get(ctx, rec.Tenant, rec.ID); missing == nil {
		return nil
	}
	return err
}
