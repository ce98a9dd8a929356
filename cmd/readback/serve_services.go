package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/telemetry"
)

// grace is how long a stopping worker lets its sends and reads end: longer than one send
// and one read may take by default. What is not done by then is taken up by another
// worker when its lease has ended.
const grace = 50 * time.Second

// services are the service below the APIs of a server, and its parts.
type services struct {
	app     *opened
	reg     *connectors.Registry
	engine  *engine.Engine
	gate    *gate.Gate
	sagas   *saga.Runner
	service *service.Service
	meter   *metrics.Meter
	events  *access.Events
	// beside are further workers, by what they do.
	beside map[string]func(context.Context) error
}

// furnish makes the services, at an address that callers know. They own d from then on,
// unless it fails.
func (a *app) furnish(ctx context.Context, d *opened, reg *connectors.Registry, where string) (*services, error) {
	if d.locked != nil {
		return nil, d.locked
	}
	store, clean := d.documents(reg)
	o, err := d.gateOptions()
	if err != nil {
		return nil, err
	}
	if err := d.retention(reg); err != nil {
		return nil, err
	}
	if err := cmp.Or(d.stand(ctx, reg), a.startTelemetry(d, reg)); err != nil {
		return nil, err
	}
	h := &services{app: d, reg: reg, meter: d.meter(reg), beside: map[string]func(context.Context) error{}}
	h.events = d.events(a.time)
	h.beside["the security events"] = h.events.Work
	h.engine = d.engine(reg, h.counting(), false)
	o.Reader, o.BaseURL = h.engine, where+"/api/v1"
	h.gate = gate.New(store, redacting(o, clean))
	h.sagas = saga.New(store, h.engine, redactingSagas(&saga.Options{Window: idempotencyWindow, Logger: d.log}, clean))
	parts := service.Parts{Writes: h.engine, Ledger: d.ledger, Registry: reg, Sagas: h.sagas, Steps: h.gate, Types: d.types(), Events: h.events, Logger: d.log}
	if clean != nil {
		parts.Redaction = clean
	}
	h.service = service.New(parts)
	seal, err := a.sealing(d)
	if err = cmp.Or(err, h.addNotifications(where)); err != nil {
		h.engine.Close()
		return nil, err
	}
	if seal != nil {
		h.beside["the audit chain"] = seal
	}
	return h, nil
}

// events records security events in the ledger.
func (d *opened) events(now func() time.Time) *access.Events {
	return access.NewEvents(d.ledger, d.tenant, d.log, now)
}

// counting observes the engine: it counts for metrics, and counts repeats for the pages too and
// records them with their caller.
func (h *services) counting() func(engine.Activity) {
	c := replays.New(h.app.ledger, h.app.log)
	h.beside["the count of repeats"] = c.Work
	return telemetry.Tee(h.meter.Observe, func(a engine.Activity) {
		if r := a.Record; a.Kind == engine.ActivityRepeated {
			c.Repeated(r)
			h.events.Record(access.Event{Event: access.EventReplayed, Tenant: r.Tenant, Name: r.RequestedBy, Write: string(r.ID)})
		}
	})
}

// addNotifications makes the sender of webhooks, if any are configured.
func (h *services) addNotifications(where string) error {
	work, err := h.app.telemetry(h.engine, where)
	if work != nil {
		h.beside["the webhooks"] = work
	}
	return err
}

// telemetry is the work of sending webhooks, with links to a page at an address, "" for
// none; nil where no hook is configured.
func (d *opened) telemetry(e *engine.Engine, where string) (func(context.Context) error, error) {
	hooks := d.config.Hooks()
	if len(hooks) == 0 {
		return nil, nil
	}
	return webhooks.New(d.ledger, e, webhooks.Options{Hooks: hooks, Tenant: d.tenant, ReviewUI: where, Logger: d.log}).Work, nil
}

// types is the type of each destination.
func (d *opened) types() map[string]string {
	all := make(map[string]string, len(d.config.Destinations))
	for _, each := range d.config.Destinations {
		all[each.Name] = each.Type
	}
	return all
}

// works is work that runs until it is stopped.
type works struct {
	wg     sync.WaitGroup
	ctx    context.Context
	end    context.CancelFunc
	failed chan error // the first that failed, if any
	// grace is how long work in hand may last after the stop.
	grace time.Duration
}

// work starts a worker: it does all due work and background work. It continues when ctx
// ends, until [services.rest].
func (h *services) work(ctx context.Context, parallel int, grace time.Duration) *works {
	w := &works{failed: make(chan error, 1), grace: grace}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.begin("the gate", func() error { return h.gate.Work(w.ctx) })
	w.begin("the sagas", func() error { return h.sagas.Work(w.ctx) })
	for what, work := range h.beside {
		w.begin(what, func() error { return work(w.ctx) })
	}
	w.wg.Go(func() { h.app.pruneNowAndThen(w.ctx) })
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
	default: // the first error is kept
	}
}

// rest stops the work, and closes everything. Work in hand, of workers and of callers,
// gets its grace; what lasts longer stays in the ledger, which is then not closed.
func (h *services) rest(w *works) error {
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

// close closes everything. Work is stopped before.
func (h *services) close() {
	h.engine.Close()
	h.app.close()
	h.app.log.Info("stopped")
}

// address is the address at which callers reach a server with a listen address.
func (d *opened) address(listening string) string {
	return cmp.Or(d.config.Server.PublicURL, listening)
}
