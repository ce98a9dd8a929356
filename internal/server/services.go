package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/notify"
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

// Services are the workers of a process, and where it has APIs the service below them.
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
	o, err := d.GateOptions()
	if err != nil {
		return nil, err
	}
	h, err := newServices(ctx, d, reg, where, (*Services).observer)
	if err != nil {
		return nil, err
	}
	o.Reader, o.BaseURL = h.engine, where+"/api/v1"
	if d.Config.Server.ReviewUI {
		o.ReviewUI = where
	}
	h.gate = d.Gate(reg, o)
	h.background["the gate"] = h.gate.Work
	parts := service.Parts{Writes: h.engine, Ledger: d.Ledger, Registry: reg, Sagas: h.sagas, Steps: h.gate, Types: d.types(), Events: h.events, Logger: d.Log}
	if d.Config.Server.ReviewUI {
		parts.ReviewUI = where
	}
	if _, clean := d.Documents(reg); clean != nil {
		parts.Redaction = clean
	}
	h.Service = service.New(parts)
	if all := d.Config.Notifications; len(all) > 0 {
		h.background["the notifications"] = notify.New(notify.Options{Ledger: d.Ledger, Engine: h.engine, Service: h.Service,
			Notifications: all, ReviewUI: parts.ReviewUI, Logger: d.Log}).Work
	}
	return h, nil
}

// NewWorkers makes the workers of a process without APIs. They own d from then on, unless it
// fails.
func NewWorkers(ctx context.Context, d *Instance, reg *connectors.Registry) (*Services, error) {
	return newServices(ctx, d, reg, d.Config.Server.PublicURL, func(h *Services) func(engine.Activity) { return h.meter.Observe })
}

func newServices(ctx context.Context, d *Instance, reg *connectors.Registry, where string, observer func(*Services) func(engine.Activity)) (*Services, error) {
	if d.Locked != nil { // what sagas and the gate read or write is sealed
		return nil, d.Locked
	}
	if err := d.CheckRetention(reg); err != nil {
		return nil, err
	}
	if err := d.Start(ctx, reg); err != nil {
		return nil, err
	}
	h := &Services{Instance: d, reg: reg, meter: d.meter(reg), background: map[string]func(context.Context) error{}}
	h.engine = d.Engine(reg, observer(h), false)
	h.sagas = d.Sagas(reg, h.engine)
	seal, err := d.Sealing()
	if err != nil {
		h.engine.Close()
		return nil, err
	}
	if seal != nil {
		h.background["the audit chain"] = seal
	}
	if hooks := d.Config.Hooks(); len(hooks) > 0 {
		h.background["the webhooks"] = webhooks.New(d.Ledger, h.engine, webhooks.Options{Hooks: hooks, Tenant: d.Tenant, ReviewUI: where, Logger: d.Log}).Work
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
	h.events = h.Instance.Events()
	h.background["the security events"] = h.events.Work
	c := replays.New(h.Instance.Ledger, h.Instance.Log)
	h.background["the count of repeats"] = c.Work
	return telemetry.Tee(h.meter.Observe, func(a engine.Activity) {
		if r := a.Record; a.Kind == engine.ActivityRepeated {
			c.Repeated(r)
			h.events.Record(access.Event{Event: access.EventReplayed, Tenant: r.Tenant, Name: r.RequestedBy, Write: string(r.ID)})
		}
	})
}

// types is the type of each destination.
func (d *Instance) types() map[string]string {
	all := make(map[string]string, len(d.Config.Destinations))
	for _, each := range d.Config.Destinations {
		all[each.Name] = each.Type
	}
	return all
}

// Run does all due work and background work until ctx ends, a part fails or served has a
// result, and closes everything. shut then ends what else is served; nil for nothing. The work in
// hand, of workers and of callers, may last grace from then on; what lasts longer stays in the
// ledger, which is then not closed.
func (h *Services) Run(ctx context.Context, o engine.WorkOptions, grace time.Duration, served <-chan error, shut func()) error {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	failed := make(chan error, 1) // the first error
	var wg sync.WaitGroup
	begin := func(what string, work func(context.Context) error) {
		wg.Go(func() {
			if err := work(working); err != nil && working.Err() == nil {
				select {
				case failed <- fmt.Errorf("%s: %w", what, err):
				default:
				}
			}
		})
	}
	for what, work := range h.background {
		begin(what, work)
	}
	wg.Go(func() { h.Instance.PruneRegularly(working) })
	if schedule := h.Instance.Schedule; schedule != nil {
		w := Work{Engine: h.engine, Sagas: h.sagas, Options: o, Destinations: h.reg.Names(), Logger: h.Instance.Log}
		begin("the scheduler", func(ctx context.Context) error { return schedule(ctx, w) })
	} else {
		begin("the engine", func(ctx context.Context) error { return h.engine.Work(ctx, &o) })
		begin("the sagas", h.sagas.Work)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	case err = <-served:
	}
	left := grace
	if shut != nil {
		began := time.Now()
		shut()
		left = max(grace-time.Since(began), minRest)
	}
	end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.engine.Close()
		wg.Wait()
	}()
	late := time.NewTimer(left)
	defer late.Stop()
	select {
	case <-done:
		h.Close()
		return err
	case <-late.C: // the ledger is still in use, and ends with the process
		return errors.Join(err, fmt.Errorf("%w after %s: it is in the ledger and is taken up again when its lease has ended", ErrLate, left))
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

// Gateway makes an MCP gateway; c has the settings of this caller.
func (h *Services) Gateway(ctx context.Context, g config.Gateway, c mcpgate.Config) (*mcpgate.Gateway, error) {
	to, err := h.connectorOf(g.Destination)
	if err != nil {
		return nil, err
	}
	c.Destination, c.Connector, c.Tenant, c.Reads, c.Hide, c.Wait = g.Destination, to, g.Tenant, g.Reads, g.Hide, g.Wait
	c.Version, c.Logger = Built().Version, h.Instance.Log
	return mcpgate.New(ctx, h.Service, c)
}

// connectorOf is the destination of a gateway.
func (h *Services) connectorOf(destination string) (*mcp.Connector, error) {
	for _, p := range h.reg.Profiles() {
		if p.Destination != destination {
			continue
		}
		if c, _, err := h.reg.Lookup(destination, p.Kind); err == nil {
			if found, ok := c.(*mcp.Connector); ok {
				return found, nil
			}
		}
	}
	return nil, fmt.Errorf("the destination %q is no server of the Model Context Protocol", destination)
}

// address is the address at which callers reach a server with a listen address.
func (d *Instance) address(listening string) string {
	return cmp.Or(d.Config.Server.PublicURL, listening)
}
