package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

type panicky struct {
	connectors.Connector
	connectors.Inverter
}

func (panicky) Invert(intent.WriteIntent, *connectors.Observation, connectors.Observation) (intent.WriteIntent, error) {
	panic("cannot")
}

func undoable(w intent.WriteIntent) intent.WriteIntent {
	w.Reversibility, w.OnMismatch = intent.Compensable, intent.MismatchCompensate
	return w
}

func TestInvertThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		d.Connector = panicky{Connector: d.Connector}
		b.engine = b.engineOn(b.ledger, d, nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
		out := b.do(undoable(order("A-1", intent.Create)))
		if out.Status != ledger.StatusReview {
			t.Errorf("%+v", out)
		}
	})
}

// gated holds every undo for approval.
var gated = &engine.Options{Risks: []policies.RiskRule{{Writes: []intent.WriteType{intent.Delete}}}}

// While an undo is open the write is in review. Another actor repairs the record, and then the
// undo is approved.
func TestNothingSettlesWhileItsUndoingIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
		b.engine = b.newEngine(gated)
		out := b.do(undoable(order("A-1", intent.Create)))
		if out.Status != ledger.StatusReview {
			t.Fatalf("%+v", out)
		}
		// another actor completes the record
		if _, err := b.world.Edit(b.world.Records("A-1")[0].ID, intent.Fields{"currency": "USD"}); err != nil {
			t.Fatal(err)
		}
		b.work(10 * time.Minute)
		child := b.state(out.ID).Child
		if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, Force: true, By: "ada", Reason: "x"}); !errors.Is(err, engine.ErrNotWaiting) {
			t.Errorf("another send while the undoing is open: %v", err)
		}
		if _, err := b.engine.Resolve(t.Context(), "acme", child, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "undo it"}); err != nil {
			t.Fatal(err)
		}
		b.work(100 * time.Hour)
		if got := b.state(out.ID); got.Settlement == ledger.Verified && len(b.world.Records("A-1")) == 0 {
			t.Errorf("verified, and its own undoing removed it%s%s", b.life(out.ID), b.life(child))
		}
	})
}

func TestUndoingApprovedLaterEndsTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
		b.engine = b.newEngine(gated)
		out := b.do(undoable(order("A-1", intent.Create)))
		child := b.state(out.ID).Child
		if _, err := b.engine.Resolve(t.Context(), "acme", child, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "undo it"}); err != nil {
			t.Fatal(err)
		}
		if got := b.state(child); got.Settlement != ledger.Verified || b.state(out.ID).State != ledger.Review {
			t.Fatalf("setup: %s, %s", got.Phase(), b.state(out.ID).Phase())
		}
		// No worker has settled the write yet. What is sent now would be called undone.
		if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, Force: true, By: "ada", Reason: "x"}); !errors.Is(err, engine.ErrNotWaiting) {
			t.Errorf("another send after the undo: %v", err)
		}
		b.work(100 * time.Hour)
		if got := b.state(out.ID); got.Settlement != ledger.Compensated {
			t.Errorf("%s%s", got.Phase(), b.life(out.ID))
		}
	})
}

// slowDelete makes the undo slow.
type slowDelete struct {
	*orders.Connector
	begun chan struct{}
}

func (s slowDelete) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if r.Intent.Write == intent.Delete {
		close(s.begun)
		time.Sleep(time.Second)
	}
	return s.Connector.Write(ctx, r)
}

func TestCloseDuringAnUndoNeedsNoReviewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
		d := b.world.Destination()
		begun := make(chan struct{})
		d.Connector = slowDelete{d.Connector.(*orders.Connector), begun}
		e := b.engineOn(b.ledger, d, nil)
		go func() { <-begun; e.Close() }()
		rec, err := ledger.NewRecord(undoable(order("A-1", intent.Create)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Do(t.Context(), undoable(order("A-1", intent.Create))); err != nil && !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Do: %v", err)
		}
		b.work(time.Hour)
		if got := b.state(rec.ID); got.Settlement != ledger.Compensated {
			t.Errorf("%s%s", got.Phase(), b.life(rec.ID))
		}
	})
}

func TestReviewerUndoesAVerifiedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Horizon = connectors.Bound{}
		b := newBench(t, o, nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		w := order("A-1", intent.Create)
		w.Reversibility = intent.Compensable
		out := b.do(w)
		if _, err := b.world.Seed(asStored("A-1"), w.Stamp()); err != nil {
			t.Fatal(err)
		}
		got, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordCompensate, By: "ada", Reason: "not wanted any more"})
		if err != nil || got.Status == ledger.Verified {
			t.Errorf("%s %v: the reviewer's word was dropped%s", got.Status, err, b.life(out.ID))
		}
	})
}

// interloper has another actor write just before each create.
type interloper struct {
	*orders.Connector
	before func()
}

func (i interloper) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if r.Intent.Write == intent.Create {
		i.before()
	}
	return i.Connector.Write(ctx, r)
}

func TestWhatMayBeAnothersIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Stamps = false
		b := newBench(t, o, nil)
		d := b.world.Destination()
		d.Connector = interloper{d.Connector.(*orders.Connector), func() {
			if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5)}, ""); err != nil {
				t.Error(err)
			}
		}}
		b.engine = b.engineOn(b.ledger, d, nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Ops: []orders.Op{orders.OpCreate}, Times: 1})
		out := b.do(undoable(order("A-1", intent.Create)))
		if n := len(b.world.Records("A-1")); n != 1 {
			t.Errorf("%s: another actor's record was removed%s", out.Status, b.life(out.ID))
		}
	})
}

// On a destination whose reads lag, the state before is an older state. Restoring it would
// revert later changes of others.
func TestUndoingTakesBackNothingOfOthers(t *testing.T) {
	lagging := orders.Unique.Options()
	lagging.Lags, lagging.Settle = []time.Duration{orders.DefaultLag}, connectors.Within(orders.DefaultLag)
	theirs := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "note": "theirs"}
	for _, write := range []intent.WriteType{intent.Update, intent.Upsert} {
		t.Run(string(write), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, lagging, nil)
				seeded, err := b.world.Seed(theirs, "")
				if err != nil {
					t.Fatal(err)
				}
				if write == intent.Update { // it is known, and their last change is not
					time.Sleep(time.Minute)
					if _, err := b.world.Edit(seeded.ID, intent.Fields{"note": "theirs, and new"}); err != nil {
						t.Fatal(err)
					}
				}
				b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.Op(write)}, Field: "currency", Times: 1})
				before := b.world.Records("A-1")[0].Fields["note"]
				out := b.do(undoable(order("A-1", write)))
				left := b.world.Records("A-1")
				if out.Status != ledger.StatusReview || len(left) != 1 || left[0].Fields["note"] != before {
					t.Errorf("%s, %+v left%s", out.Status, left, b.life(out.ID))
				}
			})
		})
	}
}
