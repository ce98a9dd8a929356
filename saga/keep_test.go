package saga_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

func (b *bench) document() ledger.Document {
	b.t.Helper()
	p, err := b.ledger.Document(context.Background(), "acme", "saga", "saga-1")
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// The actor that began a saga requested its writes, and approves none of them.
func TestWhoBeganItDoesNotApprove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[0].Intent.Risk = intent.RiskApprove
		if _, err := b.runner.Begin(engine.As(t.Context(), engine.Principal{Name: "eve", Role: engine.RoleOperator}), p); err != nil {
			t.Fatal(err)
		}
		s := b.run(time.Minute)
		b.want(s, saga.Running, ledger.StatusHeld)
		d := engine.Decision{Word: engine.WordApprove, By: "eve", Reason: "mine"}
		if _, err := b.engine.Resolve(t.Context(), "acme", s.Steps[0].WriteID, d); !errors.Is(err, engine.ErrForbidden) {
			t.Errorf("%v", err)
		}
	})
}

// An operation that was done longer ago than the window blocks nothing.
func TestWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		window time.Duration
		state  saga.State
	}{"inside": {2 * time.Hour, saga.Undone}, "outside": {time.Minute, saga.Done}, "default": {0, saga.Undone}, "for ever": {-1, saga.Undone}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.runner = saga.New(b.ledger, b.engine, &saga.Options{Window: tt.window})
				other := create("X-1", intent.Pivot)
				other.Tenant, other.Workflow, other.IdempotencyKey = "acme", "wf-before", "op:7"
				if _, err := b.engine.Do(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				p := four()
				p.Steps[2].Intent.IdempotencyKey = "op:7"
				b.begin(p)
				b.want(b.run(time.Hour), tt.state)
			})
		})
	}
}

// asked is an engine that records its callers.
type asked struct {
	saga.Engine
	by []engine.Principal
}

func (e *asked) Undo(ctx context.Context, tenant string, id ledger.ID, u engine.Undoing) (engine.Outcome, error) {
	e.by = append(e.by, engine.Caller(ctx))
	return e.Engine.Undo(ctx, tenant, id, u)
}

// A saga goes back by itself, whichever caller runs it then.
func TestASagaActsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "T-1"})
		e := &asked{Engine: b.engine}
		b.runner = saga.New(b.ledger, e, nil)
		b.begin(four())
		bot := engine.As(t.Context(), engine.Principal{Name: "bot", Role: engine.RoleAgent})
		if s, err := b.runner.Run(bot, "acme", "saga-1"); err != nil || s.State != saga.Undone {
			t.Fatalf("%v\n%s", err, picture(s))
		}
		if len(e.by) != 1 || e.by[0] != (engine.Principal{}) {
			t.Errorf("undone by %+v", e.by)
		}
	})
}

// A finished saga may be pruned; one that waits for a reviewer may not.
func TestWhatIsOverMayBeForgotten(t *testing.T) {
	for failing, want := range map[string]bool{"": true, "T-1": true, "M-1": false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			if failing != "" {
				b.set(orders.Fault{Kind: orders.Refused, Key: failing})
			}
			b.begin(four())
			s := b.run(time.Hour)
			if p := b.document(); p.Done != want || p.State != string(s.State) || !p.Due.IsZero() {
				t.Errorf("%q: %s, done %t, due %s", failing, p.State, p.Done, p.Due)
			}
		})
	}
}

// counting is a store that counts how often a document is read.
type counting struct {
	saga.Store
	reads atomic.Int64
}

func (s *counting) Document(ctx context.Context, tenant, kind, id string) (ledger.Document, error) {
	s.reads.Add(1)
	return s.Store.Document(ctx, tenant, kind, id)
}

// A saga that a newer version wrote is left unchanged.
func TestNewerForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		p := b.document()
		var body map[string]any
		if err := json.Unmarshal(p.Body, &body); err != nil {
			t.Fatal(err)
		}
		body["form"] = 2
		p.Body, _ = json.Marshal(body)
		if _, err := b.ledger.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.runner.Run(t.Context(), "acme", "saga-1"); !errors.Is(err, saga.ErrForm) {
			t.Errorf("%v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		store := &counting{Store: b.ledger}
		if err := runWorker(ctx, saga.New(store, b.engine, nil)); err != nil {
			t.Fatal(err)
		}
		if store.reads.Load() > 300 {
			t.Errorf("it was read %d times in an hour", store.reads.Load())
		}
		if now := b.document(); string(now.Body) != string(p.Body) || now.Version > p.Version+100 {
			t.Errorf("version %d after %d", now.Version, p.Version)
		}
	})
}

// A worker that ends leaves its sagas to the next one at once.
func TestAWorkerThatEndsPutsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.UnreadableRead, Key: "C-1"})
		b.begin(four())
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		if err := runWorker(ctx, b.runner); err != nil {
			t.Fatal(err)
		}
		if p := b.document(); p.Due.After(time.Now()) {
			t.Errorf("due in %s", time.Until(p.Due))
		}
	})
}

// The happy path commits once for each step, and once each for the beginning and the end.
func TestCommitsOfASaga(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		b.want(b.run(time.Hour), saga.Done)
		if v := b.document().Version; v != 6 {
			t.Errorf("%d batches, want 6", v)
		}
	})
}

// idle is an engine that does nothing about a write.
type idle struct {
	saga.Engine
	calls int
}

func (e *idle) Wait(_ context.Context, _ string, id ledger.ID, _ bool) (engine.Outcome, error) {
	e.calls++
	return engine.Outcome{ID: id, Status: ledger.Unverified}, nil
}

// If the engine makes no progress, the saga tries again later, and not at once forever.
func TestNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		e := &idle{Engine: b.engine}
		b.runner = saga.New(b.ledger, e, nil)
		b.begin(four())
		b.want(b.run(time.Hour), saga.Running, ledger.InProgress)
		if e.calls < 10 || e.calls > 200 {
			t.Errorf("%d calls in an hour", e.calls)
		}
	})
}

// A missing approval makes the saga go back, even if only the saga works on the ledger.
func TestApprovalThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[2].Intent.Risk = intent.RiskApprove
		b.begin(p)
		b.want(b.run(48*time.Hour), saga.Undone, ledger.Compensated, ledger.Compensated, ledger.Expired, "")
	})
}
