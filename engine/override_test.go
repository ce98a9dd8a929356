package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// paid is the same business operation in another workflow.
func paid(workflow, id string) intent.WriteIntent {
	w := order(id, intent.Create)
	w.Workflow, w.IdempotencyKey = workflow, "wire:invoice-7721"
	return w
}

func TestYield(t *testing.T) {
	for name, c := range map[string]struct {
		who        engine.Principal
		by, reason string
		keyless    bool
		err        error
		why        string
	}{
		"an operator":        {engine.Principal{Name: "ada", Role: engine.RoleOperator}, "ada", "the bank confirmed that it bounced", false, nil, "they may decide"},
		"an agent":           {engine.Principal{Name: "crm-agent", Role: engine.RoleAgent}, "crm-agent", "x", false, engine.ErrForbidden, "an agent overrides nothing"},
		"a reviewer":         {engine.Principal{Name: "ada", Role: engine.RoleReviewer}, "ada", "x", false, engine.ErrForbidden, "reviewers decide, and operators override"},
		"in another's name":  {engine.Principal{Name: "bob", Role: engine.RoleOperator}, "ada", "x", false, engine.ErrForbidden, "it is kept by name"},
		"no name":            {engine.Principal{}, "", "x", false, errors.ErrUnsupported, "it is kept by name"},
		"only a blank":       {engine.Principal{}, " ", "x", false, errors.ErrUnsupported, "that is no name"},
		"without a reason":   {engine.Principal{}, "ada", "", false, errors.ErrUnsupported, "and with a reason"},
		"nothing to release": {engine.Principal{}, "ada", "x", true, engine.ErrNotWaiting, "it stops no other write"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				w := paid("wf-1", "A-1")
				if c.keyless {
					w.IdempotencyKey = ""
				}
				done := b.do(w)
				before := b.state(done.ID)
				err := b.engine.Yield(engine.As(t.Context(), c.who), "acme", done.ID, c.by, c.reason)
				_, again := b.engine.Do(t.Context(), paid("wf-2", "A-2"))
				after := b.state(done.ID)
				if c.err == nil {
					if err != nil || again != nil || !after.Yielded || after.Phase() != before.Phase() || after.Reason != before.Reason {
						t.Fatalf("%v, then %v: %s, %q%s", err, again, after.Phase(), after.Reason, b.life(done.ID))
					}
					if err := b.engine.Yield(t.Context(), "acme", done.ID, "eve", "again"); err != nil || b.state(done.ID).Seq != after.Seq {
						t.Errorf("a second time: %v", err)
					}
					return
				}
				after.Now = before.Now
				if diff := cmp.Diff(before, after); err == nil || !errors.Is(c.err, errors.ErrUnsupported) && !errors.Is(err, c.err) || diff != "" {
					t.Errorf("%v, want %v: %s%s", err, c.err, c.why, diff)
				}
				if blocks := errors.Is(again, ledger.ErrBlocked); blocks == c.keyless {
					t.Errorf("another workflow: %v", again)
				}
			})
		})
	}
}

// A write that waits for its approval is denied, and releases the operation with that.
func TestAHeldWriteIsDeniedNotLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), held())
		out := b.asked(paid("wf-1", "A-1"))
		if err := b.engine.Yield(t.Context(), "acme", out.ID, "ada", "x"); !errors.Is(err, engine.ErrNotWaiting) || !strings.Contains(err.Error(), "waits for approval; deny it") {
			t.Errorf("%v", err)
		}
		if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Do(t.Context(), paid("wf-2", "A-2")); err != nil {
			t.Errorf("%v", err)
		}
	})
}

func TestAwaitPrior(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		b.set(orders.Fault{Kind: orders.UnreadableRead, Ops: []orders.Op{orders.OpRead}, Times: 6})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		first, err := b.engine.Do(ctx, paid("wf-1", "A-1"))
		if err != nil || first.Status != ledger.InProgress {
			t.Fatalf("%+v, %v", first, err)
		}
		_, blocked := b.engine.Do(t.Context(), paid("wf-2", "A-2"))
		out, err := b.engine.AwaitPrior(t.Context(), blocked)
		if err != nil || out.ID != first.ID || out.Status != ledger.Verified || len(b.world.Records("A-2")) != 0 {
			t.Errorf("%+v, %v after %v", out, err, blocked)
		}
		if _, err := b.engine.AwaitPrior(t.Context(), engine.ErrClosed); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("another error: %v", err)
		}
	})
}

// A delegated write is watched until its step reports that it is done.
func TestAwaitWhatAStepDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		rec := b.delegated(ledger.Event{Kind: ledger.EvDelegated})
		w := paid("wf-2", "A-2")
		w.IdempotencyKey = "wire:7"
		_, blocked := b.engine.Do(t.Context(), w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if out, err := b.engine.AwaitPrior(ctx, blocked); err != nil || out.ID != rec.ID || out.Status != ledger.StatusDelegated {
			t.Fatalf("%+v, %v after %v", out, err, blocked)
		}
		time.AfterFunc(time.Hour, func() {
			_, err := b.ledger.Append(context.Background(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "wf-9"})
			if err != nil {
				t.Error(err)
			}
		})
		out, err := b.engine.AwaitPrior(t.Context(), blocked)
		if err != nil || out.Status != ledger.Reported {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// A pruned write still blocks others, and can be released as any other.
func TestAPrunedWriteIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{Window: -1})
		done := b.do(paid("wf-1", "A-1"))
		time.Sleep(48 * time.Hour)
		if _, err := b.ledger.Prune(t.Context(), ledger.Prune{Keep: 24 * time.Hour, Remember: 10000 * time.Hour}); err != nil || !b.state(done.ID).Tombstone {
			t.Fatalf("%v: %s", err, b.state(done.ID).Phase())
		}
		if _, err := b.engine.Do(t.Context(), paid("wf-2", "A-2")); !errors.Is(err, ledger.ErrBlocked) {
			t.Errorf("before: %v", err)
		}
		if err := b.engine.Yield(t.Context(), "acme", done.ID, "ada", "it is to be paid every year"); err != nil {
			t.Error(err)
		}
		if _, err := b.engine.Do(t.Context(), paid("wf-2", "A-2")); err != nil {
			t.Errorf("after: %v", err)
		}
	})
}
