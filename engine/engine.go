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
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
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
	mu      sync.Mutex
	flights map[ledger.ID]*flight
	closed  bool
}

// Options are what an engine can be told. The zero value works.
type Options struct {
	// Policies are asked in order. Default: [policies.Standard].
	Policies []policies.Policy
	// Budget is how many sends may reach a destination over the life of one
	// write. Default: [policies.DefaultBudget].
	Budget int
	// Raise may raise the risk class of a write; what it returns counts only
	// when it is more careful than the intent's own. Default: nothing is
	// raised.
	Raise func(intent.WriteIntent) intent.Risk
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
	// Meter is told what happens. Default: nobody.
	Meter Meter
	// MaxFlights bounds the writes that callers of this engine have in hand at
	// once; more are refused with [ledger.ErrFull]. Default 10,000.
	MaxFlights int
	// MaxQueued bounds the writes of one tenant that wait for one destination;
	// above it [Engine.Enqueue] is refused with [ledger.ErrFull]. Default
	// 100,000.
	MaxQueued int
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
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
	if e.opts.Logger == nil {
		e.opts.Logger = slog.New(slog.DiscardHandler)
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

func newOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}

// Close waits for the sends and reads that are under way and hands everything
// else back to the ledger. It does not close the ledger.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.wg.Wait()
}

// flight is one write that this process works on now.
type flight struct {
	digest string
	kept   chan struct{} // closed when the write is in the ledger, or the work has stopped
	done   chan struct{} // closed when the work has stopped, for whatever reason
	fresh  bool          // it began the write; read after kept
	last   ledger.Record // the write as it left it, where it began it; read after done
	err    error         // why it stopped, when it failed; read after done
}

// failed reports whether the flight came to nothing. One that was fenced did
// not: another worker carries the write on.
func (f *flight) failed() bool {
	return f.err != nil && !errors.Is(f.err, ledger.ErrFenced)
}

// keep says that the write is in the ledger. Only whoever began the flight
// calls it.
func (f *flight) keep() {
	select {
	case <-f.kept:
	default:
		close(f.kept)
	}
}

// board joins the flight of a write, or begins one; kept says that the write is
// in the ledger already. The caller that begins it must end it with land.
func (e *Engine) board(id ledger.ID, digest string, kept bool) (f *flight, began bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, ErrClosed
	}
	if f, ok := e.flights[id]; ok {
		return f, false, nil
	}
	f = &flight{digest: digest, kept: make(chan struct{}), done: make(chan struct{})}
	if kept {
		f.keep()
	}
	e.flights[id] = f
	e.wg.Add(1)
	return f, true, nil
}

func (e *Engine) land(id ledger.ID, f *flight, err error) {
	e.mu.Lock()
	delete(e.flights, id)
	e.mu.Unlock()
	f.err = err
	close(f.done)
	f.keep()
	e.wg.Done()
}

// guarded works on one write. What panics in a connector or a hook must not
// take the process, and all other writes with it; this one is continued from
// the ledger when its lease has ended.
func guarded(id ledger.ID, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{ID: id, Known: KnownNothing, Err: fmt.Errorf("the work on it panicked: %.*v", maxReason, p)}
		}
	}()
	return work()
}

// Do carries out an intent and waits for its outcome, or for the end of ctx:
// then the outcome is in progress, the write is in the ledger and goes on, and a
// later Do with the same intent gets its outcome. Repeats of one logical write,
// here or in other processes, share one send and one outcome.
//
// An error means that there is no outcome; it wraps [intent.ErrInvalid],
// [connectors.ErrUnknownDestination], [ledger.ErrDigestMismatch],
// [ledger.ErrBlocked], one of the ledger's own errors, or [ErrClosed], and is
// an [Error] where something is known about the effect.
func (e *Engine) Do(ctx context.Context, w intent.WriteIntent) (Outcome, error) {
	if err := w.Validate(); err != nil {
		return Outcome{}, err
	}
	if w.Compensates != "" {
		return Outcome{}, fmt.Errorf("%w: /compensates is set by the engine alone; leave it out", intent.ErrInvalid)
	}
	rec, err := ledger.NewRecord(w)
	if err != nil {
		return Outcome{}, err
	}
	if err := e.acceptable(ctx, w, rec); err != nil {
		return Outcome{}, err
	}
	f, began, err := e.board(rec.ID, rec.Digest, false)
	if err != nil {
		return Outcome{}, err
	}
	if !began {
		if f.digest != rec.Digest {
			return Outcome{}, &ledger.DigestMismatchError{ID: rec.ID, Recorded: f.digest, Received: rec.Digest}
		}
		return e.wait(ctx, f, rec, true)
	}
	go func() {
		err := guarded(rec.ID, func() (err error) {
			_, err = e.begin(w, rec, f)
			return err
		})
		e.land(rec.ID, f, err)
	}()
	return e.wait(ctx, f, rec, false)
}

// acceptable refuses an intent that its destination can never serve. One that
// is in the ledger already was acceptable when it came.
func (e *Engine) acceptable(ctx context.Context, w intent.WriteIntent, rec ledger.Record) error {
	conn, profile, err := e.reg.Lookup(w.Destination, w.Kind)
	if err != nil {
		return err
	}
	if err = profile.Check(w.Write); err == nil {
		err = verify.Check(conn, w)
	}
	if err == nil {
		return nil
	}
	if _, missing := e.ledger.Get(ctx, rec.Tenant, rec.ID); missing == nil {
		return nil
	}
	return err
}

// wait waits for a flight and then for the write to be done. A caller that
// gives up is told "in progress" only when the write is in the ledger.
func (e *Engine) wait(ctx context.Context, f *flight, rec ledger.Record, joined bool) (Outcome, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		<-f.kept
	}
	select {
	case <-f.done:
	default:
		return underWay(rec, joined || !f.fresh), nil
	}
	replayed := joined || !f.fresh
	if f.failed() {
		return Outcome{}, f.err
	}
	if done(f.last) {
		return outcomeOf(f.last, replayed), nil
	}
	out, err := e.Wait(ctx, rec.Tenant, rec.ID, replayed)
	var known *Error
	if err != nil && !errors.As(err, &known) { // it is in the ledger, and this call may have sent it
		err = &Error{ID: rec.ID, Known: KnownNothing, Err: err}
	}
	return out, err
}

// done reports whether a write waits for nothing, or for a person.
func done(rec ledger.Record) bool {
	return rec.State == ledger.Settled || rec.State == ledger.Review || rec.State == ledger.Held
}

// Wait waits until a write is settled, held or in review, or for the end of
// ctx: then the outcome is in progress. Meanwhile it continues the write
// itself whenever it is due and nobody works on it. It fails with
// [ledger.ErrNotFound].
func (e *Engine) Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (Outcome, error) {
	for pace := newFollowPace(); ; {
		rec, err := e.ledger.Get(context.WithoutCancel(ctx), tenant, id)
		if err != nil {
			return Outcome{}, err
		}
		if done(rec) {
			return outcomeOf(rec, replayed), nil
		}
		f, began, err := e.board(id, rec.Digest, true)
		switch {
		case err != nil:
			return Outcome{}, err
		case began:
			go func() { e.land(id, f, guarded(id, func() error { return e.continueIfDue(rec) })) }()
			select {
			case <-f.done:
			case <-ctx.Done():
				return underWay(rec, replayed), nil
			}
			if f.failed() {
				return Outcome{}, f.err
			}
			if !sleep(ctx, e.ctx, pace.NextBackOff()) {
				return underWay(rec, replayed), nil
			}
		default:
			select {
			case <-f.done:
			case <-ctx.Done():
				return underWay(rec, replayed), nil
			}
		}
	}
}

// continueIfDue takes the write over when it is due and nobody holds it.
func (e *Engine) continueIfDue(rec ledger.Record) error {
	if !rec.Claimable(rec.Now, false) {
		return nil
	}
	asked := time.Now()
	claimed, err := e.ledger.Claim(e.ctx, ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.leaseFor(rec), Tenant: rec.Tenant, ID: rec.ID})
	if err != nil || len(claimed) == 0 {
		return err
	}
	return e.handle(claimed[0], asked)
}

// sleep waits, and reports whether it was not cut short.
func sleep(ctx, other context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-other.Done():
		return false
	}
}
