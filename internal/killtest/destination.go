package killtest

import (
	"context"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// Order returns an intent that creates an order, without the names that an adapter sets.
func Order(id string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"status": "paid"},
	}
}

// Destination is a destination in the process of the test.
type Destination interface{ Destination() connectors.Destination }

// Registry returns the destination "orders".
func Registry(tb testing.TB, d Destination) *connectors.Registry {
	tb.Helper()
	reg := new(connectors.Registry)
	Must(tb, reg.Register("orders", d.Destination()))
	return reg
}

// World is a destination of the class Plain.
func World(tb testing.TB) *orders.World {
	tb.Helper()
	world, err := orders.New(orders.Plain.Options())
	Must(tb, err)
	return world
}

// Gate is a destination that holds its one send back until Open is closed.
type Gate struct {
	*orders.World
	Entered, Open chan struct{}
}

// NewGate puts a gate before a destination.
func NewGate(w *orders.World) Gate { return Gate{w, make(chan struct{}), make(chan struct{})} }

// Destination implements [Destination].
func (g Gate) Destination() connectors.Destination {
	d := g.World.Destination()
	d.Connector = gated{g.Connector(), g}
	return d
}

type gated struct {
	*orders.Connector
	gate Gate
}

// Write implements [connectors.Connector].
func (g gated) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	close(g.gate.Entered) // it panics at a second send
	<-g.gate.Open
	return g.Connector.Write(ctx, r)
}

// Distant is a destination of the class Unique, for benchmarks. Its calls take as long as those over a
// network.
type Distant struct {
	*orders.Connector
	world *orders.World
}

const latency = 20 * time.Millisecond

// NewDistant makes one.
func NewDistant(b *testing.B) Distant {
	b.Helper()
	o := orders.Unique.Options()
	o.Rollback = connectors.Bound{} // what it takes back would be read again later
	world, err := orders.New(o)
	Must(b, err)
	return Distant{world.Connector(), world}
}

// Destination implements [Destination].
func (d Distant) Destination() connectors.Destination {
	return connectors.Destination{Connector: d, Profiles: d.Profiles()}
}

// Write implements [connectors.Connector].
func (d Distant) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	<-time.After(latency)
	return d.Connector.Write(ctx, r)
}

// Read implements [connectors.Connector].
func (d Distant) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	<-time.After(latency)
	return d.Connector.Read(ctx, q)
}

// Unrecorded is what can be done without a ledger: it sends and reads back.
func (d Distant) Unrecorded(ctx context.Context, w intent.WriteIntent) error {
	_, err := d.Write(ctx, connectors.Request{Intent: w})
	if err == nil {
		_, err = d.Read(ctx, connectors.Query{Intent: w})
	}
	return err
}

// Report reports the runs a second and the calls of each, and fails the benchmark unless each run had
// one send and one effect.
func (d Distant) Report(b *testing.B, run string) {
	b.Helper()
	writes, reads := d.world.Count()
	if effects := len(d.world.Effects()); effects != b.N || writes != b.N {
		b.Errorf("%d effects of %d sends, want %d", effects, writes, b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), run+"s/s")
	b.ReportMetric(float64(writes+reads)/float64(b.N), "calls/"+run)
}
