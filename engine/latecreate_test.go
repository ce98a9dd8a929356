package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// A create was sent twice, since its first send was not answered; the record is
// deleted; then the first send arrives, and its key is free again.
func TestADeletedRecordDoesNotComeBack(t *testing.T) {
	late := simulated.Fault{Vice: simulated.LateCommit, Ops: []simulated.Op{simulated.OpCreate}, Delay: 25 * time.Second, Times: 1}
	for name, write := range map[string]intent.WriteType{"delete": intent.Delete, "upsert": intent.Upsert} {
		t.Run("by a later "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, simulated.Unique.Options(), nil)
				b.set(late)
				first := b.do(order("A-1", intent.Create))
				if first.Status != engine.StatusVerified || first.Sends != 2 {
					t.Fatalf("%+v%s", first, b.life(first.ID))
				}
				w := call(order("A-1", write), 2)
				if write == intent.Upsert {
					w.Expect = intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR"}
				}
				second := b.do(w)
				b.worked(time.Hour)
				if got := b.state(second.ID); got.Settlement != ledger.Verified || got.FirstSend.Sub(b.state(first.ID).LastSend) < simulated.DefaultHorizon {
					t.Errorf("%s, sent %s after the create%s", got.Phase(), got.FirstSend.Sub(b.state(first.ID).LastSend), b.life(second.ID))
				}
				if left := b.fieldsNow(); (left != nil) != (write == intent.Upsert) || left != nil && left["currency"] != "EUR" {
					t.Errorf("the record came back: %v%s", left, b.life(first.ID))
				}
			})
		})
	}
	t.Run("by another actor", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, simulated.Unique.Options(), nil)
			b.set(late)
			first := b.do(order("A-1", intent.Create))
			b.remove("A-1")
			b.worked(time.Hour)
			if got := b.state(first.ID); b.fieldsNow() == nil || got.State != ledger.Review {
				t.Errorf("%s, and there is %v%s", got.Phase(), b.fieldsNow(), b.life(first.ID))
			}
		})
	})
	t.Run("while a send hangs whose lease a clock step ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, simulated.Unique.Options(), nil)
			step := b.steps()
			b.do(order("A-0", intent.Create)) // this process hears the ledger's clock
			d := b.world.Destination()
			d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) {
				time.Sleep(28 * time.Second)
				b.set(late)
			}}
			hanging := b.engineOn(b.ledger, d, nil)
			go func() { _, _ = hanging.Do(t.Context(), order("A-1", intent.Create)) }()
			time.Sleep(time.Second)
			step(time.Hour)
			first := b.do(order("A-1", intent.Create))
			if first.Status != engine.StatusVerified || first.Sends != 2 {
				t.Fatalf("%+v%s", first, b.life(first.ID))
			}
			second := b.do(call(order("A-1", intent.Delete), 2))
			b.worked(time.Hour)
			if got := b.state(second.ID); got.Settlement != ledger.Verified || b.fieldsNow() != nil {
				t.Errorf("%s, and the record came back: %v%s%s", got.Phase(), b.fieldsNow(), b.life(first.ID), b.life(second.ID))
			}
		})
	})
	t.Run("by a process that has just begun, after a clock step", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, simulated.Unique.Options(), nil)
			step := b.steps()
			b.set(late)
			first := b.do(order("A-1", intent.Create))
			step(time.Hour)
			e := b.engineOn(b.ledger, b.world.Destination(), nil)
			if _, err := e.Do(t.Context(), call(order("A-1", intent.Delete), 2)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if left := b.fieldsNow(); left != nil {
				t.Errorf("the record came back: %v%s", left, b.life(first.ID))
			}
		})
	})
}
