package adaptertest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Order is what a message, or the input of a handler, holds.
type Order struct {
	ID     string `json:"order_id" readback:"key"`
	Amount int    `json:"amount_cents"`
}

// Charge returns the write of an order. Tool "held" needs approval.
func Charge(tool string, o Order) (intent.WriteIntent, error) {
	return intent.From(intent.WriteIntent{Tenant: "acme", Tool: tool, Destination: "orders", Kind: orders.Kind, Write: intent.Create}, o)
}

// Bench is an engine before a destination, in the process of the test.
type Bench struct {
	T      *testing.T
	World  *orders.World
	Ledger *ledger.Memory
	Engine *engine.Engine
	Down   atomic.Bool  // the ledger records no new write
	Lost   atomic.Int64 // how many it did not record
}

// NewBench makes a bench. Tool "held" needs approval, within a month.
func NewBench(t *testing.T) *Bench {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	b := &Bench{T: t, World: world, Ledger: ledger.NewMemory()}
	b.Engine = engine.New(outage{b.Ledger, b}, &reg, &engine.Options{Risks: []policies.RiskRule{{Tool: "held", Within: 30 * 24 * time.Hour}}})
	t.Cleanup(b.Engine.Close)
	return b
}

// outage is a ledger that is down at times.
type outage struct {
	ledger.Ledger
	bench *Bench
}

func (o outage) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	if o.bench.Down.Load() {
		o.bench.Lost.Add(1)
		return ledger.Record{}, false, ledger.ErrUnavailable
	}
	return o.Ledger.Reserve(ctx, r)
}

// Run runs the parts of a worker until the test ends, or stop is called.
func (b *Bench) Run(parts ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() {
			if err := part(ctx); err != nil {
				b.T.Error(err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	b.T.Cleanup(stop)
	return stop
}

// Eventually waits for a condition, two hours at most: it is for a bubble of synctest.
func (b *Bench) Eventually(what string, is func() bool) {
	b.T.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Hour); !is(); <-tick.C {
		if time.Now().After(deadline) {
			b.T.Fatal("not reached: " + what)
		}
	}
}

// Status waits until a write of an order has a status, and returns it.
func (b *Bench) Status(id string, is ledger.Status) (found ledger.Record) {
	b.T.Helper()
	b.Eventually(id+" is "+string(is), func() bool {
		for _, r := range b.All() {
			if r.Status() == is && strings.Contains(string(r.Intent), `"`+id+`"`) {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// All is the writes of the ledger.
func (b *Bench) All() []ledger.Record {
	b.T.Helper()
	all, err := b.Ledger.List(context.Background(), ledger.Filter{Tenant: "acme"})
	if err != nil {
		b.T.Fatal(err)
	}
	return all
}

// Decide decides what is in review or held.
func (b *Bench) Decide(id ledger.ID, word engine.Word) {
	b.T.Helper()
	if err := decide(b.Engine, id, word); err != nil {
		b.T.Fatal(err)
	}
}

func decide(e *engine.Engine, id ledger.ID, word engine.Word) error {
	ann := engine.As(context.Background(), engine.Principal{Name: "ann", Role: engine.RoleReviewer})
	_, err := e.Resolve(ann, "acme", id, engine.Decision{Word: word, By: "ann", Reason: "checked"})
	return err
}

// Once checks that each order is in the destination once.
func (b *Bench) Once(ids ...string) {
	b.T.Helper()
	for _, id := range ids {
		if n := len(b.World.Records(id)); n != 1 {
			b.T.Errorf("%d records of %s; want 1", n, id)
		}
	}
}
