package probe

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// target is a simulated destination and its declaration.
type target struct {
	world *orders.World
	c     connectors.Connector
	p     connectors.Profile
}

// open makes a destination that is so and declares something else.
func open(t *testing.T, is, declares orders.Options) *target {
	t.Helper()
	w, err := orders.New(is)
	if err != nil {
		t.Fatal(err)
	}
	c, err := orders.NewConnector("http://orders.invalid", declares, orders.Transport(w))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Profiles()[orders.Kind]
	p.Destination = "orders"
	return &target{world: w, c: c, p: p}
}

// probe runs it; the destination's own store must be empty afterwards, and what
// it counted must be within what was declared.
func (g *target) probe(t *testing.T, ctx context.Context, o Options) (Report, error) {
	t.Helper()
	o.id = "testing1"
	declared, err := newRun(g.c, g.p, orders.Kind, o)
	if err != nil {
		t.Fatal(err)
	}
	most := declared.report.Writes
	rep, err := Run(ctx, g.c, g.p, orders.Kind, o)
	if sent, _ := g.world.Count(); sent > most || rep.Sent > most || rep.Writes != most {
		t.Errorf("%d writes reached the destination, %d were reported, %d declared beforehand, %d afterwards", sent, rep.Sent, most, rep.Writes)
	}
	<-time.After(time.Hour) // every send has arrived
	if n := g.there(); n != len(rep.Left) {
		t.Errorf("%d records are still there, %d are listed: %+v", n, len(rep.Left), rep.Left)
	}
	return rep, err
}

// there counts the samples that are there, by the destination's own account.
func (g *target) there() int {
	n, seen := 0, map[string]bool{}
	for _, e := range g.world.Effects() {
		if e.By == orders.ByRequest && strings.HasPrefix(e.OrderID, "readback-sample-") && !seen[e.OrderID] {
			seen[e.OrderID] = true
			n += len(g.world.Records(e.OrderID))
		}
	}
	return n
}

// weaker reports whether the result about something is weaker.
func weaker(rep Report, about string) bool {
	return slices.ContainsFunc(rep.Weaker, func(w string) bool { return strings.HasPrefix(w, about) })
}

// twisted is a connector with one lie of its own.
type twisted struct {
	*orders.Connector
	write  func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error)
	read   func(o *connectors.Observation)
	invert func(w *intent.WriteIntent) error
}

func (c *twisted) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if c.write != nil {
		return c.write(ctx, r, c.Connector)
	}
	return c.Connector.Write(ctx, r)
}

func (c *twisted) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	o, err := c.Connector.Read(ctx, q)
	if err == nil && c.read != nil {
		c.read(&o)
	}
	return o, err
}

func (c *twisted) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	inverse, err := c.Connector.Invert(w, before, after)
	if err == nil && c.invert != nil {
		err = c.invert(&inverse)
	}
	return inverse, err
}

func (g *target) twist(c *twisted) {
	c.Connector = g.c.(*orders.Connector)
	g.c = c
}
