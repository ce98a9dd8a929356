package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/report"
)

const (
	// defaultListen is where the published clients of the step gate look for it
	// by themselves.
	defaultListen = "127.0.0.1:8080"
	// devLedger is the ledger of a server without a configuration. It stays, so
	// that whoever comes back after a crash finds what was done. It is not
	// readback.db: that may be a ledger in earnest, of a configuration elsewhere.
	devLedger = "readback-dev.db"
	// devTenant owns what no tenant is named for, as it does with a configuration.
	devTenant = "default"
)

// serveSettings are what a server can be told on the command line.
type serveSettings struct {
	dev            bool
	listen, ledger string
	parallel       int
	grace          time.Duration
}

func (a *app) serveCommand() *cobra.Command {
	var s serveSettings
	cmd := &cobra.Command{
		Use:   "serve --dev",
		Short: "Serve the step gate over HTTP, until SIGTERM or SIGINT",
		Long: `Serve the step gate under /api/v1/workflows, and /healthz and /readyz, and do
what a worker does: continue whatever is due, and end holds that nobody decided
about in time. The first line on standard output is the address.

--dev is for this machine alone: no credentials are checked, everybody who can
reach the address may do everything. The tenant is that of the header X-Tenant-ID,
else the configured one; a caller's name is the user of HTTP Basic, else
X-User-ID. Serving with credentials comes later; until then nothing is served
without --dev.

Without a configuration (--config, $READBACK_CONFIG, ./readback.yaml) the ledger
is ` + devLedger + ` in this folder, which is made when it is not there, and there are
no destinations to look at.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.serve(ctx, s) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&s.dev, "dev", false, "check no credentials, on this machine alone (required)")
	flags.StringVar(&s.listen, "listen", defaultListen, "where to listen, host:port on this machine; port 0 takes a free one")
	flags.StringVar(&s.ledger, "ledger", "", "the file of the ledger (default as configured)")
	flags.IntVar(&s.parallel, "parallel", 16, "how many writes are worked on at once")
	flags.DurationVar(&s.grace, "grace", grace, "how long requests, sends and reads under way may last after the signal")
	return cmd
}

func (s serveSettings) check() error {
	host, port, err := net.SplitHostPort(s.listen)
	ip := net.ParseIP(host)
	switch {
	case !s.dev:
		return usagef("--dev is missing: nothing that would check credentials is there yet, and nothing is served without; --dev serves this machine alone")
	case err != nil || port == "":
		return usagef("--listen is %q; want host:port, such as %s", s.listen, defaultListen)
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return usagef("--listen is %q, which other machines can reach, and --dev asks nobody who they are; want 127.0.0.1:%s", s.listen, port)
	case s.parallel < 1 || s.parallel > 1000:
		return usagef("--parallel is %d; want 1 to 1000", s.parallel)
	case s.grace < 0:
		return usagef("--grace is %s; want 0 or more", s.grace)
	}
	return nil
}

// listen takes the address. What "localhost" means is the machine's business;
// what it must mean is not.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is taken: another program listens there; want another --listen, or port 0 for one that is free", addr)
	case err != nil:
		return nil, fmt.Errorf("cannot listen at %s: %w", addr, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(usagef("--listen is %q, which is %s here, and other machines can reach it; want %s", addr, l.Addr(), defaultListen), l.Close())
	}
	return l, nil
}

// serve is the whole of it: the door, what is behind it, and what goes on
// without anybody asking.
func (a *app) serve(ctx context.Context, s serveSettings) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	l, err := listen(ctx, s.listen) // first: who finds the port taken leaves no ledger behind
	if err != nil {
		return 0, err
	}
	d, reg, err := a.serving(ctx, s)
	if err != nil {
		return 0, errors.Join(err, l.Close())
	}
	h, err := a.furnish(d, reg, "http://"+l.Addr().String())
	if err != nil {
		d.close()
		return 0, errors.Join(err, l.Close())
	}
	if err := a.announce(l.Addr().String(), d); err != nil {
		h.engine.Close()
		d.close()
		return 0, errors.Join(err, l.Close())
	}
	server := httpapi.Server(httpapi.Local(h.handler), d.log)
	return 0, h.run(ctx, server, l, s)
}

// serving opens the ledger and makes the destinations, without a configuration
// too where none was named.
func (a *app) serving(ctx context.Context, s serveSettings) (*desk, *connectors.Registry, error) {
	c, err := a.settings()
	if a.unconfigured(err) {
		c, err = config.Config{Tenant: devTenant, Log: "text", Ledger: config.Ledger{File: devLedger}}, nil
		if a.tenant != "" {
			c.Tenant = a.tenant
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if s.ledger != "" {
		c.Ledger = config.Ledger{File: s.ledger}
	}
	reg, err := c.Registry(a.env)
	if err != nil {
		return nil, nil, err
	}
	d, err := a.open(ctx, c, config.OpenOptions{Create: true})
	return d, reg, err
}

// unconfigured reports whether there is no configuration because nobody asked
// for one.
func (a *app) unconfigured(err error) bool {
	if !errors.Is(err, config.ErrMissing) || a.config != "" || a.env(config.Variable) != "" {
		return false
	}
	_, err = os.Stat(config.FileName)
	return errors.Is(err, fs.ErrNotExist)
}

// announce says where it listens, on a line of its own, and on what.
func (a *app) announce(addr string, d *desk) error {
	where := "http://" + addr
	if a.json {
		text, err := json.Marshal(map[string]string{"listening": where, "ledger": d.config.Ledger.String(),
			"configuration": d.config.Path, "tenant": d.tenant, "credentials": "not checked"})
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
		}
		return err
	}
	lines := []string{where,
		"Ledger: " + report.Safe(d.config.Ledger.String()),
		"Configuration: " + report.Safe(d.config.Path)}
	if d.config.Path == "" {
		lines[2] = "Configuration: none; there are no destinations to look at, and no rules"
	}
	lines = append(lines,
		"Credentials are not checked (--dev): everybody who can reach this address may do everything, and approvals are by whatever name a caller gives.")
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	return err
}
