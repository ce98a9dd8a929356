package engine_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// The only send of a create is not answered and arrives late. Meanwhile the record of another
// write of ours is in the way. If the create were called "not applied" at once, a delete of
// that record would proceed, and the late send would apply to the free key.
func TestNotAppliedIsReportedAfterTheHorizon(t *testing.T) {
	late := orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 25 * time.Second, Times: 1}
	second := func() intent.WriteIntent {
		w := order("A-1", intent.Create)
		w.Workflow, w.Expect = "another", intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR"}
		return w
	}
	check := func(t *testing.T, b *bench, out engine.Outcome) {
		t.Helper()
		b.worked(time.Minute) // before any recheck
		if left := b.fieldsNow(); left != nil {
			t.Errorf("%s, and its record is there: %v%s", b.state(out.ID).Phase(), left, b.life(out.ID))
		}
	}
	t.Run("the record is deleted by a write of ours", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			b.do(order("A-1", intent.Create))
			b.set(late)
			out := b.do(second())
			if out.Status != ledger.NotApplied {
				t.Fatalf("%+v%s", out, b.life(out.ID))
			}
			b.do(call(order("A-1", intent.Delete), 2))
			check(t, b, out)
		})
	})
	t.Run("the record is removed by another actor", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			b.do(order("A-1", intent.Create))
			b.set(late)
			out := b.do(second())
			b.remove("A-1")
			check(t, b, out)
		})
	})
	t.Run("its maker is being undone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			first := b.do(compensable(order("A-1", intent.Create)))
			b.set(late)
			w := second()
			done := make(chan engine.Outcome)
			go func() { done <- b.do(w) }()
			time.Sleep(time.Second) // the create is in progress, first in its queue
			go func() { _, _ = b.engine.Undo(context.Background(), "acme", first.ID, unwanted) }()
			out := <-done
			check(t, b, out)
		})
	})
}

// A lagging read shows a record that is deleted since: a create of it is not called verified
// without a send.
func TestAReadThatLagsShowsNoRecordOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		b.do(order("A-1", intent.Create))
		time.Sleep(time.Minute)
		b.remove("A-1") // by another actor
		w := order("A-1", intent.Create)
		w.Workflow = "another"
		out := b.do(w)
		b.worked(time.Hour)
		if got := b.state(out.ID); got.Settlement == ledger.Verified && b.fieldsNow() == nil {
			t.Errorf("%s after %d sends, and there is no record%s", got.Phase(), got.Sends, b.life(out.ID))
		}
	})
}

// The second lost send has a shorter lease than the first, which may still be in force.
func TestASecondLostSendDoesNotShortenTheFirst(t *testing.T) {
	late := orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 25 * time.Second, Times: 1}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		step := b.steps()
		b.do(order("A-0", intent.Create))
		d := b.world.Destination()
		// One process permits a send ten minutes, by its own configuration (the others have the
		// new one), and it hangs for as long.
		p := d.Profiles[orders.Kind]
		p.SendTimeout = 10 * time.Minute
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) {
			time.Sleep(9 * time.Minute)
			b.set(late)
		}}
		hanging := b.engineOn(b.ledger, d, nil)
		go func() { _, _ = hanging.Do(context.Background(), order("A-1", intent.Create)) }()
		time.Sleep(time.Second)
		step(time.Hour)
		b.do(order("A-2", intent.Create)) // this process notices
		// Another process takes over, repeats, and dies right after its announcement.
		m := &mortal{Ledger: b.ledger, Connector: b.world.Destination().Connector, settled: func(ledger.Record) {}}
		d2 := b.world.Destination()
		d2.Connector = m
		m.doom(4, "before")
		if _, err := b.engineOn(m, d2, nil).Do(context.Background(), order("A-1", intent.Create)); err == nil {
			t.Fatal("the process did not die")
		}
		time.Sleep(2 * time.Minute)
		first := b.do(order("A-1", intent.Create))
		second := b.do(call(order("A-1", intent.Delete), 2))
		b.worked(20 * time.Minute)
		if left := b.fieldsNow(); left != nil {
			t.Errorf("the record came back: %v%s%s", left, b.life(first.ID), b.life(second.ID))
		}
	})
}

// The clock steps by more than a day, so that all rechecks are made at once. A delete still
// finds the create whose send may arrive.
func TestAStepOverAllRechecksEndsNoWait(t *testing.T) {
	late := orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 25 * time.Second, Times: 1}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		step := b.steps()
		b.set(late)
		first := b.do(order("A-1", intent.Create))
		step(25 * time.Hour)
		b.worked(time.Second) // the rechecks are made
		b.do(call(order("A-1", intent.Delete), 2))
		b.worked(100 * time.Hour)
		if left := b.fieldsNow(); left != nil {
			t.Errorf("the record came back: %v; the create is %s%s", left, b.state(first.ID).Phase(), b.life(first.ID))
		}
	})
}

// A record that has the stamp of a write that was never sent is not that write's.
func TestAWriteThatWasNeverSentMadeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		held := order("A-1", intent.Create)
		held.Risk = intent.RiskApprove
		if out := b.do(held); out.Status != ledger.StatusHeld {
			t.Fatalf("%+v", out)
		}
		b.seed(seeded, held.Stamp())
		w := order("A-1", intent.Create)
		w.Workflow = "another"
		out := b.do(w)
		if out.Status != ledger.StatusReview {
			t.Errorf("%s: %s%s", out.Status, out.Text, b.life(out.ID))
		}
	})
}

// A step of more than a day ends no wait for a send: the process has counted none of it.
func TestAStepOfMoreThanADayEndsNoWait(t *testing.T) {
	late := orders.Fault{Kind: orders.LateCommit, Delay: 25 * time.Second, Times: 1}
	t.Run("delete", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			step := b.steps()
			b.set(late)
			first := b.do(order("A-1", intent.Create))
			step(25 * time.Hour)
			b.do(call(order("A-1", intent.Delete), 2))
			time.Sleep(time.Minute)
			if left := b.fieldsNow(); left != nil {
				t.Errorf("the record came back: %v%s", left, b.life(first.ID))
			}
		})
	})
	t.Run("upsert", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			step := b.steps()
			b.set(late)
			done := make(chan engine.Outcome)
			go func() { done <- b.do(order("A-1", intent.Upsert)) }()
			time.Sleep(31 * time.Second) // sent twice, and waits for the horizon of the first send
			step(25 * time.Hour)
			second := call(order("A-1", intent.Upsert), 2)
			second.Expect = intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR"}
			go func() { b.worked(time.Minute) }()
			out := b.do(second)
			first := <-done
			b.worked(5 * time.Minute)
			if left := b.fieldsNow(); out.Status == ledger.Verified && left["currency"] != "EUR" {
				t.Errorf("%s, and there is %v%s%s", b.state(out.ID).Phase(), left, b.life(first.ID), b.life(out.ID))
			}
		})
	})
}

// deletesLate deletes the record with the business key, 25 seconds after the call ended with an
// error.
type deletesLate struct {
	connectors.Connector
	b   *bench
	act func() // of another actor, meanwhile
}

func (d deletesLate) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if r.Intent.Write != intent.Delete {
		return d.Connector.Write(ctx, r)
	}
	d.act()
	go func() {
		time.Sleep(25 * time.Second)
		d.b.remove("A-1")
	}()
	return connectors.Receipt{}, errors.New("no answer")
}

// The only send of a write is not answered and arrives late. Meanwhile another actor makes the
// same change, so that a read shows it. The next write of the record must come after the late
// send, which would otherwise undo it.
func TestAnothersEffectDoesNotSettleASendUnderWay(t *testing.T) {
	late := func(op orders.Op) orders.Fault {
		return orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{op}, Delay: 25 * time.Second, Times: 1}
	}
	declared := order("A-1", intent.Update).Expect
	theirs := intent.Fields{"order_id": "A-1"}
	maps.Copy(theirs, declared)
	next := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR"}
	noted := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR", "note": "theirs"}
	for name, c := range map[string]struct {
		class orders.Class
		first intent.WriteType
		act   func(*bench)
		then  intent.WriteType
		want  intent.Fields
	}{
		"a delete by the key":      {orders.Plain, intent.Delete, func(b *bench) { b.remove("A-1") }, intent.Create, next},
		"the same, native":         {orders.Native, intent.Delete, func(b *bench) { b.remove("A-1") }, intent.Create, next},
		"an update":                {orders.Plain, intent.Update, func(b *bench) { b.edit(declared) }, intent.Update, noted},
		"a create without a stamp": {orders.Unique, intent.Create, func(b *bench) { b.seed(theirs, "") }, intent.Delete, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := c.class.Options()
				o.Stamps = false
				b := newBench(t, o, nil)
				if c.first != intent.Create {
					b.seed(seeded, "")
				}
				time.Sleep(time.Minute)
				if c.first == intent.Delete {
					d := b.world.Destination()
					d.Connector = deletesLate{d.Connector, b, func() { c.act(b) }}
					b.engine = b.engineOn(b.ledger, d, nil)
				} else {
					b.set(late(orders.Op(c.first)))
					b.meddle(c.first, func() { c.act(b) })
				}
				first := b.do(order("A-1", c.first))
				w := call(order("A-1", c.then), 2)
				if c.want != nil {
					w.Expect = next
				}
				out := b.do(w)
				b.worked(30 * time.Second) // before any recheck
				got := b.fieldsNow()
				if out.Status != ledger.Verified || !cmp.Equal(got, c.want) {
					t.Errorf("%s, and then %s: %v, want %v%s%s", first.Status, out.Status, got, c.want, b.life(first.ID), b.life(out.ID))
				}
			})
		})
	}
}

// hooked lets another actor act before and after the nth send of a write type.
type hooked struct {
	*orders.Connector
	of            intent.WriteType
	n             int
	before, after map[int]func()
}

func (h *hooked) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if r.Intent.Write != h.of {
		return h.Connector.Write(ctx, r)
	}
	h.n++
	n := h.n
	if act := h.before[n]; act != nil {
		act()
	}
	receipt, err := h.Connector.Write(ctx, r)
	if act := h.after[n]; act != nil {
		act()
	}
	return receipt, err
}

func (b *bench) hook(of intent.WriteType, before, after map[int]func()) {
	d := b.world.Destination()
	d.Connector = &hooked{Connector: d.Connector.(*orders.Connector), of: of, before: before, after: after}
	b.engine = b.engineOn(b.ledger, d, nil)
}

func lateCommit(w intent.WriteType) orders.Fault {
	return orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.Op(w)}, Delay: 25 * time.Second, Times: 1}
}

// Two sends under a native key are not answered, and neither has arrived, while another actor
// makes the same change. The late send would change the effect of the next write.
func TestAKeyThatNoSendUsedUpSettlesNothing(t *testing.T) {
	next := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR"}
	noted := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR", "note": "theirs"}
	declared := order("A-1", intent.Update).Expect
	theirs := intent.Fields{"order_id": "A-1"}
	maps.Copy(theirs, declared)
	t.Run("update", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := orders.Native.Options()
			o.Stamps = false
			b := newBench(t, o, nil)
			b.seed(seeded, "")
			time.Sleep(time.Minute)
			b.set(lateCommit(intent.Update))
			b.hook(intent.Update, nil, map[int]func(){
				1: func() {
					b.set(orders.Fault{Kind: orders.DroppedBefore, Ops: []orders.Op{orders.OpUpdate}, Times: 1})
				},
				2: func() { b.edit(declared) },
			})
			first := b.do(order("A-1", intent.Update))
			w := call(order("A-1", intent.Update), 2)
			w.Expect = next
			out := b.do(w)
			b.worked(30 * time.Second)
			if got := b.fieldsNow(); out.Status != ledger.Verified || !cmp.Equal(got, noted) {
				t.Errorf("%s (%d sends), then %s: %v, want %v%s%s", first.Status, first.Sends, out.Status, got, noted, b.life(first.ID), b.life(out.ID))
			}
		})
	})
	t.Run("create and delete", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := orders.Native.Options()
			o.Stamps, o.Unique = false, true
			b := newBench(t, o, nil)
			b.set(lateCommit(intent.Create))
			b.hook(intent.Create, map[int]func(){2: func() { b.seed(theirs, "") }}, nil)
			first := b.do(order("A-1", intent.Create))
			out := b.do(call(order("A-1", intent.Delete), 2))
			b.worked(30 * time.Second)
			if got := b.fieldsNow(); out.Status != ledger.Verified || got != nil {
				t.Errorf("%s (%d sends), then %s: %v%s%s", first.Status, first.Sends, out.Status, got, b.life(first.ID), b.life(out.ID))
			}
		})
	})
}

// The condition of the upsert is that there is no record. It is true again after a delete of
// ours, and the late send would make the record again.
func TestAConditionOfAbsenceHoldsAgainAfterADelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := intent.Fields{"order_id": "A-1"}
		maps.Copy(theirs, order("A-1", intent.Upsert).Expect)
		o := orders.Unique.Options()
		o.Stamps, o.Versions = false, true
		b := newBench(t, o, nil)
		b.set(lateCommit(intent.Upsert))
		b.hook(intent.Upsert, nil, map[int]func(){1: func() { b.seed(theirs, "") }})
		first := b.do(order("A-1", intent.Upsert))
		out := b.do(call(order("A-1", intent.Delete), 2))
		b.worked(30 * time.Second)
		if got := b.fieldsNow(); out.Status != ledger.Verified || got != nil {
			t.Errorf("%s (%d sends), then %s: %v%s%s", first.Status, first.Sends, out.Status, got, b.life(first.ID), b.life(out.ID))
		}
	})
}
