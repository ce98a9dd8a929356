package saga_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// Another workflow did the operation of a step: before the pivot the saga goes back and names it,
// after it the saga goes to review.
func TestBlockedByAnotherWorkflow(t *testing.T) {
	for name, tt := range map[string]struct {
		step  int
		id    string
		state saga.State
		there string
	}{
		"before the pivot": {1, "T-1", saga.Undone, "T"},
		"the pivot":        {2, "P-1", saga.Undone, "P"},
		"behind the pivot": {3, "M-1", saga.Review, "CTPM"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				other := create(tt.id, intent.Pivot)
				other.Tenant, other.Workflow, other.IdempotencyKey = "acme", "wf-before", "op:7"
				if _, err := b.engine.Do(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				p := four()
				p.Steps[tt.step].Intent.IdempotencyKey = "op:7"
				b.begin(p)
				s := b.run(time.Hour)
				b.want(s, tt.state)
				b.there(tt.there)
				if blocked := s.Steps[tt.step].Blocked; blocked == nil || blocked.Workflow != "wf-before" || !strings.Contains(s.Reason, "wf-before") {
					t.Errorf("%+v\n%s", blocked, picture(s))
				}
			})
		})
	}
}

// The name of a step's write is taken by a write with another request.
func TestNameIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		other := create("X-1", intent.Pivot)
		other.Tenant, other.Workflow, other.Step = "acme", "saga-1", "pay"
		if _, err := b.engine.Do(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		b.begin(four())
		s := b.run(time.Hour)
		b.want(s, saga.Undone, ledger.Compensated, ledger.Compensated, "")
		b.there("")
		if s.Steps[2].Blocked == nil || !strings.Contains(s.Reason, "digest") {
			t.Error(picture(s))
		}
	})
}

// Another actor changed the ticket after the saga wrote it: that change is not overwritten, and
// the reviewer gets all details.
func TestUndoingSparesALaterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[2].Grace = time.Minute
		b.set(orders.Fault{Kind: orders.Refused, Key: "P-1"})
		b.begin(p)
		b.run(30 * time.Second)
		if _, err := b.world.Edit(b.world.Records("T-1")[0].ID, intent.Fields{"currency": "CHF"}); err != nil {
			t.Fatal(err)
		}
		s := b.run(time.Hour)
		b.want(s, saga.Review, ledger.Verified, ledger.StatusReview, ledger.NotApplied, "")
		b.there("CT")
		if len(s.Steps[1].May) == 0 || !strings.Contains(s.Reason, "ticket") || s.Back == nil || s.Back.Step != "pay" {
			t.Error(picture(s))
		}
		b.decide(1, engine.WordAccept)
		s = b.run(time.Hour)
		b.want(s, saga.Review, ledger.Verified, ledger.Accepted)
		b.there("CT")
		if !strings.Contains(s.Reason, `step "contact" stays: what depends on it stays`) {
			t.Error(s.Reason)
		}
	})
}

// A reviewer settles an unknown result, and the saga continues by itself.
func TestReviewIsWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		word  engine.Word
		state saga.State
		there string
	}{
		"accepted":  {engine.WordAccept, saga.Done, "CTPM"},
		"abandoned": {engine.WordAbandon, saga.Review, "CTP"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				b.set(orders.Fault{Kind: orders.DroppedField, Key: "P-1", Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
				b.begin(four())
				b.want(b.run(time.Hour), saga.Review, ledger.Verified, ledger.Verified, ledger.StatusReview)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _ = runWorker(ctx, b.runner) }()
				time.Sleep(time.Hour)
				b.decide(2, tt.word)
				time.Sleep(time.Hour)
				b.want(b.get(), tt.state)
				b.there(tt.there)
			})
		})
	}
}

// A retryable step is tried a bounded number of times, then goes to review; the reviewer runs it
// again.
func TestRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.runner = saga.New(b.ledger, b.engine, &saga.Options{Attempts: 3})
		b.set(orders.Fault{Kind: orders.Refused, Key: "M-1", Times: 5})
		b.begin(four())
		s := b.run(time.Hour)
		b.want(s, saga.Review, ledger.Verified, ledger.Verified, ledger.Verified, ledger.NotApplied)
		if s.Steps[3].Attempts != 3 || !s.Next.IsZero() {
			t.Errorf("%d attempts, next %s", s.Steps[3].Attempts, s.Next)
		}
		bot := engine.As(t.Context(), engine.Principal{Name: "bot", Role: engine.RoleAgent})
		if _, err := b.runner.Resume(bot, "acme", "saga-1"); !errors.Is(err, engine.ErrForbidden) {
			t.Errorf("an agent makes it continue: %v", err)
		}
		if s = b.run(time.Hour); s.Steps[3].Attempts != 3 {
			t.Errorf("who runs it at will makes it continue: %s", picture(s))
		}
		s = b.resume(time.Hour)
		b.want(s, saga.Done)
		if s.Steps[3].Attempts != 6 {
			t.Errorf("%d attempts", s.Steps[3].Attempts)
		}
		b.there("CTPM")
	})
}

// Each resumption gives as many attempts as at first, and no more.
func TestMoreRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.runner = saga.New(b.ledger, b.engine, &saga.Options{Attempts: 3})
		b.set(orders.Fault{Kind: orders.Refused, Key: "M-1"})
		b.begin(four())
		b.run(time.Hour)
		if s := b.resume(time.Hour); s.State != saga.Review || s.Steps[3].Attempts != 6 {
			t.Errorf("%d attempts\n%s", s.Steps[3].Attempts, picture(s))
		}
	})
}

// absent is an engine without the destinations of a saga.
func (b *bench) absent() *engine.Engine {
	e := engine.New(b.ledger, &connectors.Registry{}, nil)
	b.t.Cleanup(e.Close)
	return e
}

// A worker without the destination leaves the saga to one that has it.
func TestWorkerWithoutTheDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		before := b.ledger.Commits()
		if err := runWorker(ctx, saga.New(b.ledger, b.absent(), nil)); err != nil {
			t.Fatal(err)
		}
		if got := b.ledger.Commits() - before; got > 0 {
			t.Errorf("%d commits for nothing", got)
		}
		s := b.get()
		b.want(s, saga.Running)
		if !s.Next.After(s.Now.Add(-time.Hour)) {
			t.Errorf("next %s", s.Next)
		}
		b.want(b.run(time.Hour), saga.Done)
	})
}

// A step that no worker can begin for long goes to review, and is begun when a worker can.
func TestUnregisteredDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Hour)
		defer stop()
		if err := runWorker(ctx, saga.New(b.ledger, b.absent(), nil)); err != nil {
			t.Fatal(err)
		}
		s := b.get()
		b.want(s, saga.Review, "")
		if !strings.Contains(s.Reason, `could not begin step "contact"`) || s.Next.IsZero() || s.Now.Sub(s.Since) < time.Hour {
			t.Error(picture(s))
		}
		b.want(b.run(time.Hour), saga.Done)
		b.there("CTPM")
	})
}

// behind is a store whose clock is behind that of the process.
type behind struct{ saga.Store }

func (s behind) DueDocuments(ctx context.Context, kind string, limit int) ([]ledger.Document, time.Time, error) {
	due, now, err := s.Store.DueDocuments(ctx, kind, limit)
	return due, now.Add(-time.Hour), err
}

// A saga is due at once by the ledger's clock, whatever the process's clock shows.
func TestClockOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.runner = saga.New(behind{b.ledger}, b.engine, nil)
		b.begin(four())
		if p := b.document(); time.Until(p.Due) > -time.Hour {
			t.Errorf("due in %s by the clock of the process", time.Until(p.Due))
		}
	})
}

// The plan's undoing is used, only for the record of the step.
func TestUndoingOfThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "P-1"})
		p := four()
		p.Steps[1].Undo = &intent.WriteIntent{Write: intent.Update, Expect: intent.Fields{"currency": "XXX"}}
		b.begin(p)
		s := b.run(time.Hour)
		b.want(s, saga.Undone, ledger.Compensated, ledger.Compensated, ledger.NotApplied)
		if s.Steps[1].UndoBy != "plan" || s.Steps[0].UndoBy != "connector" {
			t.Errorf("undone by %q and %q", s.Steps[1].UndoBy, s.Steps[0].UndoBy)
		}
		b.there("T")
		if got := b.world.Records("T-1")[0].Fields["currency"]; got != "XXX" {
			t.Errorf("currency is %v", got)
		}
	})
}

// A state that was there before the saga is not removed when it goes back.
func TestWhatWasThereBeforeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "P-1"})
		there := create("T-1", intent.Pivot)
		there.Tenant, there.Workflow = "acme", "wf-before"
		if _, err := b.engine.Do(t.Context(), there); err != nil {
			t.Fatal(err)
		}
		p := four()
		p.Steps[1].Intent.Write = intent.Upsert
		b.begin(p)
		b.want(b.run(time.Hour), saga.Undone, ledger.Compensated, ledger.Verified)
		b.there("T")
	})
}

// An irreversible write comes last, is never undone, and a plan with another order is refused.
func TestLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[3].Intent.Destination = "letters"
		names, err := b.runner.Order(p)
		if err != nil || !slices.Equal(names, []string{"contact", "ticket", "pay", "mail"}) {
			t.Errorf("%v %v", names, err)
		}
		p.Steps[3].Intent.Reversibility = intent.Compensable
		if err := b.runner.Check(p); !errors.Is(err, saga.ErrPlan) {
			t.Errorf("%v", err)
		}
	})
}

// A ledger's failure is returned to the caller of Run, and a worker continues when the ledger
// works again.
func TestLedgerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		down := &failing{Store: b.ledger, until: time.Now().Add(time.Minute)}
		r := saga.New(down, b.engine, nil)
		if _, err := r.Run(t.Context(), "acme", "saga-1"); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = runWorker(ctx, r) }()
		time.Sleep(10 * time.Minute)
		b.want(b.get(), saga.Done)
		b.there("CTPM")
	})
}

// One failure of the ledger, such as a connection that is cut, delays a young saga by seconds.
func TestOneFailureOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		r := saga.New(&failingOnce{Store: b.ledger}, b.engine, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = runWorker(ctx, r) }()
		time.Sleep(15 * time.Second)
		b.want(b.get(), saga.Done)
		b.there("CTPM")
	})
}

// failingOnce is a store whose first commit fails.
type failingOnce struct {
	saga.Store
	failed atomic.Bool
}

func (f *failingOnce) Commit(ctx context.Context, batch ledger.Batch) (ledger.Committed, error) {
	if f.failed.CompareAndSwap(false, true) {
		return ledger.Committed{}, ledger.ErrUnavailable
	}
	return f.Store.Commit(ctx, batch)
}

// failing is a store that accepts nothing for a while.
type failing struct {
	saga.Store
	until time.Time
}

func (f *failing) Commit(ctx context.Context, batch ledger.Batch) (ledger.Committed, error) {
	if time.Now().Before(f.until) {
		return ledger.Committed{}, ledger.ErrUnavailable
	}
	return f.Store.Commit(ctx, batch)
}
