package saga_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// A step is taken back while the pivot waits for approval: the saga goes back, and the pivot can
// no longer be approved.
func TestPivotIsWithdrawnWhenTheSagaGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[2].Intent.Risk = intent.RiskApprove
		b.begin(p)
		s := b.run(time.Minute)
		b.want(s, saga.Running, ledger.Verified, ledger.Verified, ledger.StatusHeld)
		if _, err := b.engine.Undo(t.Context(), "acme", s.Steps[1].WriteID, engine.Undoing{By: "eve", Reason: "wrong ticket"}); err != nil {
			t.Fatal(err)
		}
		b.want(b.run(time.Hour), saga.Undone, ledger.Compensated, ledger.Compensated, ledger.Denied, "")
		yes := engine.Decision{Word: engine.WordApprove, By: "bob", Reason: "pay it"}
		if _, err := b.engine.Resolve(t.Context(), "acme", s.Steps[2].WriteID, yes); !errors.Is(err, engine.ErrNotWaiting) {
			t.Errorf("the pivot is released: %v", err)
		}
		b.there("")
	})
}

// A pivot that is approved at the moment at which the saga decides to go back is waited for, and
// when it is done, nothing is undone.
func TestPivotThatIsApprovedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[2].Intent.Risk = intent.RiskApprove
		b.begin(p)
		s := b.run(time.Minute)
		if _, err := b.engine.Undo(t.Context(), "acme", s.Steps[1].WriteID, engine.Undoing{By: "eve", Reason: "wrong ticket"}); err != nil {
			t.Fatal(err)
		}
		g := &gatekeeper{Store: b.ledger, here: make(chan struct{}), on: make(chan struct{}),
			stops: func(f ledger.Batch) bool { return len(f.Append) > 0 }}
		go func() {
			<-g.here
			b.decide(2, engine.WordApprove)
			close(g.on)
		}()
		b.runner = saga.New(g, b.engine, nil)
		s = b.run(time.Hour)
		b.want(s, saga.Review, ledger.Verified, ledger.Compensated, ledger.Verified, "")
		if s.Back != nil || !s.PastPivot {
			t.Error(picture(s))
		}
		b.there("CP")
	})
}

// A step is held only after the saga was cancelled, by a worker that had it: no reviewer has to
// deny it.
func TestHeldAfterTheSagaWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[1].Intent.Risk = intent.RiskApprove
		g := &gatekeeper{Store: b.ledger, here: make(chan struct{}), on: make(chan struct{}),
			stops: func(f ledger.Batch) bool { return f.Reserve != nil && f.Reserve.Record.Step == "ticket" }}
		b.runner = saga.New(g, b.engine, nil)
		b.begin(p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			if _, err := b.runner.Run(ctx, "acme", "saga-1"); err != nil {
				t.Errorf("Run: %v", err)
			}
		}()
		<-g.here
		close(g.on)
		synctest.Wait()
		rec, err := b.ledger.Get(t.Context(), "acme", b.get().Steps[1].WriteID)
		if err != nil || rec.State != ledger.Held {
			t.Fatalf("%s, %v", rec.State, err)
		}
		claimed, err := b.ledger.Claim(t.Context(), ledger.Claim{Owner: "slow", LeaseFor: time.Minute, Tenant: "acme", ID: rec.ID, Early: true})
		if err != nil || len(claimed) != 1 {
			t.Fatal(err)
		}
		if err := b.cancel("ada"); err != nil {
			t.Fatal(err)
		}
		if got := b.get().Steps[1].Status; got != ledger.StatusHeld {
			t.Errorf("it is %s in another's hands", got)
		}
		time.Sleep(2 * time.Minute)
		b.want(b.run(time.Hour), saga.Undone, ledger.Compensated, ledger.Denied)
		b.there("")
	})
}

// A step's write was pruned before the saga went back: the saga is reported for review, once, and
// the steps that it depends on stay.
func TestForgottenStepStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "P-1"})
		p := four()
		p.Steps[2].Grace = saga.MaxGrace
		b.begin(p)
		b.run(time.Minute)
		time.Sleep(48 * time.Hour)
		if got, err := b.ledger.Prune(t.Context(), ledger.Prune{Keep: time.Hour, Remember: 24 * 300 * time.Hour, Limit: 100}); err != nil || got.Compacted != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		s := b.run(2 * saga.MaxGrace)
		b.want(s, saga.Review, ledger.Verified, ledger.Verified, ledger.NotApplied, "")
		if !strings.Contains(s.Reason, `step "ticket" stays: it is done, and what it wrote is forgotten here`) || !s.Next.IsZero() {
			t.Error(picture(s))
		}
		b.there("CT")
	})
}

// broken is an engine that cannot work on writes for a while.
type broken struct {
	saga.Engine
	until time.Time
}

func (e *broken) Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (engine.Outcome, error) {
	if time.Now().Before(e.until) {
		return engine.Outcome{}, errors.New("the destination is not known here")
	}
	return e.Engine.Wait(ctx, tenant, id, replayed)
}

// While the engine fails the saga stays in review, is tried ever more rarely, and continues when
// it can.
func TestEngineThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		until := time.Now().Add(12 * time.Hour)
		b.runner = saga.New(b.ledger, &broken{b.engine, until}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = runWorker(ctx, b.runner) }()
		time.Sleep(time.Minute)
		since := b.get().Since
		time.Sleep(time.Until(until) - time.Second)
		s := b.get()
		b.want(s, saga.Review, ledger.InProgress)
		if !s.Since.Equal(since) || !strings.Contains(s.Reason, `could not work on step "contact"`) {
			t.Errorf("since %s, was %s: %s", s.Since, since, s.Reason)
		}
		if v := b.document().Version; v > 400 {
			t.Errorf("%d batches in half a day", v)
		}
		b.set(orders.Fault{Kind: orders.UnreadableRead, Key: "C-1", Times: 20})
		time.Sleep(6 * time.Minute)
		b.want(b.get(), saga.Running, ledger.InProgress)
		time.Sleep(2 * time.Hour)
		b.want(b.get(), saga.Done)
		b.there("CTPM")
	})
}

// A step that a reviewer denied after the pivot is not requested again by repeated runs of the
// saga.
func TestDeniedIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[3].Intent.Risk = intent.RiskApprove
		b.begin(p)
		b.run(time.Minute)
		b.decide(3, engine.WordDeny)
		if s := b.run(time.Hour); s.State != saga.Review || s.Steps[3].Attempts != 1 {
			t.Error(picture(s))
		}
		if s := b.resume(time.Minute); s.Steps[3].Status != ledger.StatusHeld || s.Steps[3].Attempts != 2 {
			t.Error(picture(s))
		}
	})
}

// A reviewer cancels at each call that a process makes, while another process carries the saga
// on, and the first one continues later: it never goes forward again, and nothing is made twice.
func TestCancelAtEveryCall(t *testing.T) {
	for name, o := range ordeals {
		t.Run(name, func(t *testing.T) {
			calls := 0
			for at := 0; at <= calls; at++ {
				synctest.Test(t, func(t *testing.T) {
					n := o.cancelled(t, at)
					if at == 0 {
						calls = n
					}
				})
			}
		})
	}
}

// cancelled has one process pause before a call, a reviewer cancel, and another process end the
// saga before the first continues.
func (o ordeal) cancelled(t *testing.T, at int) int {
	b := newBench(t, orders.Unique.Options(), nil)
	for _, f := range o.faults {
		b.set(f)
	}
	b.begin(four())
	p := &pausing{at: at, pause: func() {
		err := b.cancel("ada")
		s := b.run(48 * time.Hour)
		if err == nil && s.State != saga.Undone {
			t.Errorf("call %d: cancelled, and\n%s", at, picture(s))
		}
	}}
	r := saga.New(pausingStore{b.ledger, p}, pausingEngine{b.newEngine(nil), p}, nil)
	s, err := r.Run(t.Context(), "acme", "saga-1")
	if err != nil {
		t.Fatalf("call %d: %v", at, err)
	}
	want := map[saga.State]string{saga.Done: "CTPM", saga.Undone: ""}
	there, over := want[s.State]
	if !over {
		t.Errorf("call %d: %s", at, picture(s))
	}
	b.there(there)
	b.orderly(s)
	return p.calls
}

// pausing pauses before one call of a process.
type pausing struct {
	calls, at int
	pause     func()
}

func (p *pausing) call() {
	if p.calls++; p.calls == p.at {
		p.pause()
	}
}

type pausingStore struct {
	saga.Store
	p *pausing
}

func (s pausingStore) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	s.p.call()
	return s.Store.Commit(ctx, f)
}

type pausingEngine struct {
	saga.Engine
	p *pausing
}

func (e pausingEngine) Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (engine.Outcome, error) {
	e.p.call()
	return e.Engine.Wait(ctx, tenant, id, replayed)
}

func (e pausingEngine) Undo(ctx context.Context, tenant string, id ledger.ID, u engine.Undoing) (engine.Outcome, error) {
	e.p.call()
	return e.Engine.Undo(ctx, tenant, id, u)
}
