package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger/sqlite"
)

func (a *app) workCommand() *cobra.Command {
	var parallel int
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Continue whatever is due, until SIGTERM or SIGINT",
		Long: `Continue whatever is due, of every tenant: writes that wait, writes that a dead
process left, owed rechecks. On SIGTERM or SIGINT it finishes the sends and reads
that are under way, hands everything else back to the ledger, and ends with 0. A
second signal ends it at once, which loses nothing either.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.work(ctx, parallel) }),
	}
	cmd.Flags().IntVar(&parallel, "parallel", 16, "how many writes are worked on at once")
	return cmd
}

func (a *app) work(ctx context.Context, parallel int) (int, error) {
	if parallel < 1 || parallel > 1000 {
		return 0, usagef("--parallel is %d; want 1 to 1000", parallel)
	}
	d, e, err := a.bench(ctx, true, sqlite.Options{})
	if err != nil {
		return 0, err
	}
	d.log.Info("working", "ledger", d.config.Ledger, "parallel", parallel)
	err = untilStopped(ctx, e, func() error { return e.Work(ctx, &engine.WorkOptions{Parallel: parallel}) })
	if errors.Is(err, errLate) {
		return 0, err // the ledger is still in use, and ends with the process
	}
	e.Close()
	d.close()
	d.log.Info("stopped")
	return 0, err
}
