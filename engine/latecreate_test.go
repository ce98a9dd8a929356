package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// conditionalCreates is a destination whose creates are repeated by the row conditional: it
// refuses one whose key is taken.
type conditionalCreates struct{ connectors.Connector }

func (c conditionalCreates) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if r.Intent.Write == intent.Create {
		r.Conditional = false // the destination refuses it by the key
	}
	return c.Connector.Write(ctx, r)
}

// conditionally makes creates and upserts use the row conditional.
func (b *bench) conditionally() {
	d := b.world.Destination()
	d.Connector = conditionalCreates{d.Connector}
	for kind, p := range d.Profiles {
		p.Unique, p.Conditional = []intent.WriteType{intent.Delete}, []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
		d.Profiles[kind] = p
	}
	b.engine = b.engineOn(b.ledger, d, nil)
}

// repeated returns the row by which a write was sent again, "" where it was not.
func (b *bench) repeated(id ledger.ID) (row string) {
	b.t.Helper()
	events, err := b.ledger.Events(b.t.Context(), "acme", id)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, ev := range events {
		if ev.Kind == ledger.EvAnnounced {
			row = ev.Rule
		}
	}
	return row
}

// A create was sent twice, since its first send was not answered. The record is deleted. Then
// the first send arrives, and its key is free again. An upsert that is conditional on there
// being no record makes it again likewise.
func TestADeletedRecordDoesNotComeBack(t *testing.T) {
	late := orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate, orders.OpUpsert}, Delay: 25 * time.Second, Times: 1}
	versioned := orders.Unique.Options()
	versioned.Versions = true
	for name, c := range map[string]struct {
		options      orders.Options
		conditional  bool
		first, write intent.WriteType
		row          string
	}{
		"by a later delete":                          {orders.Unique.Options(), false, intent.Create, intent.Delete, policies.RowUnique},
		"by a later upsert":                          {orders.Unique.Options(), false, intent.Create, intent.Upsert, policies.RowUnique},
		"by a later delete, of an upsert":            {orders.Unique.Options(), false, intent.Upsert, intent.Delete, policies.RowUnique},
		"by a later delete, conditional":             {versioned, true, intent.Create, intent.Delete, policies.RowConditional},
		"by a later upsert, conditional":             {versioned, true, intent.Create, intent.Upsert, policies.RowConditional},
		"by a later delete, of a conditional upsert": {versioned, true, intent.Upsert, intent.Delete, policies.RowConditional},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.options, nil)
				if c.conditional {
					b.conditionally()
				}
				b.set(late)
				first := b.do(order("A-1", c.first))
				if row := b.repeated(first.ID); first.Status != ledger.Verified || first.Sends != 2 || row != c.row {
					t.Fatalf("by the row %q: %+v%s", row, first, b.life(first.ID))
				}
				w := call(order("A-1", c.write), 2)
				if c.write == intent.Upsert {
					w.Expect = intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR"}
				}
				second := b.do(w)
				b.worked(time.Hour)
				if got := b.state(second.ID); got.Settlement != ledger.Verified || got.FirstSend.Sub(b.state(first.ID).LastSend) < orders.DefaultHorizon {
					t.Errorf("%s, sent %s after the first write%s", got.Phase(), got.FirstSend.Sub(b.state(first.ID).LastSend), b.life(second.ID))
				}
				if left := b.fieldsNow(); (left != nil) != (c.write == intent.Upsert) || left != nil && left["currency"] != "EUR" {
					t.Errorf("the record came back: %v%s", left, b.life(first.ID))
				}
			})
		})
	}
	for name, conditional := range map[string]bool{"by another actor": false, "by another actor, conditional": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, versioned, nil)
				if conditional {
					b.conditionally()
				}
				b.set(late)
				first := b.do(order("A-1", intent.Create))
				b.remove("A-1")
				b.worked(time.Hour)
				if got := b.state(first.ID); b.fieldsNow() == nil || got.State != ledger.Review {
					t.Errorf("%s, and there is %v%s", got.Phase(), b.fieldsNow(), b.life(first.ID))
				}
			})
		})
	}
	t.Run("while a send hangs whose lease a clock step ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			step := b.steps()
			b.do(order("A-0", intent.Create)) // this process reads the ledger's clock
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
			if first.Status != ledger.Verified || first.Sends != 2 {
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
			b := newBench(t, orders.Unique.Options(), nil)
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
