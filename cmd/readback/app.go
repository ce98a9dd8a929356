package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// idempotencyWindow is how long an idempotency key blocks other writes: the shortest
// window that the large payment APIs promise.
const idempotencyWindow = 24 * time.Hour

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	environ        func() []string         // lists the environment; nil: it is not known
	forget         func(name string) error // removes a variable from the environment, not from env; nil does nothing
	now            func() time.Time        // the ledger's clock; nil is the machine's
	memory         memory                  // what this process may use; zero: nothing is derived

	// The flags that every command has.
	config, tenant string
	json, verbose  bool

	// vault opens sealed values, once it is unlocked.
	vault atomic.Pointer[redact.Vault]

	began bool // the arguments were parsed
	code  int
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began {
		err = &usageError{err}
		a.json = a.json || slices.Contains(args, "--json") // which may follow an argument that could not be parsed
	}
	if err != nil {
		return a.fail(err)
	}
	return a.code
}

// time is the current time, for responses without a record's time.
func (a *app) time() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// does makes a function the action of a command.
func (a *app) does(f func(ctx context.Context, args []string) (int, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		a.began = true
		for _, name := range []string{"config", "tenant"} { // an unset variable must not select the default
			if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
				return usagef("--%s is empty; want a value, or the flag left out", name)
			}
		}
		a.code, err = f(cmd.Context(), args)
		return err
	}
}

// usageError reports a command line that cannot be parsed.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// print writes a value as JSON or as text, either of which is safe for a terminal.
func (a *app) print(v any, text func() string) error {
	if a.json {
		return report.JSON(a.stdout, v)
	}
	_, err := io.WriteString(a.stdout, visible.Lines(text()))
	return err
}

// logger logs to standard error, in the configured form.
func (a *app) logger(form string) *slog.Logger {
	return slog.New(scrubbed{a.handler(form), func(text string) string { return bounded(a.scrub(text)) }})
}

func (a *app) handler(form string) slog.Handler {
	o := &slog.HandlerOptions{Level: slog.LevelWarn}
	if a.verbose {
		o.Level = slog.LevelDebug
	}
	if form == "json" {
		return slog.NewJSONHandler(visibleLines{a.stderr}, o)
	}
	return slog.NewTextHandler(visibleLines{a.stderr}, o)
}

// opened is what a command works with: the configuration, the ledger and the tenant.
type opened struct {
	config config.Config
	ledger ledger.Ledger
	closer io.Closer
	tenant string
	log    *slog.Logger
	env    func(string) string
	// clock is this machine's clock in tests; nil for the real one.
	clock func() time.Time
	// shared are the guards over sends, once there is an engine.
	shared shared
	// vault seals and opens, nil where nothing is sealed; locked is why it is missing
	// though it is configured.
	vault  *redact.Vault
	locked error
	// reg holds the destinations, once there is an engine.
	reg *connectors.Registry
	// telemetryRun exports telemetry.
	telemetryRun telemetryRun
	// sealer seals the audit log, once there is one.
	sealer atomic.Pointer[audit.Sealer]
}

// environment is the environment, for settings.
func (a *app) environment() config.Environment {
	return config.Environment{Get: a.env, All: a.environ}
}

// settings reads the configuration.
func (a *app) settings() (config.Config, error) {
	path, err := config.Find(a.config, a.env)
	if err != nil {
		return config.Config{}, err
	}
	c, err := config.LoadOver(path, a.environment())
	if err == nil && a.tenant != "" {
		c.Tenant = a.tenant
	}
	c.Commands.Logger = a.logger(c.Log)
	a.memory.over(&c)
	a.forgetSecrets(c)
	if err == nil {
		_, _ = a.unlock(c) // a command that needs the keys gets the error; errors before that are scrubbed
	}
	return c, err
}

// forgetSecrets removes the variables with secrets from the environment, so that started
// programs and libraries do not find them there.
func (a *app) forgetSecrets(c config.Config) {
	for _, name := range c.SecretVariables() {
		if a.forget != nil {
			_ = a.forget(name) // it fails only for names that no variable can have
		}
	}
}

// open opens the ledger that the configuration names.
func (a *app) open(ctx context.Context, c config.Config, o config.OpenOptions) (*opened, error) {
	vault, locked := a.unlock(c)
	o.Now, o.Window, o.Commands, o.Vault, o.Locked = a.now, idempotencyWindow, c.Commands, vault, locked
	l, closer, err := c.Ledger.Open(ctx, a.env, &o)
	if err != nil {
		return nil, err
	}
	return &opened{config: c, ledger: l, closer: closer, tenant: c.Tenant, log: a.logger(c.Log), env: a.env, clock: a.now, vault: vault, locked: locked}, nil
}

// openToRead opens the ledger for a command that only reads it.
func (a *app) openToRead(ctx context.Context) (*opened, error) {
	c, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.open(ctx, c, config.OpenOptions{})
}

// time is a time on this machine's clock.
func (d *opened) time(t time.Time) time.Time {
	if d.clock != nil {
		return d.clock()
	}
	return t
}

// close closes what is shared and the ledger. The engine is closed before.
func (d *opened) close() {
	d.leave()
	d.hangUp()
	d.hush()
	if err := d.closer.Close(); err != nil {
		d.log.Warn("the ledger could not be closed", "error", err)
	}
}

// hangUp closes the destinations' connections and, above all, their processes: one that
// does not end with its standard input would keep running.
func (d *opened) hangUp() {
	if d.reg == nil {
		return
	}
	done := map[connectors.Connector]bool{}
	for _, p := range d.reg.Profiles() {
		c, _, err := d.reg.Lookup(p.Destination, p.Kind)
		open, ok := c.(*mcp.Connector)
		if err != nil || !ok || done[c] {
			continue
		}
		done[c] = true
		if err := open.Close(); err != nil {
			d.log.Warn("the session with a server did not end well", "destination", p.Destination, "error", err)
		}
	}
}

// engine starts an engine on the ledger.
func (d *opened) engine(reg *connectors.Registry, observer func(engine.Activity), oneShot bool) *engine.Engine {
	o := &engine.Options{
		Logger: d.log, Window: idempotencyWindow, Observer: observer, Verify: d.config.Verification(), Risks: d.config.Risks,
		MaxInFlight: d.config.Queue.InHand, MaxQueued: d.config.Queue.Waiting, MaxQueuedBytes: d.config.Queue.Bytes, OneShot: oneShot,
	}
	o.Vault = d.vault
	d.shared.into(o)
	d.telemetryRun.into(o, reg)
	return engine.New(d.ledger, reg, o)
}

// bench opens what a command needs that runs the engine.
func (a *app) bench(ctx context.Context, o config.OpenOptions) (*opened, *engine.Engine, error) {
	d, reg, err := a.registered(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := cmp.Or(d.stand(ctx, reg), a.startTelemetry(d, reg)); err != nil {
		d.close()
		return nil, nil, err
	}
	return d, d.engine(reg, nil, true), nil
}

// registered opens the ledger and creates the destinations.
func (a *app) registered(ctx context.Context, o config.OpenOptions) (*opened, *connectors.Registry, error) {
	c, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	reg, err := c.Registry(a.env)
	if err == nil {
		_, err = a.telemetrySettings(c)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := a.open(ctx, c, o)
	if err == nil && d.locked != nil {
		err = errors.Join(d.locked, d.closer.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	if len(reg.NamesFor(d.tenant)) == 0 && len(reg.Names()) > 0 {
		d.log.Warn("no destination serves this tenant; add it to destinations.NAME.tenants", "tenant", d.tenant)
	}
	return d, reg, nil
}

// outcome closes the engine, which hands all work back to the ledger, and prints the
// outcome of the write then. out is the engine's earlier outcome.
func (a *app) outcome(ctx context.Context, d *opened, e *engine.Engine, out engine.Outcome) (int, error) {
	return a.outcomeOf(ctx, d, e, out, nil)
}

// outcomeOf is outcome; p is set if the write is not the requested one, but the one that
// began the same operation before.
func (a *app) outcomeOf(ctx context.Context, d *opened, e *engine.Engine, out engine.Outcome, p *prior) (int, error) {
	e.Close()
	rec, err := d.ledger.Get(context.WithoutCancel(ctx), d.tenant, out.ID)
	if err != nil { // it is in the ledger, and may have been sent by now
		return 0, &engine.Error{ID: out.ID, Known: engine.KnownNothing, Err: err}
	}
	rec = shown(rec)[0]
	now := engine.OutcomeIn(context.WithoutCancel(ctx), d.ledger, rec)
	now.Replayed = out.Replayed
	code := codeOf(now.Status)
	d.log.Info("outcome", "write", now.ID, "correlation", rec.CorrelationID, "status", now.Status, "exit", code)
	answer := struct {
		engine.Outcome
		Exit int    `json:"exit"`
		Next string `json:"next,omitempty"`
		// Prior is the write of this outcome, if another one has begun the operation
		// before.
		Prior *prior `json:"prior,omitempty"`
	}{now, code, report.Next(rec), p}
	if err := a.print(answer, func() string { return p.heading() + report.Outcome(now, rec, rec.Now) }); err != nil {
		// A failure to print does not change the outcome.
		d.log.Error("the outcome could not be printed", "write", now.ID, "status", now.Status, "exit", code, "error", err)
	}
	return code, nil
}
