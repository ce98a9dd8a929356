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
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	environ        func() []string         // what env can be asked for; nil is not known
	forget         func(name string) error // takes a variable out of the environment, not out of env; nil does nothing
	now            func() time.Time        // the ledger's clock; nil is the machine's

	// The flags that every command has.
	config, tenant string
	json, verbose  bool

	// vault opens what is sealed, once it is unlocked.
	vault atomic.Pointer[redact.Vault]

	began bool // the arguments were understood
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
		a.json = a.json || slices.Contains(args, "--json") // which may stand behind what was not understood
	}
	if err != nil {
		return a.fail(err)
	}
	return a.code
}

// time is the time here, for answers that no record gives one to.
func (a *app) time() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// does makes a function of ours the work of a command.
func (a *app) does(f func(ctx context.Context, args []string) (int, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		a.began = true
		for _, name := range []string{"config", "tenant"} { // a variable that is not set must not mean the default
			if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
				return usagef("--%s is empty; want a value, or the flag left out", name)
			}
		}
		a.code, err = f(cmd.Context(), args)
		return err
	}
}

// usageError says that the command line cannot be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// print writes a value as JSON, or its form for people.
func (a *app) print(v any, text func() string) error {
	if a.json {
		return report.JSON(a.stdout, v)
	}
	_, err := io.WriteString(a.stdout, text())
	return err
}

// logger writes to standard error, as the configuration wants it.
func (a *app) logger(form string) *slog.Logger {
	return slog.New(scrubbed{a.handler(form), a.scrub})
}

func (a *app) handler(form string) slog.Handler {
	o := &slog.HandlerOptions{Level: slog.LevelWarn}
	if a.verbose {
		o.Level = slog.LevelDebug
	}
	if form == "json" {
		return slog.NewJSONHandler(a.stderr, o)
	}
	return slog.NewTextHandler(a.stderr, o)
}

// desk is what a command works with: the configuration, the ledger and the
// tenant that is meant.
type desk struct {
	config config.Config
	ledger ledger.Ledger
	closer io.Closer
	tenant string
	log    *slog.Logger
	env    func(string) string
	// clock is this machine's clock as tests have it; nil for the machine's.
	clock func() time.Time
	// standing is what stands guard over sends, once there is an engine.
	standing standing
	// vault seals and opens, nil where nothing is sealed; locked is why it is not
	// there though it is configured.
	vault  *redact.Vault
	locked error
	// reg is where writes go, once there is an engine.
	reg *connectors.Registry
	// telling is where what happens is told.
	telling telling
	// sealer seals the audit log, once there is one.
	sealer atomic.Pointer[audit.Sealer]
}

// environment is what settings the environment makes.
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
	a.forgetSecrets(c)
	if err == nil {
		_, _ = a.unlock(c) // whoever needs the keys is told; what is refused before that is scrubbed
	}
	return c, err
}

// forgetSecrets takes the variables with secrets out of the environment, so that
// no program that is started, and no library, finds them there.
func (a *app) forgetSecrets(c config.Config) {
	for _, name := range c.SecretVariables() {
		if a.forget != nil {
			_ = a.forget(name) // it fails for names alone that no variable can have
		}
	}
}

// open opens the ledger that the configuration names.
func (a *app) open(ctx context.Context, c config.Config, o config.OpenOptions) (*desk, error) {
	vault, locked := a.unlock(c)
	o.Now, o.Window = a.now, idempotencyWindow
	l, closer, err := c.Ledger.Open(ctx, a.env, &o)
	if err != nil {
		return nil, err
	}
	return &desk{config: c, ledger: l, closer: closer, tenant: c.Tenant, log: a.logger(c.Log), env: a.env, clock: a.now, vault: vault, locked: locked}, nil
}

// look opens the ledger for a command that only looks at it.
func (a *app) look(ctx context.Context) (*desk, error) {
	c, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.open(ctx, c, config.OpenOptions{})
}

// time is a time on this machine's clock.
func (d *desk) time(t time.Time) time.Time {
	if d.clock != nil {
		return d.clock()
	}
	return t
}

// close ends what is shared and the ledger. The engine is closed before.
func (d *desk) close() {
	d.leave()
	d.hangUp()
	d.hush()
	if err := d.closer.Close(); err != nil {
		d.log.Warn("the ledger could not be closed", "error", err)
	}
}

// hangUp ends what destinations have open, processes above all: one that does not
// end with its standard input would stay behind.
func (d *desk) hangUp() {
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
func (d *desk) engine(reg *connectors.Registry, meter engine.Meter) *engine.Engine {
	o := &engine.Options{
		Logger: d.log, Window: idempotencyWindow, Meter: meter, Verify: d.config.Verification(), Risks: d.config.Risks,
		MaxFlights: d.config.Queue.InHand, MaxQueued: d.config.Queue.Waiting,
	}
	o.Vault = d.vault
	d.standing.into(o)
	d.telling.into(o, reg)
	return engine.New(d.ledger, reg, o)
}

// bench opens what a command needs that lets the engine work.
func (a *app) bench(ctx context.Context, o config.OpenOptions) (*desk, *engine.Engine, error) {
	d, reg, err := a.registered(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := cmp.Or(d.stand(ctx, reg), a.tell(d, reg)); err != nil {
		d.close()
		return nil, nil, err
	}
	return d, d.engine(reg, nil), nil
}

// registered opens the ledger and makes the destinations.
func (a *app) registered(ctx context.Context, o config.OpenOptions) (*desk, *connectors.Registry, error) {
	c, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	reg, err := c.Registry(a.env)
	if err == nil {
		_, err = a.telling(c)
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

// outcome closes the engine, which hands everything back to the ledger, and
// tells how the write stands then. out is what the engine said before.
func (a *app) outcome(ctx context.Context, d *desk, e *engine.Engine, out engine.Outcome) (int, error) {
	return a.outcomeOf(ctx, d, e, out, nil)
}

// outcomeOf is outcome; p is there when the write is not the one that was asked
// for, but the one that has begun the same operation before.
func (a *app) outcomeOf(ctx context.Context, d *desk, e *engine.Engine, out engine.Outcome, p *prior) (int, error) {
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
		// Prior is the write that this is the outcome of, where another one has
		// begun the operation before.
		Prior *prior `json:"prior,omitempty"`
	}{now, code, report.Next(rec), p}
	if err := a.print(answer, func() string { return p.heading() + report.Outcome(now, rec, rec.Now) }); err != nil {
		// What became of the write is so whether it could be printed or not.
		d.log.Error("the outcome could not be printed", "write", now.ID, "status", now.Status, "exit", code, "error", err)
	}
	return code, nil
}
