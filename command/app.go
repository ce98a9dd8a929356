package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/redact"
)

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	environ        func() []string         // lists the environment; nil: it is not known
	forget         func(name string) error // removes a variable from the environment, not from env; nil does nothing
	now            func() time.Time        // the ledger's clock; nil is the machine's
	interactive    bool                    // a user of a terminal can answer questions
	bars           bool                    // standard error is a terminal
	scheduler      Scheduler               // of serve and work; zero: their own workers
	memory         memory                  // what this process may use; zero: nothing is derived

	coloured bool // statuses are coloured

	// browse opens an address in a browser; nil: there is none.
	browse func(ctx context.Context, address string)

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
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.began {
		err = &usageError{err: err}
		a.json = a.json || slices.Contains(args, "--json") // which may follow an argument that could not be parsed
	}
	var usage *usageError
	if errors.As(err, &usage) {
		usage.command = cmd.CommandPath()
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
type usageError struct {
	err     error
	command string // whose help says what is right, once it is known
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// print writes a value as JSON or as text, either of which is safe for a terminal.
func (a *app) print(v any, text func() string) error {
	if a.json {
		return report.JSON(a.stdout, v)
	}
	shown := visible.Lines(text())
	if a.coloured {
		shown = colour(shown)
	}
	_, err := io.WriteString(a.stdout, shown)
	return err
}

// logger logs to standard error, in the configured form.
func (a *app) logger(form string) *slog.Logger {
	return slog.New(scrubbed{a.handler(form), func(text string) string { return visible.Cut(a.scrub(text), maxLogged) }})
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
func (a *app) open(ctx context.Context, c config.Config, o config.OpenOptions) (*server.Instance, error) {
	return server.Open(ctx, c, o, a.process(c))
}

func (a *app) process(c config.Config) server.Process {
	return server.Process{Env: a.environment(), Clock: a.now, Log: a.logger(c.Log), Unlock: a.unlock}
}

// openToRead opens the ledger for a command that only reads it.
func (a *app) openToRead(ctx context.Context) (*server.Instance, error) {
	c, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.open(ctx, c, config.OpenOptions{})
}

// bench opens what a command needs that runs the engine.
func (a *app) bench(ctx context.Context, o config.OpenOptions) (*server.Instance, *engine.Engine, error) {
	d, reg, err := a.registered(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := d.Start(ctx, reg); err != nil {
		d.Close()
		return nil, nil, err
	}
	return d, d.Engine(reg, nil, true), nil
}

// registered opens the ledger and creates the destinations.
func (a *app) registered(ctx context.Context, o config.OpenOptions) (*server.Instance, *connectors.Registry, error) {
	c, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	reg, err := c.Registry(a.env)
	if err == nil {
		_, err = server.TelemetrySettings(c, a.env)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := a.open(ctx, c, o)
	if err == nil && d.Locked != nil {
		err = errors.Join(d.Locked, d.Closer.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	if len(reg.NamesFor(d.Tenant)) == 0 && len(reg.Names()) > 0 {
		d.Log.Warn("no destination serves this tenant; add it to destinations.NAME.tenants", "tenant", d.Tenant)
	}
	return d, reg, nil
}

// outcome closes the engine, which hands all work back to the ledger, and prints the
// outcome of the write then. out is the engine's earlier outcome.
func (a *app) outcome(ctx context.Context, d *server.Instance, e *engine.Engine, out engine.Outcome) (int, error) {
	return a.outcomeOf(ctx, d, e, out, nil)
}

// outcomeOf is outcome; p is set if the write is not the requested one, but the one that
// began the same operation before.
func (a *app) outcomeOf(ctx context.Context, d *server.Instance, e *engine.Engine, out engine.Outcome, p *prior) (int, error) {
	e.Close()
	rec, err := d.Ledger.Get(context.WithoutCancel(ctx), d.Tenant, out.ID)
	if err != nil { // it is in the ledger, and may have been sent by now
		return 0, &engine.Error{ID: out.ID, Known: engine.KnownNothing, Err: err}
	}
	rec = service.Shown(rec)
	now := engine.OutcomeIn(context.WithoutCancel(ctx), d.Ledger, rec)
	now.Replayed = out.Replayed
	code := codeOf(now.Status)
	d.Log.Info("outcome", "write", now.ID, "correlation", rec.CorrelationID, "status", now.Status, "exit", code)
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
		d.Log.Error("the outcome could not be printed", "write", now.ID, "status", now.Status, "exit", code, "error", err)
	}
	return code, nil
}
