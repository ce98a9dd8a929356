package server

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/sealed"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/saga"
)

// IdempotencyWindow is how long an idempotency key blocks other writes: the shortest
// window that the large payment APIs promise.
const IdempotencyWindow = 24 * time.Hour

// Process is what a process has before it opens a ledger.
type Process struct {
	Env config.Environment
	// Clock is this machine's clock in tests; nil for the real one.
	Clock func() time.Time
	Log   *slog.Logger
	// Unlock fetches the redaction keys; nil if nothing is sealed. A server that tries to open
	// its ledger again fetches them again.
	Unlock func(config.Config) (*redact.Vault, error)
	// Schedule drives due writes and sagas until ctx ends; nil: workers of this process do.
	Schedule func(ctx context.Context, w Work) error
}

// Work is what another scheduler drives: it gets due work from [engine.Engine.Work] with a
// [engine.WorkOptions.Dispatch] and from [saga.Runner.Dispatch], and has it done by their WorkOn.
type Work struct {
	Engine *engine.Engine
	Sagas  *saga.Runner
	// Options are those of the command: how much is done at once, the pauses, and what is pruned.
	Options engine.WorkOptions
	// Destinations are the names of those that this process knows.
	Destinations []string
	Logger       *slog.Logger
}

// Instance is a configured ledger, for the commands and for the server.
type Instance struct {
	Process
	Config config.Config
	Ledger ledger.Ledger
	Closer io.Closer
	Tenant string
	// Vault seals and opens, nil where nothing is sealed; Locked is why it is missing
	// though it is configured.
	Vault  *redact.Vault
	Locked error
	// guards and lag are shared by all workers on the ledger; nil until Start.
	guards *guards.Guards
	lag    *lag.Book
	// Reg holds the destinations, once there is an engine.
	Reg *connectors.Registry
	// telemetry exports telemetry.
	telemetry telemetryExport
	// sealer seals the audit log, once there is one.
	sealer atomic.Pointer[audit.Sealer]
}

// Open opens the ledger that the configuration names.
func Open(ctx context.Context, c config.Config, o config.OpenOptions, p Process) (*Instance, error) {
	d := &Instance{Process: p, Config: c, Tenant: c.Tenant}
	if p.Unlock != nil {
		d.Vault, d.Locked = p.Unlock(c)
	}
	o.Now, o.Window, o.Commands, o.Vault, o.Locked = p.Clock, IdempotencyWindow, c.Commands, d.Vault, d.Locked
	o.Logger = p.Log
	var err error
	if d.Ledger, d.Closer, err = c.Ledger.Open(ctx, p.Env.Get, &o); err != nil {
		return nil, err
	}
	return d, nil
}

// Time is a time on this machine's clock.
func (d *Instance) Time(t time.Time) time.Time {
	if d.Clock != nil {
		return d.Clock()
	}
	return t
}

// Close closes what is shared and the ledger. The engine is closed before.
func (d *Instance) Close() {
	d.release()
	d.Disconnect()
	d.endTelemetry()
	if err := d.Closer.Close(); err != nil {
		d.Log.Warn("the ledger could not be closed", "error", err)
	}
}

// Disconnect closes the destinations' connections and, above all, their processes: one that
// does not end with its standard input would keep running.
func (d *Instance) Disconnect() {
	if d.Reg == nil {
		return
	}
	done := map[connectors.Connector]bool{}
	for _, p := range d.Reg.Profiles() {
		c, _, err := d.Reg.Lookup(p.Destination, p.Kind)
		open, ok := c.(*mcp.Connector)
		if err != nil || !ok || done[c] {
			continue
		}
		done[c] = true
		if err := open.Close(); err != nil {
			d.Log.Warn("the session with a server did not end well", "destination", p.Destination, "error", err)
		}
	}
}

// Engine starts an engine on the ledger.
func (d *Instance) Engine(reg *connectors.Registry, observer func(engine.Activity), oneShot bool) *engine.Engine {
	o := &engine.Options{
		Logger: d.Log, Window: IdempotencyWindow, Observer: observer, Verify: d.Config.Verification(), Risks: d.Config.Risks,
		MaxInFlight: d.Config.Queue.InHand, MaxQueued: d.Config.Queue.Waiting, MaxQueuedBytes: d.Config.Queue.Bytes, OneShot: oneShot,
		Vault: d.Vault,
	}
	if d.guards != nil {
		o.Guards, o.Lag = d.guards, d.lag
	}
	d.telemetry.into(o, reg)
	return engine.New(d.Ledger, reg, o)
}

// Text redacts a sentence about something of a tenant, so that it may be stored.
func (d *Instance) Text(tenant, sentence string) string {
	return d.Vault.Scope(tenant, "").Text(sentence)
}

// Documents is the ledger as the gate and sagas see it. clean redacts what they return,
// nil where nothing is sensitive.
func (d *Instance) Documents(reg *connectors.Registry) (store gate.Store, clean *sealed.Store) {
	if d.Vault == nil {
		return d.Ledger, nil
	}
	clean = sealed.New(d.Ledger, d.Vault, reg)
	return clean, clean
}

// Gate is a step gate on the ledger, which redacts what it returns.
func (d *Instance) Gate(reg *connectors.Registry, o *gate.Options) *gate.Gate {
	store, clean := d.Documents(reg)
	if clean != nil {
		o.Redaction = clean
	}
	return gate.New(store, o)
}

// Sagas runs the sagas of the ledger; a nil engine only reads them.
func (d *Instance) Sagas(reg *connectors.Registry, e *engine.Engine) *saga.Runner {
	store, clean := d.Documents(reg)
	o := &saga.Options{Window: IdempotencyWindow, Logger: d.Log}
	if clean != nil {
		o.Redaction = clean
	}
	return saga.New(store, e, o)
}

// Start sets up what is shared and the export of telemetry, and holds the sends of a
// ledger that is an older copy.
func (d *Instance) Start(ctx context.Context, reg *connectors.Registry) error {
	d.Reg = reg
	if err := d.holdOlder(ctx); err != nil {
		return err
	}
	d.guards = guards.New(d.Ledger, reg, &guards.Options{Destinations: d.Config.Limits(), Logger: d.Log})
	d.lag = lag.New(d.Ledger, &lag.Options{Logger: d.Log})
	return d.startTelemetry(reg)
}

// release releases what this process holds, and shares what it learned.
func (d *Instance) release() {
	if d.guards == nil {
		return
	}
	if err := d.guards.Close(); err != nil {
		d.Log.Warn("what this process holds of the guards is given back by time", "error", err)
	}
	if err := d.lag.Close(); err != nil {
		d.Log.Warn("what was learned about lags is lost", "error", err)
	}
	d.guards, d.lag = nil, nil
}

// guardStatus is the state of the guards, for metrics.
func (d *Instance) guardStatus(ctx context.Context) (metrics.Status, error) {
	found, err := guards.Status(ctx, d.Ledger)
	if err != nil {
		return metrics.Status{}, err
	}
	lines, err := lag.Quantiles(ctx, d.Ledger)
	if err != nil {
		return metrics.Status{}, err
	}
	return guardStatusOf(found, lines, d.Destinations()), nil
}

// Destinations are the names of the configured destinations.
func (d *Instance) Destinations() []string {
	var all []string
	for _, each := range d.Config.Destinations {
		all = append(all, each.Name)
	}
	return all
}

// Serves reports whether a destination of the configuration, or of a webhook, serves a
// tenant.
func (d *Instance) Serves(tenant, name string) bool {
	by := func(tenants []string) bool { return tenants == nil || slices.Contains(tenants, tenant) }
	return slices.ContainsFunc(d.Config.Destinations, func(c config.Destination) bool { return c.Name == name && by(c.Tenants) }) ||
		slices.ContainsFunc(d.Config.Webhooks, func(w config.Webhook) bool { return webhooks.Prefix+w.Name == name })
}

func guardStatusOf(found guards.InForce, lines []lag.PathLag, names []string) metrics.Status {
	m := metrics.Status{Breakers: map[string]string{}, LoginRefused: map[string]time.Duration{}, Stops: map[string]int{}}
	stopped := map[string]bool{}
	for _, s := range found.Stops {
		if !s.Active {
			continue
		}
		m.Stops[scopeWord(s.Scope)]++
		if s.Tenant == "" && s.Tool == "" {
			stopped[s.Destination] = true // "" for all
		}
	}
	shut := map[string]bool{}
	for _, dest := range found.Destinations {
		m.Breakers[dest.Name] = dest.Breaker.State
		if since := dest.Breaker.Login; !since.IsZero() {
			m.LoginRefused[dest.Name] = max(found.Now.Sub(since), time.Second)
		}
		shut[dest.Name] = dest.Breaker.State == "open" || dest.Pause.After(found.Now)
	}
	for _, name := range names {
		if stopped[""] || stopped[name] || shut[name] {
			m.Paused = append(m.Paused, name)
		}
	}
	for _, l := range lines {
		m.Lags = append(m.Lags, metrics.Lag{Destination: l.Destination, Kind: l.Kind, Path: l.Path, P50: l.P50, P90: l.P90, P99: l.P99})
	}
	return m
}

// scopeWord says what the scope of a stop names.
func scopeWord(s guards.Scope) string {
	word, named := "all", 0
	for _, p := range []struct{ what, name string }{{"tenant", s.Tenant}, {"destination", s.Destination}, {"tool", s.Tool}} {
		if p.name != "" {
			word, named = p.what, named+1
		}
	}
	if named > 1 {
		return "several"
	}
	return word
}
