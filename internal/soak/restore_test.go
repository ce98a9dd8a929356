//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

var drilled = flag.Int("soak.drill", 200, "how many writes TestRestoreDrill makes for each class of destination")

// drill is a run of writes, half of which the ledger loses.
type drill struct {
	t     *testing.T
	world *orders.World
	dest  connectors.Destination
	n     int
}

func newDrill(t *testing.T, class orders.Class, n int) *drill {
	o := class.Options()
	o.Horizon, o.Seed = connectors.Within(3*time.Second), 7
	if class == orders.Lagging {
		o.Lags, o.Settle = []time.Duration{0, 200 * time.Millisecond}, connectors.Within(time.Second)
	}
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []orders.Fault{
		{Kind: orders.LostAnswer, Chance: 0.1}, {Kind: orders.DroppedBefore, Chance: 0.05}, {Kind: orders.Throttled, Chance: 0.05, Delay: time.Second},
	} {
		if err := world.Set(f); err != nil {
			t.Fatal(err)
		}
	}
	d := &drill{t: t, world: world, dest: world.Destination(), n: n}
	p := d.dest.Profiles[orders.Kind]
	p.FreshKeys = true // no read precedes a first send
	d.dest.Profiles = map[string]connectors.Profile{orders.Kind: p}
	return d
}

func (d *drill) write(i int) intent.WriteIntent {
	id := fmt.Sprintf("A-%d", i)
	return intent.WriteIntent{Tenant: "acme", Workflow: "wf-" + id, Step: "pay", Tool: "pay", Destination: "orders", Kind: orders.Kind,
		Key: intent.Fields{"order_id": id}, Write: intent.Create, Expect: intent.Fields{"amount_cents": json.Number(strconv.Itoa(i)), "currency": "USD"}}
}

// on runs an engine and a worker on a ledger while do runs.
func (d *drill) on(l ledger.Ledger, do func(*engine.Engine)) {
	d.t.Helper()
	var reg connectors.Registry
	if err := reg.Register("orders", d.dest); err != nil {
		d.t.Fatal(err)
	}
	e := engine.New(l, &reg, nil)
	ctx, end := context.WithCancel(d.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := e.Work(ctx, nil); err != nil {
			d.t.Error(err)
		}
	})
	do(e)
	end()
	wg.Wait()
	e.Close()
}

// ask asks for writes and waits until each is settled or in review.
func (d *drill) ask(e *engine.Engine, from, to int) (ends map[ledger.Status]int) {
	d.t.Helper()
	next := make(chan int)
	ends = make(map[ledger.Status]int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(d.t.Context(), 4*time.Minute)
	defer cancel()
	for range 64 {
		wg.Go(func() {
			for i := range next {
				out, err := e.Do(ctx, d.write(i))
				if err != nil {
					d.t.Error(err)
				}
				mu.Lock()
				ends[out.Status]++
				mu.Unlock()
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	return ends
}

// firstHalf makes writes that the backup has, of which the last are queued.
func (d *drill) firstHalf(l ledger.Ledger) {
	d.t.Helper()
	d.on(l, func(e *engine.Engine) { d.ask(e, 0, d.n*2/5) })
	var reg connectors.Registry
	if err := reg.Register("orders", d.dest); err != nil {
		d.t.Fatal(err)
	}
	e := engine.New(l, &reg, nil)
	defer e.Close()
	for i := d.n * 2 / 5; i < d.n/2; i++ {
		if _, err := e.Enqueue(d.t.Context(), d.write(i)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// recovered records the missing time, has all callers ask again, and checks that each write had its
// effect once and is accounted for.
func (d *drill) recovered(l *postgres.Ledger, since time.Time) {
	d.t.Helper()
	before := len(d.world.Effects())
	if _, err := ledger.RecordRestore(d.t.Context(), l, since, "ann", "a drill"); err != nil {
		d.t.Fatal(err)
	}
	began := time.Now()
	var ends map[ledger.Status]int
	d.on(l, func(e *engine.Engine) { ends = d.ask(e, 0, d.n) })
	known, tenants := make(map[string]bool), 0
	f := ledger.Filter{Tenant: "acme", Limit: 1000}
	for {
		recs, err := l.List(d.t.Context(), f)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, r := range recs {
			w, err := intent.DecodeStored(r.Intent)
			if err != nil {
				d.t.Fatal(err)
			}
			known[w.Stamp()], tenants = true, tenants+1
		}
		if len(recs) < f.Limit {
			break
		}
		f.Before = recs[len(recs)-1].ID
	}
	made, unknown := make(map[string]int), 0
	for _, e := range d.world.Effects() {
		if !e.Applied() {
			continue
		}
		made[e.OrderID]++
		if !known[e.Stamp] {
			unknown++
		}
	}
	twice, none := 0, 0
	for i := range d.n {
		switch n := made[fmt.Sprintf("A-%d", i)]; {
		case n > 1:
			twice++
		case n == 0:
			none++
		}
	}
	d.t.Logf("%d writes, %d effects before the recovery and %d after it, %d twice, %d not made; ends %v; %d writes in the ledger; %s", d.n, before, len(d.world.Effects()), twice, none, ends, tenants, time.Since(began).Round(time.Second))
	if twice > 0 || unknown > 0 || tenants != d.n || none > ends[ledger.StatusReview] {
		d.t.Errorf("%d were made twice, %d effects are of no write in the ledger, and it has %d of %d writes", twice, unknown, tenants, d.n)
	}
	if ends[ledger.Verified]+ends[ledger.StatusReview] != d.n || ends[ledger.StatusReview] > d.n/100 {
		d.t.Errorf("%v; want each verified or, of one in a hundred at most, in review", ends)
	}
}

// A ledger is restored to the middle of a run from a base backup and archived log, and every caller
// asks again for everything.
func TestRestoreDrill(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Settings: pgtest.Archiving})
	classes := []orders.Class{orders.Plain, orders.Native, orders.Lagging}
	if testing.Short() {
		classes = classes[:1]
	}
	for _, class := range classes {
		t.Run(string(class), func(t *testing.T) {
			d := newDrill(t, class, *drilled)
			name, err := server.CreateDatabase()
			if err != nil {
				t.Fatal(err)
			}
			l, err := postgres.Open(t.Context(), server.DSN(name), nil)
			if err != nil {
				t.Fatal(err)
			}
			backup, err := server.Backup()
			if err != nil {
				t.Fatal(err)
			}
			d.firstHalf(l)
			_, middle, err := l.Notes(t.Context(), "none") // the database's clock
			if err != nil {
				t.Fatal(err)
			}
			d.on(l, func(e *engine.Engine) { d.ask(e, d.n*2/5, d.n*19/20) })
			l.Close()
			if err := backup.RestoreTo(middle, server); err != nil {
				t.Fatal(err, backup.Log())
			}
			restored, err := postgres.Open(t.Context(), backup.DSN(name), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer restored.Close()
			if queued, err := restored.List(t.Context(), ledger.Filter{Tenant: "acme", States: []ledger.State{ledger.Queued}, Limit: 1000}); err != nil || len(queued) == 0 {
				t.Fatalf("%d writes are queued in what was restored, %v; want those that were sent later", len(queued), err)
			}
			d.recovered(restored, middle)
			if err := backup.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A standby that lags takes over: the primary's last commits are lost.
func TestFailoverDrill(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	d := newDrill(t, orders.Plain, min(*drilled, 200))
	name, err := server.CreateDatabase()
	if err != nil {
		t.Fatal(err)
	}
	l, err := postgres.Open(t.Context(), server.DSN(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	standby, err := server.Standby(pgtest.StandbyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.firstHalf(l)
	_, since, err := l.Notes(t.Context(), "none")
	if err = errors.Join(err, standby.CaughtUp(server), standby.Kill()); err != nil { // it receives nothing more
		t.Fatal(err)
	}
	d.on(l, func(e *engine.Engine) { d.ask(e, d.n*2/5, d.n*19/20) })
	l.Close()
	if err := errors.Join(server.Kill(), standby.Recover()); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	promoted, err := postgres.Open(t.Context(), standby.DSN(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer promoted.Close()
	d.recovered(promoted, since)
}
