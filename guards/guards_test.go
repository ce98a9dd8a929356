package guards_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/ledger"
)

const crm = "crm"

var (
	answered = engine.Sent{Fate: connectors.FateAnswered, Took: time.Millisecond}
	unknown  = engine.Sent{Fate: connectors.FateUnknown, Code: "503", Took: time.Millisecond}
	notMade  = engine.Sent{Fate: connectors.FateNotSent}
	errGone  = errors.New("the ledger is gone")
)

func write(destination string) ledger.Record {
	return ledger.Record{Tenant: "acme", Destination: destination, Tool: "tickets.create", ID: "wr_1"}
}

// link is one worker's connection to the notes of the ledger. It can break, be slow, and counts
// its calls.
type link struct {
	ledger.Documents
	mu          sync.Mutex
	broken      error
	readOnly    bool
	slow        time.Duration
	deaf        bool // slow even if the context ends
	reads, sets int
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = err
}

func (l *link) slowDown(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = d
}

func (l *link) set(change func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *link) counted() (reads, sets int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads, l.sets
}

func (l *link) pass(ctx context.Context, reads, sets int) error {
	l.mu.Lock()
	l.reads += reads
	l.sets += sets
	slow, err, deaf := l.slow, l.broken, l.deaf
	if l.readOnly && sets > 0 {
		err = errGone
	}
	l.mu.Unlock()
	if deaf {
		time.Sleep(slow)
		return err
	}
	if err != nil || slow == 0 {
		return err
	}
	select {
	case <-time.After(slow):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) Notes(ctx context.Context, prefix string) ([]ledger.Note, time.Time, error) {
	if err := l.pass(ctx, 1, 0); err != nil {
		return nil, time.Time{}, err
	}
	return l.Documents.Notes(ctx, prefix)
}

func (l *link) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if err := l.pass(ctx, 0, 1); err != nil {
		return ledger.Note{}, err
	}
	return l.Documents.SetNote(ctx, n)
}

// worker is the guards of one worker and its link.
type worker struct {
	*guards.Guards
	link *link
}

// die cuts the worker off permanently: nothing that it holds is returned.
func (w *worker) die() { w.link.fail(errGone) }

// crew is some workers of one ledger.
type crew struct {
	t       *testing.T
	notes   ledger.Documents
	workers []*worker
}

// newCrew makes n workers; each gets its own options.
func newCrew(t *testing.T, n int, set guards.Settings, profiles ...connectors.Profile) *crew {
	t.Helper()
	c := &crew{t: t, notes: ledger.NewMemory()}
	for range n {
		c.hire(set, profiles...)
	}
	return c
}

func (c *crew) hire(set guards.Settings, profiles ...connectors.Profile) *worker {
	c.t.Helper()
	l := &link{Documents: c.notes}
	w := &worker{link: l, Guards: guards.New(l, registry(c.t, profiles...),
		&guards.Options{Owner: "worker", Destinations: map[string]guards.Settings{crm: set}})}
	c.workers = append(c.workers, w)
	return w
}

// close ends all workers; synctest wants no goroutine left.
func (c *crew) close() {
	for _, w := range c.workers {
		_ = w.Close() // the dead ones cannot return anything
	}
}

type nothing struct{ connectors.Connector }

func registry(t *testing.T, profiles ...connectors.Profile) *connectors.Registry {
	t.Helper()
	if len(profiles) == 0 {
		profiles = []connectors.Profile{{Kind: "ticket"}}
	}
	known := map[string]connectors.Profile{}
	for _, p := range profiles {
		known[p.Kind] = p
	}
	reg := &connectors.Registry{}
	if err := reg.Register(crm, connectors.Destination{Connector: nothing{}, Profiles: known}); err != nil {
		t.Fatal(err)
	}
	return reg
}

// sendings is a destination's own log: when each send began and how many were under way at once.
type sendings struct {
	mu   sync.Mutex
	at   []time.Time
	open int
	most int
}

func (s *sendings) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Now())
	s.open++
	s.most = max(s.most, s.open)
}

func (s *sendings) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// densest is the most sends in any window of that length.
func (s *sendings) densest(window time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.at, time.Time.Compare)
	most, first := 0, 0
	for i, at := range s.at {
		for at.Sub(s.at[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// passes fails the test unless the send passes; it returns leave.
func passes(t *testing.T, w *worker, rec ledger.Record) func(engine.Sent) {
	t.Helper()
	leave, hold := w.Enter(t.Context(), rec)
	if hold != nil {
		t.Fatalf("held by %s: %s; want it to pass", hold.Rule, hold.Reason)
	}
	return leave
}

// held fails the test unless the send is held by the rule; it returns the hold.
func held(t *testing.T, w *worker, rec ledger.Record, rule string) *engine.Hold {
	t.Helper()
	leave, hold := w.Enter(t.Context(), rec)
	switch {
	case hold == nil:
		leave(notMade)
		t.Fatalf("it passed; want it held by %s", rule)
	case hold.Rule != rule:
		t.Fatalf("held by %s: %s; want %s", hold.Rule, hold.Reason, rule)
	case leave != nil:
		t.Fatal("a send that is held has a leave")
	case hold.Reason == "" || hold.For < 0:
		t.Fatalf("hold %+v: want a reason, and a time that is not negative", hold)
	}
	return hold
}
