package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// house is what is behind the doors of a server: the office that they ask, and
// what that asks.
type house struct {
	desk   *desk
	reg    *connectors.Registry
	engine *engine.Engine
	gate   *workflow.Gate
	sagas  *saga.Runner
	office *office.Office
	meter  *metrics.Meter
	// beside are further workers, by what they do.
	beside map[string]func(context.Context) error
}

// furnish makes what is behind the doors, at an address that callers know. The
// desk is the house's from then on, unless it fails.
func (a *app) furnish(ctx context.Context, d *desk, reg *connectors.Registry, where string) (*house, error) {
	if d.locked != nil {
		return nil, d.locked
	}
	store, clean, ok := d.papers(reg)
	if !ok {
		return nil, errors.New("this ledger keeps no workflows")
	}
	o, err := d.gateOptions()
	if err != nil {
		return nil, err
	}
	if err := d.retention(reg); err != nil {
		return nil, err
	}
	if err := cmp.Or(d.stand(ctx, reg), a.tell(d, reg)); err != nil {
		return nil, err
	}
	h := &house{desk: d, reg: reg, meter: d.meter(reg), beside: map[string]func(context.Context) error{}}
	h.engine = d.engine(reg, h.counting())
	o.Look, o.BaseURL = h.engine, where+"/api/v1"
	h.gate = workflow.New(store, redacting(o, clean))
	h.sagas = saga.New(store, h.engine, redactingSagas(&saga.Options{Window: idempotencyWindow, Logger: d.log}, clean))
	parts := office.Parts{Writes: h.engine, Ledger: d.ledger, Registry: reg, Sagas: h.sagas, Steps: h.gate, Types: d.types(), Logger: d.log}
	if clean != nil {
		parts.Redaction = clean
	}
	h.office = office.New(parts)
	seal, err := a.sealing(d)
	if err = cmp.Or(err, h.tell(where)); err != nil {
		h.engine.Close()
		return nil, err
	}
	if seal != nil {
		h.beside["the audit chain"] = seal
	}
	return h, nil
}

// counting is told what the engine does: it counts for metrics, and repeats for
// the pages too.
func (h *house) counting() engine.Meter {
	notes, ok := h.desk.ledger.(ledger.Notes)
	if !ok {
		return h.meter
	}
	c := replays.New(notes, h.desk.log)
	h.beside["the count of repeats"] = c.Work
	return counted{h.meter, c}
}

// counted is a meter whose repeats are counted once more.
type counted struct {
	*metrics.Meter
	replays *replays.Counter
}

// Repeated implements [engine.RepeatMeter].
func (c counted) Repeated(r ledger.Record) {
	c.Meter.Repeated(r)
	c.replays.Repeated(r)
}

// tell makes what tells others of changes, where somebody is to be told.
func (h *house) tell(where string) error {
	work, err := h.desk.teller(h.engine, where)
	if work != nil {
		h.beside["the webhooks"] = work
	}
	return err
}

// teller is the work of telling others of changes, with links to a page that is
// served somewhere, "" for nowhere; nil where nobody is to be told.
func (d *desk) teller(e *engine.Engine, where string) (func(context.Context) error, error) {
	hooks := d.config.Hooks()
	if len(hooks) == 0 {
		return nil, nil
	}
	l, ok := d.ledger.(webhooks.Ledger)
	if !ok {
		return nil, errors.New("this ledger cannot tell what has changed, and webhooks are configured")
	}
	return webhooks.New(l, e, webhooks.Options{Hooks: hooks, Tenant: d.tenant, Desk: where, Logger: d.log}).Work, nil
}

// types says of which type each destination is.
func (d *desk) types() map[string]string {
	all := make(map[string]string, len(d.config.Destinations))
	for _, each := range d.config.Destinations {
		all[each.Name] = each.Type
	}
	return all
}

// works is work that goes on until it is ended.
type works struct {
	wg     sync.WaitGroup
	ctx    context.Context
	end    context.CancelFunc
	failed chan error // the first that did, if one does
	// grace is how long what is in hand may last when it is ended.
	grace time.Duration
}

// work begins to do what a worker does: whatever is due, and what goes on
// without anybody asking. It goes on when ctx ends, until [house.rest].
func (h *house) work(ctx context.Context, parallel int, grace time.Duration) *works {
	w := &works{failed: make(chan error, 1), grace: grace}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.begin("the gate", func() error { return h.gate.Work(w.ctx) })
	w.begin("the sagas", func() error { return h.sagas.Work(w.ctx) })
	for what, work := range h.beside {
		w.begin(what, func() error { return work(w.ctx) })
	}
	if h.desk.config.Retention.Keep > 0 {
		w.wg.Go(func() { h.desk.pruneNowAndThen(w.ctx) })
	}
	w.begin("the engine", func() error { return h.engine.Work(w.ctx, &engine.WorkOptions{Parallel: parallel}) })
	return w
}

func (w *works) begin(what string, work func() error) {
	w.wg.Go(func() {
		if err := work(); err != nil && w.ctx.Err() == nil {
			w.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

func (w *works) fail(err error) {
	select {
	case w.failed <- err:
	default: // the first says it
	}
}

// rest ends the work, and closes everything. What is in hand, of workers and of
// callers, is given its grace; what lasts longer stays in the ledger, which is then
// left as it is.
func (h *house) rest(w *works) error {
	w.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.engine.Close()
		w.wg.Wait()
	}()
	late := time.NewTimer(w.grace)
	defer late.Stop()
	select {
	case <-done:
		h.close()
		return nil
	case <-late.C: // the ledger is still in use, and ends with the process
		return fmt.Errorf("%w after %s: it is in the ledger and is taken up again when its lease has ended", errLate, w.grace)
	}
}

// close closes everything. Work is ended before.
func (h *house) close() {
	h.engine.Close()
	h.desk.close()
	h.desk.log.Info("stopped")
}

// address is where callers reach a server that listens somewhere.
func (d *desk) address(listening string) string {
	return cmp.Or(d.config.Server.PublicURL, listening)
}
