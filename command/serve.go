package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
)

const (
	// devLedger is the ledger of a server without a configuration. It is kept, so that a
	// user finds the writes again after a crash. It is not named readback.db: that may be
	// a production ledger, of a configuration elsewhere.
	devLedger = "readback-dev.db"
)

// serveSettings are the flags of a server; what is not set there is as configured.
type serveSettings struct {
	dev            bool
	sample         bool // a destination to try out, and writes to it
	listen, ledger string
	parallel       int
	grace          time.Duration
	noBrowser      bool

	given func(flag string) bool
}

func (a *app) serveCommand() *cobra.Command {
	var s serveSettings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve agents and people over HTTP, until SIGTERM or SIGINT",
		Long: `Serve the APIs and the review UI, and work: continue due writes, and end holds that
no reviewer decided in time. The first line on standard output is the address.

  /v1/, /openapi.json   writes, sagas and destinations; docs/reference/http.md
  /api/v1/workflows     the step gate; docs/guide/gate.md
  /mcp                  MCP; docs/reference/mcp.md
  /                     the review UI; docs/guide/people.md
  /metrics              for the roles auditor, reviewer and operator
  /healthz, /readyz     for everyone: the process runs; the ledger is reachable

Callers need an API token (` + "`readback token create`" + `). People log in if a provider is
configured. Other machines need TLS, or a proxy with TLS (server.plaintext).

--dev is for this machine only: no credentials are checked, and everyone who reaches
the address may do everything. The tenant is that of the header X-Tenant-ID, else the
configured one; the caller's name is the user of HTTP Basic, else X-User-ID; the role is
X-Role, else operator. Without a configuration (--config, $READBACK_CONFIG,
./readback.yaml) the ledger is ` + devLedger + ` in this folder, created if it is missing,
and there is no destination; ` + "`readback dev`" + ` has one to try out.

If the ledger's database is unreachable, the server tries again. Until then /readyz and
every API respond with 503.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.serve(ctx, s) }),
	}
	flags := cmd.Flags()
	s.given = flags.Changed
	flags.BoolVar(&s.dev, "dev", false, "check no credentials, on this machine only")
	flags.StringVar(&s.listen, "listen", "", "where to listen, host:port; port 0 takes a free one (default as configured, else "+config.DefaultServer().Listen+")")
	flags.StringVar(&s.ledger, "ledger", "", "the file of the ledger (default as configured)")
	flags.IntVar(&s.parallel, "parallel", 0, fmt.Sprintf("how many writes are worked on at once (default as configured, else %d)", config.DefaultServer().Parallel))
	flags.DurationVar(&s.grace, "grace", 0, fmt.Sprintf("how long requests, sends and reads under way may last after the signal (default as configured, else %s)", config.DefaultServer().Grace))
	a.scheduler.addTo(cmd)
	return cmd
}

// over applies the flags to a configuration.
func (s serveSettings) over(c *config.Config) error {
	if s.given("listen") {
		c.Server.Listen = s.listen
		if problem := c.Server.AddressProblem(); problem != "" && !s.dev {
			return usagef("--listen is %q, which %s", s.listen, problem)
		}
	}
	if s.given("parallel") {
		c.Server.Parallel = s.parallel
	}
	if s.given("grace") {
		c.Server.Grace = s.grace
	}
	if s.ledger != "" {
		c.Ledger = config.Ledger{File: s.ledger}
	}
	_, port, err := net.SplitHostPort(c.Server.Listen)
	switch {
	case err != nil || port == "":
		return usagef("--listen is %q; want host:port, such as %s", c.Server.Listen, config.DefaultServer().Listen)
	case s.dev && !c.Server.Loopback():
		return usagef("--listen is %q, which other machines can reach, and --dev needs no credentials; want 127.0.0.1:%s", c.Server.Listen, port)
	case !s.dev && c.Path == "":
		return usagef("--dev is missing, and there is no configuration: want --dev to try it out on this machine alone, or a configuration (`readback init`), whose ledger holds the tokens that callers come with")
	case c.Server.Parallel < 1 || c.Server.Parallel > 1000:
		return usagef("--parallel is %d; want 1 to 1000", c.Server.Parallel)
	case c.Server.Grace < 0:
		return usagef("--grace is %s; want 0 or more", c.Server.Grace)
	}
	return nil
}

// serve runs a server: the APIs, the service below them, and the background work.
func (a *app) serve(ctx context.Context, s serveSettings) (int, error) {
	c, err := a.serverConfig(s)
	if err == nil {
		err = s.over(&c)
	}
	if err != nil {
		return 0, err
	}
	o := server.Options{Process: a.process(c), Config: c, Dev: s.dev,
		Announce: func(where string, away error) error { return a.announce(ctx, c, s, where, away) }}
	o.Schedule = a.scheduler.Run
	if s.sample {
		o.Sample = a.sampled
	}
	return 0, server.Serve(ctx, o)
}

// serverConfig reads the configuration; a trial needs none.
func (a *app) serverConfig(s serveSettings) (config.Config, error) {
	c, err := a.settings()
	switch {
	case a.unconfigured(err):
		c, err = config.Without(a.environment(), devLedger)
		a.memory.over(&c)
		if a.tenant != "" {
			c.Tenant = a.tenant
		}
	case s.sample && err == nil:
		return c, usagef("%s is a configuration, and dev tries things out without one; want another folder, or `readback serve`", c.Path)
	}
	return c, err
}

// unconfigured reports whether there is no configuration because none was named.
func (a *app) unconfigured(err error) bool {
	if !errors.Is(err, config.ErrMissing) || a.config != "" || a.env(config.Variable) != "" {
		return false
	}
	_, err = os.Stat(config.FileName)
	return errors.Is(err, fs.ErrNotExist)
}

// announce prints the address at which a server listens, on a line of its own, and the
// ledger.
func (a *app) announce(ctx context.Context, c config.Config, s serveSettings, where string, away error) error {
	if a.json {
		about := map[string]string{"listening": where, "ledger": c.Ledger.String(),
			"configuration": c.Path, "tenant": c.Tenant, "credentials": credentials(c, s.dev)}
		if away != nil {
			about["unavailable"] = away.Error()
		}
		text, err := json.Marshal(about)
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
		}
		return err
	}
	lines := []string{where,
		"Ledger: " + report.Safe(c.Ledger.String()),
		"Configuration: " + report.Safe(c.Path)}
	switch {
	case s.sample:
		lines[2] = "Review UI: " + where + "/"
	case c.Path == "":
		lines[2] = "Configuration: none; there are no destinations, and no rules. `readback dev` has one to try out."
	}
	if away != nil {
		lines = append(lines, "The ledger cannot be reached yet, and is tried again: "+report.Safe(flat(away.Error())))
	}
	if s.dev {
		lines = append(lines, "Credentials are not checked (--dev): everybody who can reach this address may do everything, and approvals are by whatever name a caller gives.")
	} else {
		lines = append(lines, "Callers come with an API token: readback token create --role agent --name NAME")
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	if s.sample && err == nil && away == nil {
		go a.tryOut(ctx, where, !s.noBrowser)
	}
	return err
}

// credentials describes what a caller needs.
func credentials(c config.Config, dev bool) string {
	switch {
	case dev:
		return "not checked"
	case c.Server.OIDC.Issuer != "":
		return "token or login"
	}
	return "token"
}
