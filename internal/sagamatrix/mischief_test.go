package sagamatrix

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// mischief is all that the destinations do wrong in one cell.
type mischief struct {
	world world
	// step is the step whose destination has the fault, once: when the step is written, or, with
	// undoing set, when it is undone.
	step    string
	fault   faultKind
	undoing bool
	// failing is the step whose destination refuses every write of it. Default none.
	failing string
	// mail is called before the mail is sent to its server. Default nil.
	mail func()

	mu  sync.Mutex
	met bool
	err error
}

// coming is called before each request to a destination, and arms its fault.
func (m *mischief) coming(w intent.WriteIntent, read bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	undoing := w.Compensates != ""
	if w.Destination == letter && !read && m.mail != nil {
		m.mail()
	}
	if w.Destination == m.failing && !undoing && !read {
		m.err = errors.Join(m.err, m.world[w.Destination].meet(refused))
	}
	if m.fault == "" || m.met || w.Destination != m.step || undoing != m.undoing || read != m.fault.reading() {
		return
	}
	m.met = true
	m.err = errors.Join(m.err, m.world[m.step].meet(m.fault))
}

// engine is the engine of a process, on the ledger and the destinations that
// all of them share.
func (m *mischief) engine(l *ledger.Memory, p *process) (*engine.Engine, error) {
	var reg connectors.Registry
	for name, at := range m.world {
		d := at.reach()
		d.Connector = linked(link{d.Connector, p, l, m.coming})
		if err := reg.Register(name, d); err != nil {
			return nil, err
		}
	}
	return engine.New(reach(l, p), &reg, &engine.Options{Owner: p.Name, Patience: sitOut}), nil
}

const (
	// sitOut is a pause that a process waits between two reads. The pauses between reads vary by
	// a fifth; none of them varies across this length, so that each run has the same calls every
	// time.
	sitOut = 1500 * time.Millisecond
	// maxRounds limits the work of one process: one that needs more never ends.
	maxRounds  = 2000
	betweenAll = 10 * time.Millisecond
	// inReview is how long a write in review is watched: it is read again from time to time.
	inReview = 3 * time.Hour
)

// worked is a worker that wakes up whenever a write is due, until none is for as
// long as it is watched.
func worked(ctx context.Context, l *ledger.Memory, e *engine.Engine, p *process, watch time.Duration) error {
	until := time.Now().Add(watch)
	for range maxRounds {
		next, err := nextDue(ctx, l)
		if err != nil || next.IsZero() || next.After(until) || !p.Alive() {
			return err
		}
		time.Sleep(max(time.Until(next), betweenAll))
		if _, err := e.Resume(ctx); err != nil && p.Alive() {
			return fmt.Errorf("resume of the %s process: %w", p.Name, err)
		}
	}
	return fmt.Errorf("still busy after %d rounds", maxRounds)
}

// nextDue is when the ledger next wants work on a write; zero: never.
func nextDue(ctx context.Context, l *ledger.Memory) (next time.Time, err error) {
	all, err := l.List(ctx, ledger.Filter{Tenant: tenant})
	if err != nil {
		return next, err
	}
	for _, rec := range all {
		due := rec.Due
		if due.IsZero() || rec.State == ledger.Review && due.Sub(rec.LastSend) > inReview {
			continue
		}
		if rec.LeaseUntil.After(due) {
			due = rec.LeaseUntil
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, nil
}
