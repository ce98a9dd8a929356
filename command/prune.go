package command

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
)

func (a *app) pruneCommand() *cobra.Command {
	var keep, remember string
	dry := false
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Forget writes that were settled long ago, of every tenant",
		Long: `Forget writes that were settled long ago, of every tenant, in small steps while
workers continue.

A write that was settled longer ago than --keep loses its intent, evidence and events.
A tombstone keeps its keys and its outcome: a repeat gets the outcome and is not sent.
A write that was settled longer ago than --remember is forgotten, and a repeat is a new
write. Open writes, and writes that still need a recheck, stay. Write durations as 30d
or 12h. A tenant or a destination with its own time (retention.tenants and
retention.destinations in the configuration) keeps it in spite of --keep. Without
retention in the configuration both flags are required: the default of 400 days is for
workers only.

--dry-run deletes nothing and says what a prune would delete.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.prune(ctx, keep, remember, dry) }),
	}
	cmd.Flags().StringVar(&keep, "keep", "", "how long a settled write keeps everything (default retention.keep of the configuration)")
	cmd.Flags().StringVar(&remember, "remember", "", "how long its keys and outcome stay known (default retention.remember of the configuration)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only count what would be pruned")
	return cmd
}

func (a *app) prune(ctx context.Context, keep, remember string, dry bool) (int, error) {
	var asked config.Retention
	for _, f := range []struct {
		name, text string
		into       *time.Duration
	}{{"keep", keep, &asked.Keep}, {"remember", remember, &asked.Remember}} {
		if f.text == "" {
			continue
		}
		var err error
		if *f.into, err = config.ParseAge(f.text); err != nil {
			return 0, usagef("--%s: %w", f.name, err)
		}
	}
	d, reg, err := a.registered(ctx, config.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if r := d.Config.Retention; !r.Default { // which the operator has configured
		asked.Keep, asked.Remember = cmp.Or(asked.Keep, r.Keep), cmp.Or(asked.Remember, r.Remember)
		asked.Tenants, asked.Destinations = r.Tenants, r.Destinations
	}
	longest := server.LongestWindow(reg)
	switch {
	case asked.Keep == 0:
		return 0, usagef("--keep is missing, and so is retention.keep in the configuration; want how long a settled write keeps everything, such as 30d")
	case asked.Remember == 0:
		return 0, usagef("--remember is missing, and so is retention in the configuration; want how long keys stay known, such as 400d")
	case asked.Remember < asked.Keep:
		return 0, usagef("--remember is %s; want at least --keep, %s", report.Short(asked.Remember), spelledKeep(asked.Keep))
	case !asked.Prunes():
		return 0, usagef("retention.keep is forever; nothing is pruned. Give --keep and --remember to prune once")
	case asked.Remember < longest.Lasts:
		return 0, usagef("--remember is %s; want at least %s, %s: a repeat within it would be sent again", report.Short(asked.Remember), report.Short(longest.Lasts), longest.What)
	}
	if _, err := asked.Rule().Checked(); err != nil {
		return 0, usagef("%w", err)
	}
	if dry {
		return a.prunable(ctx, d, asked)
	}
	var done struct {
		server.Pruned
		// Error names writes that were not pruned because they cannot be read.
		Error *failure `json:"error,omitempty"`
	}
	show, end := a.progress()
	defer end()
	d.Log.Info("counting what can be pruned")
	total, err := d.Prunable(ctx, asked)
	if _, err = partly(err); err != nil {
		return 0, interrupted(ctx, err, "nothing was pruned; run it again")
	}
	of := total.Compacted + total.Forgotten
	done.Pruned, err = d.PruneAll(ctx, asked, func(p server.Pruned) {
		d.Log.Info("pruning", "compacted", p.Compacted, "forgotten", p.Forgotten)
		show("pruning", p.Compacted+p.Forgotten, of)
	})
	end()
	if did := done.Compacted + done.Forgotten; err != nil && ctx.Err() != nil {
		return 0, interrupted(ctx, err, "pruned %s of %s; run it again to continue", humanize.Comma(int64(did)), humanize.Comma(int64(max(of, did))))
	}
	if done.Error, err = partly(err); err != nil && done.Compacted+done.Forgotten > 0 {
		err = fmt.Errorf("%s before it failed, and that stays so: %w", done.Text(), err)
	}
	if err != nil {
		return 0, err
	}
	return a.part(done, done.Error, func() string { return done.Text() + ".\n" })
}

// prunable prints what a prune would delete.
func (a *app) prunable(ctx context.Context, d *server.Instance, asked config.Retention) (int, error) {
	var would struct {
		server.Pruned
		Bytes int64 `json:"bytes"`
		// DryRun says that nothing was deleted.
		DryRun bool     `json:"dry_run"`
		Error  *failure `json:"error,omitempty"`
	}
	found, err := d.Prunable(ctx, asked)
	if would.Error, err = partly(err); err != nil {
		return 0, err
	}
	would.Pruned, would.Bytes, would.DryRun = server.Pruned{Compacted: found.Compacted, Forgotten: found.Forgotten}, found.Bytes, true
	return a.part(would, would.Error, func() string {
		return fmt.Sprintf("A prune would make %d settled writes tombstones and forget %d tombstones: %s of intents,\nevidence and events. Nothing was deleted.\n",
			found.Compacted, found.Forgotten, humanize.IBytes(uint64(found.Bytes))) //nolint:gosec // not negative
	})
}

// spelledKeep is a retention time, for a sentence.
func spelledKeep(keep time.Duration) string {
	if keep == ledger.Forever {
		return "ever"
	}
	return report.Short(keep)
}
