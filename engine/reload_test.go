package engine_test

import (
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
	"github.com/readback-go/readback/policies"
)

// Replaced rules apply to the next write, and loosen nothing that was decided.
func TestRisksAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified {
			t.Fatalf("%+v", out)
		}
		waits := b.enqueue(order("A-2", intent.Create))
		b.engine.SetRisks([]policies.RiskRule{{Name: "all", Approvers: 2}})
		held := b.do(order("A-3", intent.Create))
		b.work(time.Minute)
		if held.Status != ledger.StatusHeld || b.state(waits).State != ledger.Held {
			t.Errorf("%+v, and what waited is %s", held, b.state(waits).Phase())
		}
		b.engine.SetRisks(nil)
		b.work(time.Minute)
		if again := b.do(order("A-3", intent.Create)); again.Status != ledger.StatusHeld || b.state(waits).State != ledger.Held {
			t.Errorf("looser rules released what was held: %+v, %s", again, b.state(waits).Phase())
		}
		for _, by := range []string{"ada", "bob"} {
			out, err := b.engine.Resolve(t.Context(), "acme", held.ID, approves(by))
			if want := map[string]ledger.Status{"ada": ledger.StatusHeld, "bob": ledger.Verified}[by]; err != nil || out.Status != want {
				t.Errorf("approved by %s: %+v, %v", by, out, err)
			}
		}
		if out := b.do(order("A-4", intent.Create)); out.Status != ledger.Verified {
			t.Errorf("%+v", out)
		}
	})
}

// The caller's slice is its own.
func TestRisksAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		rules := []policies.RiskRule{{Name: "all"}}
		b.engine.SetRisks(rules)
		rules[0].Kind = "something else"
		if out := b.do(order("A-1", intent.Create)); out.Status != ledger.StatusHeld {
			t.Errorf("%+v", out)
		}
	})
}

func TestRisksAreReplacedWhileWritesAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				b.engine.SetRisks([]policies.RiskRule{{Name: "log", Class: intent.RiskLog}})
				if out, err := b.engine.Do(t.Context(), order(fmt.Sprint("A-", i), intent.Create)); err != nil || out.Status != ledger.Verified {
					t.Errorf("%+v, %v", out, err)
				}
			})
		}
		wg.Wait()
	})
}

// A reviewer and an auditor may request no write.
func TestWhoMayAsk(t *testing.T) {
	for name, c := range map[string]struct {
		role   engine.Role
		err    error
		reason string
	}{
		"an agent":            {engine.RoleAgent, nil, "it declares writes"},
		"an operator":         {engine.RoleOperator, nil, "they may do everything"},
		"within the process":  {"", nil, "its callers may do everything"},
		"a reviewer":          {engine.RoleReviewer, engine.ErrForbidden, "who decides about writes of others has none"},
		"an auditor":          {engine.RoleAuditor, engine.ErrForbidden, "who reads everything changes nothing"},
		"a role that is none": {"Operator", engine.ErrForbidden, "what is not understood may do nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				ctx := as(t.Context(), "ada", c.role)
				w := undoable(order("A-1", intent.Create))
				mine, err := b.engine.Do(ctx, w)
				if !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("do: %+v, %v: %s", mine, err, c.reason)
				}
				if _, err := b.engine.Enqueue(ctx, order("A-2", intent.Create)); !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("enqueue: %v: %s", err, c.reason)
				}
				all, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"})
				if writes, _ := b.world.Count(); c.err != nil && (err != nil || len(all) != 0 || writes != 0) {
					t.Errorf("refused, and yet %d are recorded, %d sent, %v", len(all), writes, err)
				}
				done, err := b.engine.Do(as(t.Context(), "ada", ""), w)
				if err != nil {
					t.Fatal(err)
				}
				out, err := b.engine.Undo(ctx, "acme", done.ID, engine.Undoing{By: "ada", Reason: "x"})
				if !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("undo: %+v, %v: %s", out, err, c.reason)
				}
			})
		})
	}
}
