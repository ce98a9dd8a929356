package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/telemetry"
)

// Grace is how long a stopping worker lets its sends and reads end: longer than one send
// and one read may take by default. What is not done by then is taken up by another
// worker when its lease has ended.
const Grace = 50 * time.Second

// ErrLate reports that work was still in hand when its grace had ended.
var ErrLate = errors.New("stopped with work still in hand")

// Services are the service below the APIs of a server, and its parts.
type Services struct {
	Instance *Instance
	reg      *connectors.Registry
	engine   *engine.Engine
	gate     *gate.Gate
	sagas    *saga.Runner
	Service  *service.Service
	meter    *metrics.Meter
	events   *access.Events
	// background are further workers, by what they do.
	background map[string]func(context.Context) error
}

// NewServices makes the services, at an address that callers know. They own d from then on,
// unless it fails.
func NewServices(ctx context.Context, d *Instance, reg *connectors.Registry, where string) (*Services, error) {
	if d.Locked != nil {
		return nil, d.Locked
	}
	o, err := d.GateOptions()
	if err != nil {
		return nil, err
	}
	if err := d.CheckRetention(reg); err != nil {
		return nil, err
	}
	if err := d.Start(ctx, reg); err != nil {
		return nil, err
	}
	h := &Services{Instance: d, reg: reg, meter: d.meter(reg), background: map[string]func(context.Context) error{}}
	h.events = d.Events()
	h.background["the security events"] = h.events.Work
	h.engine = d.Engine(reg, h.observer(), false)
	o.Reader, o.BaseURL = h.engine, where+"/api/v1"
	h.gate = d.Gate(reg, o)
	h.sagas = d.Sagas(reg, h.engine)
	parts := service.Parts{Writes: h.engine, Ledger: d.Ledger, Registry: reg, Sagas: h.sagas, Steps: h.gate, Types: d.types(), Events: h.events, Logger: d.Log}
	if _, clean := d.Documents(reg); clean != nil {
		parts.Redaction = clean
	}
	h.Service = service.New(parts)
	seal, err := d.Sealing()
	if err = cmp.Or(err, h.addWebhooks(where)); err != nil {
		h.engine.Close()
		return nil, err
	}
	if seal != nil {
		h.background["the audit chain"] = seal
	}
	return h, nil
}

// Events records security events in the ledger.
func (d *Instance) Events() *access.Events {
	return access.NewEvents(d.Ledger, d.Tenant, d.Log, func() time.Time { return d.Time(time.Now()) })
}

// observer counts the activity of the engine for metrics, and repeats for the review UI
// as well. It records each repeat with its caller.
func (h *Services) observer() func(engine.Activity) {
	c := replays.New(h.Instance.Ledger, h.Instance.Log)
	h.background["the count of repeats"] = c.Work
	return telemetry.Tee(h.meter.Observe, func(a engine.Activity) {
		if r := a.Record; a.Kind == engine.ActivityRepeated {
			c.Repeated(r)
			h.events.Record(access.Event{Event: access.EventReplayed, Tenant: r.Tenant, Name: r.RequestedBy, Write: string(r.ID)})
		}
	})
}

// addWebhooks makes the sender of webhooks, if any are configured.
func (h *Services) addWebhooks(where string) error {
	work, err := h.Instance.Webhooks(h.engine, where)
	if work != nil {
		h.background["the webhooks"] = work
	}
	return err
}

// Webhooks is the work of sending webhooks, with links to a page at an address, "" for
// none; nil where no hook is configured.
func (d *Instance) Webhooks(e *engine.Engine, where string) (func(context.Context) error, error) {
	hooks := d.Config.Hooks()
	if len(hooks) == 0 {
		return nil, nil
	}
	return webhooks.New(d.Ledger, e, webhooks.Options{Hooks: hooks, Tenant: d.Tenant, ReviewUI: where, Logger: d.Log}).Work, nil
}

// types is the type of each destination.
func (d *Instance) types() map[string]string {
	all := make(map[string]string, len(d.Config.Destinations))
	for _, each := range d.Config.Destinations {
		all[each.Name] = each.Type
	}
	return all
}

// Work is work that runs until it is stopped.
type Work struct {
	wg     sync.WaitGroup
	ctx    context.Context
	end    context.CancelFunc
	Failed chan error // the first that failed, if any
	// grace is how long work in hand may last after the stop.
	grace time.Duration
}

// Start starts a worker: it does all due work and background work. It continues when ctx
// ends, until [Services.Stop].
func (h *Services) Start(ctx context.Context, parallel int, grace time.Duration) *Work {
	w := &Work{Failed: make(chan error, 1), grace: grace}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.begin("the gate", func() error { return h.gate.Work(w.ctx) })
	w.begin("the sagas", func() error { return h.sagas.Work(w.ctx) })
	for what, work := range h.background {
		w.begin(what, func() error { return work(w.ctx) })
	}
	w.wg.Go(func() { h.Instance.PruneRegularly(w.ctx) })
	w.begin("the engine", func() error { return h.engine.Work(w.ctx, &engine.WorkOptions{Parallel: parallel}) })
	return w
}

func (w *Work) begin(what string, work func() error) {
	w.wg.Go(func() {
		if err := work(); err != nil && w.ctx.Err() == nil {
			w.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

func (w *Work) fail(err error) {
	select {
	case w.Failed <- err:
	default: // the first error is kept
	}
}

// Stop stops the work, and closes everything. Work in hand, of workers and of callers,
// gets its grace; what lasts longer stays in the ledger, which is then not closed.
func (h *Services) Stop(w *Work) error {
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
		h.Close()
		return nil
	case <-late.C: // the ledger is still in use, and ends with the process
		return fmt.Errorf("%w after %s: it is in the ledger and is taken up again when its lease has ended", ErrLate, w.grace)
	}
}

// Close closes everything. Work is stopped before.
func (h *Services) Close() {
	h.engine.Close()
	h.Instance.Close()
	h.Instance.Log.Info("stopped")
}

// MCP makes the MCP server; c has the settings of this caller.
func (h *Services) MCP(c mcpapi.Config) (*mcpapi.Server, error) {
	c.Tools, c.Registry, c.Version, c.Logger = h.Instance.Config.MCP.Tools, h.reg, Built().Version, h.Instance.Log
	return mcpapi.New(h.Service, c)
}

// address is the address at which callers reach a server with a listen address.
func (d *Instance) address(listening string) string {
	return cmp.Or(d.Config.Server.PublicURL, listening)
}
