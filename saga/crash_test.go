package saga_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// errDead is the error of calls of a process that has died.
var errDead = errors.New("this process is dead")

// process counts a runner's calls, and dies at the call with the number at: before it or, with
// after, after it. Number 0 never comes.
type process struct {
	mu    sync.Mutex
	calls int
	at    int
	after bool
	dead  bool
}

func (p *process) do(call func() error) error {
	p.mu.Lock()
	p.calls++
	last := p.calls == p.at
	p.dead = p.dead || last && !p.after
	dead := p.dead
	p.mu.Unlock()
	if dead {
		return errDead
	}
	err := call()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = p.dead || last
	if p.dead {
		return errDead
	}
	return err
}

// mortalStore and mortalEngine are what a process uses.
type mortalStore struct {
	saga.Store
	p *process
}

func (s mortalStore) Commit(ctx context.Context, f ledger.Batch) (committed ledger.Committed, err error) {
	return committed, s.p.do(func() error { committed, err = s.Store.Commit(ctx, f); return err })
}

func (s mortalStore) Document(ctx context.Context, tenant, kind, id string) (document ledger.Document, err error) {
	return document, s.p.do(func() error { document, err = s.Store.Document(ctx, tenant, kind, id); return err })
}

type mortalEngine struct {
	saga.Engine
	p *process
}

func (e mortalEngine) Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (out engine.Outcome, err error) {
	return out, e.p.do(func() error { out, err = e.Engine.Wait(ctx, tenant, id, replayed); return err })
}

func (e mortalEngine) Undo(ctx context.Context, tenant string, id ledger.ID, u engine.Undoing) (out engine.Outcome, err error) {
	return out, e.p.do(func() error { out, err = e.Engine.Undo(ctx, tenant, id, u); return err })
}

// live runs the saga in a process that may die, and reports whether it did not.
func (b *bench) live(p *process, plan saga.Plan) (saga.Saga, bool) {
	b.t.Helper()
	e := b.newEngine(nil)
	r := saga.New(mortalStore{b.ledger, p}, mortalEngine{e, p}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 48*time.Hour)
	defer cancel()
	_, err := r.Begin(ctx, plan)
	var s saga.Saga
	if err == nil {
		s, err = r.Run(ctx, plan.Tenant, plan.ID)
	}
	if err != nil && !errors.Is(err, errDead) {
		b.t.Fatal(err)
	}
	e.Close()
	return s, err == nil
}

// ordeal is a saga's events, and its required result wherever a process dies.
type ordeal struct {
	faults []orders.Fault
	state  saga.State
	there  string
}

var ordeals = map[string]ordeal{
	"nothing":              {nil, saga.Done, "CTPM"},
	"ticket refused":       {[]orders.Fault{{Kind: orders.Refused, Key: "T-1", Times: 1}}, saga.Undone, ""},
	"pivot refused":        {[]orders.Fault{{Kind: orders.Refused, Key: "P-1", Times: 1}}, saga.Undone, ""},
	"mail refused once":    {[]orders.Fault{{Kind: orders.Refused, Key: "M-1", Times: 1}}, saga.Done, "CTPM"},
	"pivot's answer lost":  {[]orders.Fault{{Kind: orders.LostAnswer, Key: "P-1", Times: 1}}, saga.Done, "CTPM"},
	"ticket's answer lost": {[]orders.Fault{{Kind: orders.LostAnswer, Key: "T-1", Times: 1}, {Kind: orders.Refused, Key: "P-1", Times: 1}}, saga.Undone, ""},
	"undoing's answer lost": {[]orders.Fault{{Kind: orders.LostAnswer, Key: "C-1", Ops: []orders.Op{orders.OpDelete}, Times: 1},
		{Kind: orders.Refused, Key: "P-1", Times: 1}}, saga.Undone, ""},
}

func TestDeathAtEveryCall(t *testing.T) {
	for name, o := range ordeals {
		t.Run(name, func(t *testing.T) {
			calls := 0
			for at := 0; at <= calls; at++ {
				for _, after := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						n := o.survive(t, at, after)
						if at == 0 {
							calls = n
						}
					})
				}
			}
			if calls < 10 {
				t.Errorf("only %d calls: nothing was tried", calls)
			}
		})
	}
}

// survive has a process die at a call and another one continue, and returns how many calls the
// first one made.
func (o ordeal) survive(t *testing.T, at int, after bool) int {
	b := newBench(t, orders.Unique.Options(), nil)
	for _, f := range o.faults {
		b.set(f)
	}
	first := &process{at: at, after: after}
	s, alive := b.live(first, four())
	if alive != (at == 0) {
		t.Fatalf("call %d, after %t: alive is %t", at, after, alive)
	}
	if !alive {
		s, _ = b.live(&process{}, four())
	}
	if s.State != o.state {
		t.Errorf("call %d, after %t: want %s\n%s", at, after, o.state, picture(s))
	}
	b.there(o.there)
	b.orderly(s)
	return first.calls
}

// orderly checks with the destination's own log that nothing was made twice, that undoing was in
// reverse order, and that nothing was made after that.
func (b *bench) orderly(s saga.Saga) {
	b.t.Helper()
	var made, undone []string
	for _, e := range b.world.Effects() {
		switch {
		case !e.Applied():
		case e.Op == orders.OpCreate && len(undone) > 0:
			b.t.Errorf("%s was made after %v were undone", e.OrderID, undone)
		case e.Op == orders.OpCreate:
			made = append(made, e.OrderID)
		case e.Op == orders.OpDelete:
			undone = append(undone, e.OrderID)
		}
	}
	want := []string{"C-1", "T-1", "P-1", "M-1"}[:len(made)]
	if fmt.Sprint(made) != fmt.Sprint(want) {
		b.t.Errorf("made %v, want %v\n%s", made, want, picture(s))
	}
	for i, id := range undone {
		if id != made[len(made)-1-i] {
			b.t.Errorf("undone %v of %v\n%s", undone, made, picture(s))
		}
	}
}

// gatekeeper lets a test stop a runner before a chosen commit.
type gatekeeper struct {
	saga.Store
	stops func(ledger.Batch) bool
	here  chan struct{} // closed when it has stopped
	on    chan struct{} // closed by the test to continue
	once  sync.Once
}

func (g *gatekeeper) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	if g.stops(f) {
		g.once.Do(func() {
			close(g.here)
			<-g.on
		})
	}
	return g.Store.Commit(ctx, f)
}

// A worker is frozen while it commits that the pivot is begun. Meanwhile the saga is cancelled,
// and another one carries it back. When it wakes it must not go forward.
func TestAFrozenWorkerDoesNotGoForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		pivot, err := ordered("pay", intent.Pivot)
		if err != nil {
			t.Fatal(err)
		}
		g := &gatekeeper{Store: b.ledger, here: make(chan struct{}), on: make(chan struct{}),
			stops: func(f ledger.Batch) bool { return f.Reserve != nil && f.Reserve.Record.ID == pivot.ID }}
		frozen := saga.New(g, b.newEngine(nil), nil)
		done := make(chan saga.Saga)
		go func() {
			s, err := frozen.Run(context.Background(), "acme", "saga-1")
			if err != nil {
				t.Error(err)
			}
			done <- s
		}()
		<-g.here
		if _, err := b.runner.Cancel(t.Context(), "acme", "saga-1", "ada", "no longer wanted"); err != nil {
			t.Fatal(err)
		}
		b.want(b.run(time.Hour), saga.Undone)
		close(g.on)
		b.want(<-done, saga.Undone)
		b.there("")
		if _, err := b.ledger.Get(t.Context(), "acme", pivot.ID); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the pivot is in the ledger: %v", err)
		}
	})
}

// ordered is the record of a step's write.
func ordered(step string, class intent.Reversibility) (ledger.Record, error) {
	w := create(map[string]string{"contact": "C-1", "ticket": "T-1", "pay": "P-1", "mail": "M-1"}[step], class)
	w.Tenant, w.Workflow, w.Step = "acme", "saga-1", step
	return ledger.NewRecord(w)
}

// Any number of runners on one ledger have the effect of one.
func TestManyRunners(t *testing.T) {
	for name, o := range ordeals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				for _, f := range o.faults {
					b.set(f)
				}
				b.begin(four())
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for i := range 4 {
					r := saga.New(b.ledger, b.newEngine(nil), nil)
					wg.Go(func() {
						var err error
						if i%2 == 0 {
							err = runWorker(ctx, r)
						} else {
							_, err = r.Run(t.Context(), "acme", "saga-1")
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				s := b.run(24 * time.Hour)
				stop()
				wg.Wait()
				if s.State != o.state {
					t.Errorf("want %s\n%s", o.state, picture(s))
				}
				b.there(o.there)
				b.orderly(s)
			})
		})
	}
}
