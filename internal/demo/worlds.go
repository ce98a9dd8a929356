package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const (
	// orderCount and priceCents are round numbers, which are easy to check.
	orderCount = 100
	priceCents = 1999
)

// World is the destination of one strategy after its run, for a later evaluation.
type World struct {
	Figures
	// URL is where the orders are served, for as long as the visit lasts: by a
	// process that has nothing but the destination's own log.
	URL string
	// Ledger is the file of readback's ledger; "" for the other strategies.
	Ledger string
	// Believed is the worker's belief about each order id: true means done, false means to be
	// reviewed.
	Believed map[string]bool
}

// Destination is the world as a registry wants it.
func (w World) Destination() (connectors.Destination, error) {
	c, err := orders.NewConnector(w.URL, ordersOptions(), nil)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// Declared are the writes that each strategy was to make, one for each order.
func Declared() []intent.WriteIntent {
	s := spec{Target: toOrders}
	var all []intent.WriteIntent
	for n := 1; n <= orderCount; n++ {
		all = append(all, s.intent(n))
	}
	return all
}

// Worlds runs naive retry, the plain ledger with kills and readback with kills
// against the orders, one after the other, and has each world visited when its
// run is over. The program must call [Child] first. The first error, one of visit
// too, ends it; the folder it makes is gone then.
func Worlds(ctx context.Context, visit func(context.Context, World) error) (err error) {
	dir, err := os.MkdirTemp("", "readback-worlds-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, t := range trials() {
		if t.target != toOrders || t.strategy != naiveRetry && !t.killed {
			continue
		}
		if err := t.visited(ctx, filepath.Join(dir, t.name), visit); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// visited makes one trial, and serves its world again for a visit.
func (t trial) visited(ctx context.Context, dir string, visit func(context.Context, World) error) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r := newRun(t, dir, orderCount, func(trial, int, int) {})
	f, err := r.toOrders(ctx)
	if err != nil {
		return err
	}
	w := World{Figures: f, Believed: map[string]bool{}}
	for i, e := range f.grid {
		w.Believed[orderID(i+1)] = e != endUnanswered && e != endReview && e != endOther
	}
	if t.strategy == readback {
		w.Ledger = r.spec.ledgerDB()
	}
	at := r.spec
	at.Role = roleDestination
	p, err := start(ctx, at)
	if err != nil {
		return err
	}
	url, err := p.out.ReadString('\n')
	if err == nil {
		w.URL = strings.TrimSpace(url)
		err = visit(ctx, w)
	}
	return errors.Join(err, p.stop())
}
