package matrix

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// The duration of a run. Undeliverable writes are given up after a day; a write in review is read
// for hours.
const (
	patience   = 90 * time.Second // of a caller, for one call
	watched    = 30 * time.Hour
	inReview   = 3 * time.Hour
	maxRounds  = 5000
	seededAgo  = 5 * time.Minute
	betweenAll = 10 * time.Millisecond
	// sitOut is a pause that a process waits between two reads. The pauses between reads vary by
	// a fifth; none of them varies across this length, so that each run has the same calls every
	// time.
	sitOut = 1500 * time.Millisecond
)

// began is when every write is submitted: a bubble begins with the year 2000.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(seededAgo)

// run is one lifetime of one write in a cell.
type run struct {
	cell     cell
	point    point
	world    *orders.World
	book     *ledger.Memory
	first    *process   // the one that may fail
	mu       sync.Mutex // of outcomes, ends and flaws, which both processes add to
	outcomes []engine.Outcome
	ends     []ending
	final    ledger.Record
	sends    int // requests to write that reached the destination
	reads    int
	flaws    []string
}

// ending is one time at which the write was settled, and the destination at
// that moment.
type ending struct {
	as   ledger.Status
	then account
}

func (c cell) String() string {
	return c.class.name + " / " + c.variant.name + " / " + c.kind.name + " / " + c.fault.name
}

func (r *run) String() string {
	return fmt.Sprintf("%s; %s", r.cell, r.point)
}

func (r *run) flaw(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flaws = append(r.flaws, fmt.Sprintf(format, args...))
}

// live runs a write in a cell through one failure and to its end.
func live(t *testing.T, c cell, at point) *run {
	r := &run{cell: c, point: at}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r.world, err = orders.New(c.options()); err != nil {
			t.Fatal(err)
		}
		r.book, r.first = ledger.NewMemory(), newProcess(t.Context(), "first", at)
		if c.kind.there {
			if _, err := r.world.Seed(earlier(), ""); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(seededAgo)
		for _, f := range c.fault.faults {
			if c.fault.spare && f.Kind == orders.UnreadableRead && c.powers().readsFirst {
				f.Skip = 1
			}
			if err := r.world.Set(f); err != nil {
				t.Fatal(err)
			}
		}
		r.processes(t)
		r.sends, r.reads = r.world.Count()
		r.replays(t)
		r.final, err = r.book.Get(t.Context(), tenant, ledger.IDOf(c.intent().StructuralKey()))
		if err != nil {
			r.flaw("%s: nothing in the ledger: %v", lost, err)
		}
		r.judge()
	})
	return r
}

// processes runs the first process as long as it lives, and then a second one next to or after
// it. Whether the caller submits to the second one, or its worker claims the write first,
// alternates.
func (r *run) processes(t *testing.T) {
	one := r.engine(t, r.first)
	defer one.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.ask(t, r.first, one)
		r.work(t, r.first, one)
	}()
	if r.point.Fate == crashtest.Lives {
		<-ended
		return
	}
	select {
	case <-r.first.Failed:
	case <-ended:
	}
	if !r.first.Reached() {
		return // it ended without reaching that point
	}
	p := newProcess(t.Context(), "second", point{})
	two := r.engine(t, p)
	defer two.Close()
	if r.point.Fate == crashtest.After {
		r.work(t, p, two)
		r.ask(t, p, two)
	} else {
		r.ask(t, p, two)
	}
	r.work(t, p, two)
	<-ended
	r.work(t, p, two) // the rest of the work of a stopped one
}

// engine is the engine of a process, on the ledger and the destination that
// all of them share.
func (r *run) engine(t *testing.T, p *process) *engine.Engine {
	var reg connectors.Registry
	d := r.world.Destination()
	d.Connector = link{d.Connector, p, r.book}
	if r.cell.class.writeOnly {
		d.Profiles = map[string]connectors.Profile{orders.Kind: writeOnlyProfile(d.Profiles[orders.Kind])}
	}
	if p := d.Profiles[orders.Kind]; r.cell.class.irreversible {
		p.Irreversible = []intent.WriteType{r.cell.kind.write}
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
	}
	if err := reg.Register("orders", d); err != nil {
		t.Fatal(err)
	}
	return engine.New(reach(book{r.book, r.settled}, p), &reg, &engine.Options{Owner: p.Name, Patience: sitOut})
}

// settled is called for every commit that settles a write.
func (r *run) settled(rec ledger.Record) {
	if rec.Parent == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ends = append(r.ends, ending{rec.Settlement, r.account()})
	}
}

// ask is a caller that submits the write.
func (r *run) ask(t *testing.T, p *process, e *engine.Engine) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := e.Do(ctx, r.cell.intent())
	switch {
	case !p.Alive() || errors.Is(err, ledger.ErrFenced):
	case err != nil:
		r.flaw(other+": Do of the %s process: %v", p.Name, err)
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.outcomes = append(r.outcomes, out)
	}
}

// work is a worker that wakes up whenever something is due, until nothing is.
func (r *run) work(t *testing.T, p *process, e *engine.Engine) {
	for range maxRounds {
		next, some := r.nextDue(t)
		if !some || !p.Alive() {
			return
		}
		time.Sleep(max(time.Until(next), betweenAll))
		if _, err := e.Resume(t.Context()); err != nil && p.Alive() {
			r.flaw(other+": Resume of the %s process: %v", p.Name, err)
			return
		}
	}
	r.flaw(lost+": still busy after %d rounds", maxRounds)
}

// nextDue is when the ledger next wants work, as far as it is watched.
func (r *run) nextDue(t *testing.T) (next time.Time, some bool) {
	all, err := r.book.List(t.Context(), ledger.Filter{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range all {
		due := rec.Due
		if due.IsZero() || due.Sub(began) > watched {
			continue
		}
		if rec.State == ledger.Review && due.Sub(rec.LastSend) > inReview {
			continue
		}
		if rec.LeaseUntil.After(due) {
			due = rec.LeaseUntil
		}
		if !some || due.Before(next) {
			next, some = due, true
		}
	}
	return next, some
}

// replays submits once more: a caller of a settled write gets its outcome, and nothing is sent or
// read for it.
func (r *run) replays(t *testing.T) {
	p := newProcess(t.Context(), "last", point{})
	e := r.engine(t, p)
	defer e.Close()
	r.ask(t, p, e)
	last := r.outcomes[len(r.outcomes)-1]
	sends, reads := r.world.Count()
	if !last.Replayed || sends != r.sends || reads != r.reads {
		r.flaw(other+": asked again: replayed %v, %d more sends, %d more reads", last.Replayed, sends-r.sends, reads-r.reads)
	}
}
