// Package crashtest has a simulated process fail at one of its calls: it dies before or after it,
// or is suspended. Suites repeat a scenario with a failure at each call that an undisturbed process
// makes. What a call is named, its stage, is the suite's.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// Fate is what happens to a process at one of its calls.
type Fate string

// The fates. Only with the first it lives; a suspended process continues later, when another one
// has taken over its work.
const (
	Lives    Fate = ""
	Before   Fate = "dies before it"                   // the call is never made
	After    Fate = "dies after it"                    // the call has its effect and the answer is lost
	UnderWay Fate = "dies, and the send arrives later" // of sends: it arrives long after the process died
	Suspends Fate = "is suspended before it"           // the call is made late
	dead     Fate = "is dead"                          // and makes no call any more
)

// The times of a process that fails. The horizon of every destination must be longer than
// arrivesAfter.
const (
	diesWithin   = time.Second
	arrivesAfter = 20 * time.Second
)

// Point is one moment of a process: the Nth call of a stage, from 1. The zero value is a process
// that lives.
type Point[S comparable] struct {
	Stage S
	Nth   int
	Fate  Fate
}

// String implements [fmt.Stringer].
func (p Point[S]) String() string {
	if p.Fate == Lives {
		return "undisturbed"
	}
	return fmt.Sprintf("%v no. %d: %s", p.Stage, p.Nth, p.Fate)
}

// ErrDead is what a dead process gets from every call.
var ErrDead = errors.New("this process is dead")

// Process is one process of a system. Its calls are counted, and at one of them it meets its end;
// from then on whatever it tries has no effect.
type Process[S comparable] struct {
	Name string
	// Context ends with the process: a dead one waits for nothing.
	Context context.Context
	// OnCall is called before and after each call of a process that lives. Default nil.
	OnCall func(s S, when string)
	// Failed is closed when it has died or is suspended. The call after which it dies has had its
	// effect by then.
	Failed chan struct{}

	end       Point[S]
	suspended time.Duration
	die       context.CancelFunc
	mu        sync.Mutex
	counts    map[S]int
	order     []S // in which stages were first met
	dead, met bool
}

// New makes a process. A suspended one continues after the given time, which must be longer than
// every lease.
func New[S comparable](ctx context.Context, name string, end Point[S], suspended time.Duration) *Process[S] {
	p := &Process[S]{Name: name, end: end, suspended: suspended, counts: map[S]int{}, Failed: make(chan struct{})}
	p.Context, p.die = context.WithCancel(ctx)
	return p
}

// enter counts a call and returns its fate. A suspension is over when it returns.
func (p *Process[S]) enter(s S) Fate {
	p.called(s, "before")
	f := p.meet(s)
	if f == Before || f == Suspends {
		p.fail()
	}
	if f == Suspends {
		time.Sleep(p.suspended) //nolint:forbidigo // in fake time, or as long as the kernel would stop it
	}
	return f
}

func (p *Process[S]) called(s S, when string) {
	if p.OnCall != nil {
		p.OnCall(s, when)
	}
}

func (p *Process[S]) meet(s S) Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return dead
	}
	if p.counts[s] == 0 {
		p.order = append(p.order, s)
	}
	p.counts[s]++
	if p.end.Fate == Lives || p.end.Stage != s || p.end.Nth != p.counts[s] {
		return Lives
	}
	p.met = true
	p.dead = p.end.Fate != Suspends
	return p.end.Fate
}

// fail announces that the process has died or is suspended. Another process starts at that, and must
// not run beside the last call of this one.
func (p *Process[S]) fail() {
	if p.end.Fate != Suspends {
		p.die()
	}
	close(p.Failed)
}

// Alive reports whether it makes calls.
func (p *Process[S]) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// Reached reports whether it came to its end.
func (p *Process[S]) Reached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met
}

// Points returns the moments at which another process may fail, after this one that did not: the
// zero value, and each call with each of its fates.
func (p *Process[S]) Points(fates func(s S, nth, of int) []Fate) []Point[S] {
	all := []Point[S]{{}}
	for _, s := range p.order {
		for nth := 1; nth <= p.counts[s]; nth++ {
			for _, f := range fates(s, nth, p.counts[s]) {
				all = append(all, Point[S]{s, nth, f})
			}
		}
	}
	return all
}

// Call makes one call with its fate. Calls that change something must run to their end even after
// their caller has gone.
func (p *Process[S]) Call(s S, do func()) error {
	f := p.enter(s)
	if f == dead || f == Before {
		return ErrDead
	}
	do()
	if f == After {
		p.fail()
	}
	p.called(s, "after")
	if !p.Alive() {
		return ErrDead
	}
	return nil
}

// Send sends to a destination, with the fate of the call.
func (p *Process[S]) Send(ctx context.Context, s S, send func(context.Context) (connectors.Receipt, error)) (connectors.Receipt, error) {
	cutOff := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diesWithin)
		defer cancel()
		_, _ = send(ctx) // the answer is lost
	}
	switch p.enter(s) {
	case dead, Before:
		return connectors.Receipt{}, ErrDead
	case After: // the connection ends with the process
		cutOff()
		p.fail()
		return connectors.Receipt{}, ErrDead
	case UnderWay: // it waits in a proxy, which keeps it longer than the process lives
		time.AfterFunc(arrivesAfter, cutOff)
		p.fail()
		return connectors.Receipt{}, ErrDead
	}
	receipt, err := send(ctx)
	p.called(s, "after")
	return receipt, err
}

// Ledger is a ledger as a process reaches it. Reads change nothing, so no process dies at one.
type Ledger[S comparable] struct {
	ledger.Ledger
	Process *Process[S]
	Tenant  string // whose writes may be claimed
	// Reserves, Appends and Claims return the stage of a call.
	Reserves func(ledger.Record) S
	Appends  func(ledger.ID, []ledger.Event) S
	Claims   func(ledger.Record) S
}

// Reserve implements [ledger.Ledger].
func (l Ledger[S]) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	died := l.Process.Call(l.Reserves(r.Record), func() { rec, fresh, err = l.Ledger.Reserve(context.WithoutCancel(ctx), r) })
	if died != nil {
		return ledger.Record{}, false, died
	}
	return rec, fresh, err
}

// Append implements [ledger.Ledger].
func (l Ledger[S]) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	died := l.Process.Call(l.Appends(id, events), func() { rec, err = l.Ledger.Append(context.WithoutCancel(ctx), id, fence, events...) })
	if died != nil {
		return ledger.Record{}, died
	}
	return rec, err
}

// Claim implements [ledger.Ledger]. Only a claim that lends something counts.
func (l Ledger[S]) Claim(ctx context.Context, c ledger.Claim) (lent []ledger.Record, err error) {
	if !l.Process.Alive() {
		return nil, ErrDead
	}
	all, err := l.List(ctx, ledger.Filter{Tenant: l.Tenant})
	i := slices.IndexFunc(all, func(r ledger.Record) bool {
		return (c.ID == "" || c.ID == r.ID) && r.Claimable(r.Now, c.Early && c.ID != "")
	})
	if err != nil || i < 0 {
		return nil, nil // a ledger that cannot be listed lends nothing
	}
	if died := l.Process.Call(l.Claims(all[i]), func() { lent, err = l.Ledger.Claim(ctx, c) }); died != nil {
		return nil, died
	}
	return lent, err
}

// Get implements [ledger.Ledger].
func (l Ledger[S]) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if !l.Process.Alive() {
		return ledger.Record{}, ErrDead
	}
	return l.Ledger.Get(ctx, tenant, id)
}
