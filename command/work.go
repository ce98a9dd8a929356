package command

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/server"
)

const (
	// defaultIdle is the pause of a worker that found nothing due: the engine's own.
	// minIdle keeps a worker from polling the ledger all the time.
	defaultIdle = 250 * time.Millisecond
	minIdle     = 10 * time.Millisecond
)

// workSettings are the flags of a worker.
type workSettings struct {
	parallel    int
	grace, idle time.Duration
	metrics     string
	noPrune     bool
}

func (a *app) workCommand() *cobra.Command {
	var s workSettings
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Continue due writes, until SIGTERM or SIGINT",
		Long: `Continue due work of every tenant: waiting writes, writes of dead processes, pending
rechecks, sagas, webhook messages. Any number of workers may share a ledger. On SIGTERM
or SIGINT the worker finishes sends and reads that have begun, returns everything else
to the ledger, and ends with 0. A send or read that lasts longer than --grace stays in
the ledger until its lease ends; then another worker continues. A second signal ends
the process at once; nothing is lost.

The worker prunes settled writes that are older than the configured retention. The
default is 400 days, and pruning then begins 30 days after the first start. With
--metrics it serves /metrics for Prometheus, /healthz, and /readyz (the ledger is
reachable).`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.work(ctx, s) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&s.parallel, "parallel", 16, "the maximum number of writes in work")
	flags.DurationVar(&s.grace, "grace", server.Grace, "how long begun sends and reads may last after the signal")
	flags.DurationVar(&s.idle, "idle", defaultIdle, "the pause when nothing is due")
	flags.StringVar(&s.metrics, "metrics", "", "where to serve metrics, host:port on this machine (default as configured)")
	flags.BoolVar(&s.noPrune, "no-prune", false, "prune nothing, whatever the configuration says")
	a.scheduler.addTo(cmd)
	return cmd
}

// addTo adds the flags of a scheduler to those of a command.
func (s Scheduler) addTo(cmd *cobra.Command) {
	if s.Flags != nil {
		cmd.Flags().AddGoFlagSet(s.Flags)
	}
}

func (s workSettings) check() error {
	switch {
	case s.parallel < 1 || s.parallel > 1000:
		return usagef("--parallel is %d; want 1 to 1000", s.parallel)
	case s.grace < 0:
		return usagef("--grace is %s; want 0 or more", s.grace)
	case s.idle < minIdle || s.idle > time.Hour:
		return usagef("--idle is %s; want %s to 1h", s.idle, minIdle)
	}
	if s.metrics != "" {
		if problem := (config.Metrics{Listen: s.metrics}).Problem(); problem != "" {
			return usagef("--metrics %s", problem)
		}
	}
	return nil
}

func (a *app) work(ctx context.Context, s workSettings) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	d, reg, err := a.registered(ctx, config.OpenOptions{Create: true})
	if err != nil {
		return 0, err
	}
	if s.noPrune {
		d.Config.Retention = config.Retention{}
	}
	d.Schedule = a.scheduler.Run
	h, err := server.NewWorkers(ctx, d, reg)
	if err != nil {
		d.Close()
		return 0, err
	}
	endMetrics, err := h.ServeMetrics(cmp.Or(s.metrics, d.Config.Metrics.Listen))
	if err != nil {
		h.Close()
		return 0, err
	}
	defer endMetrics()
	if err := d.RecordConfiguration(ctx, server.ConfigurationEvent{Event: server.Started, Command: "work"}, d.Config); err != nil {
		h.Close()
		return 0, err
	}
	d.Log.Info("working", "ledger", d.Config.Ledger.String(), "parallel", s.parallel, "keeps", spelledKeep(d.Config.Retention.Keep))
	return 0, h.Run(ctx, engine.WorkOptions{Parallel: s.parallel, Idle: s.idle}, s.grace, nil, nil)
}
