package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// fresh is a destination whose key only we can have made: the plan needs no read before a
// create.
func fresh() orders.Options {
	o := orders.Unique.Options()
	return o
}

func TestHappyPathCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh(), nil)
		out := b.do(order("A-1", intent.Create))
		writes, reads := b.world.Count()
		if commits := b.ledger.Commits(); out.Status != ledger.Verified || commits != 2 || writes != 1 || reads != 1 {
			t.Errorf("%s with %d commits, %d sends, %d reads; want verified with 2, 1, 1%s", out.Status, commits, writes, reads, b.life(out.ID))
		}
	})
}

func TestConcurrentSubmissionsShareOneSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		engines := []*engine.Engine{b.engine, b.newEngine(nil), b.newEngine(nil)}
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		var mu sync.Mutex
		began, statuses := 0, map[ledger.Status]int{}
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				out, err := engines[i%len(engines)].Do(context.Background(), order("A-1", intent.Create))
				if err != nil {
					t.Errorf("Do: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				statuses[out.Status]++
				if !out.Replayed {
					began++
				}
			})
		}
		wg.Wait()
		writes, _ := b.world.Count()
		if writes != 1 || began != 1 || statuses[ledger.Verified] != 64 {
			t.Errorf("%d sends, %d callers that began it, outcomes %v", writes, began, statuses)
		}
	})
}

func TestOtherDigestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := order("A-1", intent.Create)
		b.do(w)
		other := w
		other.Expect = intent.Fields{"amount_cents": jsonNumber(2099), "currency": "USD"}
		_, err := b.engine.Do(context.Background(), other)
		var mismatch *ledger.DigestMismatchError
		if !errors.As(err, &mismatch) {
			t.Fatalf("error %v, want a digest mismatch", err)
		}
		recorded, _ := w.Digest()
		received, _ := other.Digest()
		for _, digest := range []string{recorded, received} {
			if !strings.Contains(err.Error(), digest) {
				t.Errorf("the error does not show digest %s: %v", digest, err)
			}
		}
		if writes, _ := b.world.Count(); writes != 1 {
			t.Errorf("%d sends", writes)
		}
	})
}

func TestOneOperationInTwoWorkflowsIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		first, second := order("A-1", intent.Create), order("A-2", intent.Create)
		first.IdempotencyKey, second.IdempotencyKey = "wire:invoice-7721", "wire:invoice-7721"
		second.Workflow = "wf-2"
		b.do(first)
		_, err := b.engine.Do(context.Background(), second)
		var blocked *ledger.BlockedError
		if !errors.As(err, &blocked) || blocked.Prior.Workflow != "wf-1" {
			t.Fatalf("error %v, want blocked by workflow wf-1", err)
		}
		time.Sleep(25 * time.Hour)
		if out := b.do(second); out.Status != ledger.Verified {
			t.Errorf("after the window: %s", out.Status)
		}
	})
}

func TestBadIntentsAreRefusedAndNotRecorded(t *testing.T) {
	cases := map[string]struct {
		change func(*intent.WriteIntent)
		want   error
		names  string
		reason string
	}{
		"no key":              {func(w *intent.WriteIntent) { w.Key = nil }, intent.ErrInvalid, "/key", "a record that cannot be read cannot be verified"},
		"nothing expected":    {func(w *intent.WriteIntent) { w.Expect = nil }, intent.ErrInvalid, "/expect", "nothing to verify"},
		"unknown destination": {func(w *intent.WriteIntent) { w.Destination = "elsewhere" }, connectors.ErrUnknownDestination, "/destination", "there is no destination"},
		"unknown kind":        {func(w *intent.WriteIntent) { w.Kind = "invoice" }, connectors.ErrUnknownDestination, "/kind", "nothing known about such records"},
		"compensates":         {func(w *intent.WriteIntent) { w.Compensates = "wr_1" }, intent.ErrInvalid, "/compensates", "the engine alone undoes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Plain.Options(), nil)
			w := order("A-1", intent.Create)
			c.change(&w)
			_, err := b.engine.Do(t.Context(), w)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, want %v naming %s: %s", err, c.want, c.names, c.reason)
			}
			if b.ledger.Commits() != 0 {
				t.Error("something was recorded")
			}
		})
	}
}

func TestCallerThatGivesUpLeavesTheWriteGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Lagging.Options()
		b := newBench(t, o, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		out, err := b.engine.Do(ctx, order("A-1", intent.Create))
		if err != nil || out.Status != ledger.InProgress || out.ID == "" {
			t.Fatalf("outcome %+v, %v; want in progress with an id", out, err)
		}
		out, err = b.engine.Do(t.Context(), order("A-1", intent.Create))
		if err != nil || out.Status != ledger.Verified || !out.Replayed {
			t.Errorf("asked again: %+v, %v; want the verified outcome, replayed", out, err)
		}
		if writes, _ := b.world.Count(); writes != 1 {
			t.Errorf("%d sends", writes)
		}
	})
}

func TestClosedEngineHandsItsWorkBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if out, err := b.engine.Do(ctx, order("A-1", intent.Create)); err != nil || out.Status != ledger.InProgress {
			t.Fatalf("%+v, %v", out, err)
		}
		b.engine.Close()
		if _, err := b.engine.Do(t.Context(), order("A-2", intent.Create)); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("a closed engine answered %v", err)
		}
		next := b.newEngine(nil)
		out, err := next.Do(t.Context(), order("A-1", intent.Create))
		if err != nil || out.Status != ledger.Verified {
			t.Errorf("the next engine: %+v, %v%s", out, err, b.life(out.ID))
		}
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		late := order("A-1", intent.Create)
		late.Deadline = time.Now().Add(-time.Second)
		if out := b.do(late); out.Status != ledger.NotApplied || out.Sends != 0 {
			t.Errorf("after the deadline: %+v", out)
		}
		// The first send is lost in transit; by the time that is known the deadline has passed.
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		passing := order("A-2", intent.Create)
		passing.Deadline = time.Now().Add(3 * time.Second)
		out := b.do(passing)
		if out.Status != ledger.NotApplied || out.Sends != 1 {
			t.Errorf("deadline between two sends: %+v%s", out, b.life(out.ID))
		}
	})
}

func TestUnreachableDestinationKeepsTheWriteQueued(t *testing.T) {
	for name, f := range map[string]orders.Fault{
		"no connection for the send":  {Kind: orders.Unreachable, Ops: []orders.Op{orders.OpCreate}, Times: 5},
		"no connection for any call":  {Kind: orders.Unreachable, Times: 9},
		"throttled for a long time":   {Kind: orders.Throttled, Ops: []orders.Op{orders.OpCreate}, Times: 3, Delay: 10 * time.Minute},
		"pre-state cannot be read":    {Kind: orders.UnreadableRead, Times: 4},
		"pre-state is not permitted":  {Kind: orders.UnreadableRead, Times: 2, How: "403"},
		"pre-state looks like a page": {Kind: orders.UnreadableRead, Times: 2, How: "page"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.set(f)
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.Verified || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%+v%s", out, b.life(out.ID))
				}
			})
		})
	}
}

func TestHeldUntilApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		every := []policies.RiskRule{{}}
		for _, word := range []engine.Word{engine.WordApprove, engine.WordDeny} {
			b := newBench(t, orders.Plain.Options(), &engine.Options{Risks: every})
			out := b.do(order("A-1", intent.Create))
			if writes, _ := b.world.Count(); out.Status != ledger.StatusHeld || writes != 0 {
				t.Fatalf("%+v with %d sends, want held with none", out, writes)
			}
			out, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: word, By: "ada", Reason: "checked the invoice"})
			want, records := ledger.Verified, 1
			if word == engine.WordDeny {
				want, records = ledger.Denied, 0
			}
			if err != nil || out.Status != want || len(b.world.Records("A-1")) != records {
				t.Errorf("%s: %+v, %v%s", word, out, err, b.life(out.ID))
			}
		}
	})
}

func TestApprovalAfterDaysStillWaitsForTheDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := order("A-1", intent.Create)
		w.Risk = intent.RiskApprove
		b := newBench(t, orders.Plain.Options(), &engine.Options{Risks: []policies.RiskRule{{Class: intent.RiskLog, Within: 100 * time.Hour}}})
		out := b.do(w)
		time.Sleep(72 * time.Hour)
		b.set(orders.Fault{Kind: orders.Unreachable, Times: 3})
		out, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "checked the invoice"})
		if err != nil || out.Status != ledger.Verified {
			t.Errorf("%+v, %v: the time in which it was held does not count%s", out, err, b.life(out.ID))
		}
	})
}

func TestAWriteTypeThatThereIsNotIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		p := d.Profiles[orders.Kind]
		p.Writes = []intent.WriteType{intent.Create, intent.Delete}
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		e := b.engineOn(b.ledger, d, nil)
		w := order("A-1", intent.Upsert)
		_, err := e.Do(t.Context(), w)
		if !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), `/write: "orders" has no upsert of kind "order"; it has [create delete]`) {
			t.Errorf("%v; want the field, and what there is", err)
		}
		if recs, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"}); err != nil || len(recs) != 0 {
			t.Errorf("%d records, %v; want nothing recorded", len(recs), err)
		}
	})
}

func TestAnIntentThatCanNeverBeServedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := order("A-1", intent.Create)
		w.Key["shop"] = "x"
		_, err := b.engine.Do(t.Context(), w)
		if !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), "/key/shop") {
			t.Errorf("%v; want the field named", err)
		}
		if recs, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"}); err != nil || len(recs) != 0 {
			t.Errorf("%d records, %v; want nothing recorded", len(recs), err)
		}
	})
}

// choosy is a connector that has become stricter.
type choosy struct {
	connectors.Connector
	err   error
	panic bool
}

func (c choosy) Check(intent.WriteIntent) error {
	if c.panic {
		panic("cannot")
	}
	return c.err
}

// An accepted write keeps its outcome when the check is stricter later.
func TestAcceptedOnceIsAnsweredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		first := b.do(order("A-1", intent.Create))
		for name, c := range map[string]choosy{"an error": {err: errors.New("/key: no more")}, "a panic": {panic: true}} {
			d := b.world.Destination()
			c.Connector = d.Connector
			d.Connector = c
			e := b.engineOn(b.ledger, d, nil)
			again, err := e.Do(t.Context(), order("A-1", intent.Create))
			if err != nil || again.ID != first.ID || !again.Replayed || again.Status != ledger.Verified {
				t.Errorf("%s: %+v, %v; want the outcome of before", name, again, err)
			}
			if _, err := e.Do(t.Context(), order("A-2", intent.Create)); !errors.Is(err, intent.ErrInvalid) {
				t.Errorf("%s: a new one: %v; want it refused", name, err)
			}
		}
	})
}

// A caller that does not wait still learns that an earlier call began the write.
func TestARepeatIsOneAlsoWithoutAWait(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	b.do(order("A-1", intent.Create))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 20_000 / need.OneIn(10) { // the scheduler decides which comes first
		if out, err := b.engine.Do(ctx, order("A-1", intent.Create)); err != nil || !out.Replayed {
			t.Fatalf("call %d: %+v, %v; want it replayed", n, out, err)
		}
	}
}
