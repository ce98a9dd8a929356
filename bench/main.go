//go:build unix

// Command bench measures one whole write of readback beside one workflow or job of DBOS, River,
// Temporal and Restate, and beside two bare commits: on one machine, on one file system, with
// every commit synced, in turns. It prints the rates, their ratios and what each system
// guarantees, and draws a chart. docs/performance.md has one run of it and says how to repeat it.
//
// It is a module of its own, so that no user of readback downloads these systems. It starts the
// servers that it needs and leaves out what the machine does not have, with one line that says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/readback-go/readback/internal/pgtest"
)

func main() {
	var (
		o    options
		out  = flag.String("out", "", "the file of the chart (SVG); default none")
		only = flag.String("only", "", "a regular expression of the contenders to run, by name; default all")
	)
	flag.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	flag.DurationVar(&o.each, "for", 2*time.Second, "how long a contender writes, for each number of callers in each turn")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "an existing folder on the disk to measure")
	flag.StringVar(&o.restate, "restate", os.Getenv("RESTATE_SERVER"), "the program restate-server; default $RESTATE_SERVER, or the one in PATH")
	flag.StringVar(&o.temporal, "temporal", os.Getenv("TEMPORAL_SERVER"), "the program temporalserver; default $TEMPORAL_SERVER, or the one in PATH")
	engines := flag.Bool("engines", false, "measure workflow engines alone and with readback, under faults, instead")
	page := flag.String("page", "", "with -engines: the page whose table is replaced; default none")
	flag.IntVar(&o.orders, "orders", ordersOfACell, "with -engines: the orders of each cell")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	is, err := workerMain(ctx, os.Stdout)
	switch {
	case is:
	case *engines:
		err = runEngines(ctx, os.Stdout, o, *only, *page)
	default:
		err = run(ctx, os.Stdout, o, *only, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options say how much is measured, and where.
type options struct {
	rounds            int
	each              time.Duration
	orders            int
	dir               string
	restate, temporal string // programs
}

// callers are the numbers of callers that write at the same time.
var callers = []int{1, 8, 64}

func run(ctx context.Context, w io.Writer, o options, only, out string) (err error) {
	all, err := chosen(contenders, only)
	if err != nil {
		return err
	}
	m, err := newMachine(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	present := m.present(w, all)
	if err := describe(w, m, present); err != nil {
		return err
	}
	results, err := measure(ctx, w, m, present, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nLoad average after: %s\n", loadAverage())
	printResults(w, results)
	fmt.Fprintf(w, "\n%s", guaranteesTable())
	if out != "" {
		return drawChart(results, out)
	}
	return nil
}

// machine is what contenders run on.
type machine struct {
	dir      string            // of this run, on the disk that is measured
	pg       *pgtest.Server    // nil without PostgreSQL
	programs map[string]string // the paths of servers by name; "" for one that is missing
	log      *slog.Logger      // of the systems under test: errors only
}

// settings are those of the PostgreSQL server that differ from its defaults. Its defaults sync
// every commit; they are repeated here because the comparison depends on them.
var settings = map[string]string{
	"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
	"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB", "autovacuum_naptime": "1min",
}

func newMachine(o options) (*machine, error) {
	dir, err := os.MkdirTemp(o.dir, "bench-")
	if err != nil {
		return nil, err
	}
	m := &machine{
		dir:      dir,
		programs: map[string]string{restateProgram: find(o.restate, restateProgram), temporalProgram: find(o.temporal, temporalProgram)},
		log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	// pgtest makes its folder in TMPDIR, and its server runs as another user if we are root.
	before, had := os.LookupEnv("TMPDIR")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.pg, err = pgtest.Open(pgtest.Options{Settings: settings})
	if errors.Is(err, pgtest.ErrMissing) {
		err = nil
	}
	if had {
		err = errors.Join(err, os.Setenv("TMPDIR", before))
	} else {
		err = errors.Join(err, os.Unsetenv("TMPDIR"))
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close stops the servers and removes what they stored.
func (m *machine) Close() error {
	var err error
	if m.pg != nil {
		err = m.pg.Close()
	}
	return errors.Join(err, os.RemoveAll(m.dir))
}

// whereFrom says where a server's program comes from.
var whereFrom = map[string]string{
	restateProgram:  "npm: @restatedev/restate-server; see -restate",
	temporalProgram: "make bench-peers builds it; see -temporal",
}

// present are the contenders that can run here. It prints a line for each of the others.
func (m *machine) present(w io.Writer, all []contender) []contender {
	return slices.DeleteFunc(slices.Clone(all), func(c contender) bool {
		missing := ""
		switch {
		case c.store == postgresStore && m.pg == nil:
			missing = pgtest.ErrMissing.Error()
		case c.needs != "" && m.programs[c.needs] == "":
			missing = fmt.Sprintf("there is no program %s (%s)", c.needs, whereFrom[c.needs])
		}
		if missing != "" {
			fmt.Fprintf(w, "%s is left out: %s.\n", c.name, missing)
		}
		return missing != ""
	})
}
