package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/erasure"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
)

func (a *app) holdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "Legal holds: writes that are neither pruned nor erased",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("hold what? want add, list or release")
		}),
	}
	cmd.AddCommand(a.holdAddCommand(), a.holdListCommand(), a.holdReleaseCommand())
	return cmd
}

func (a *app) holdAddCommand() *cobra.Command {
	var n naming
	var by, reason string
	var all bool
	cmd := &cobra.Command{
		Use:   "add --all|--destination NAME [--key JSON]|--write ID --reason TEXT",
		Short: "Add a legal hold for the tenant",
		Long: `Add a legal hold. Until it is released, nothing that it covers is pruned or erased,
whatever the retention is. It covers everything of the tenant (--all), a destination,
one record by its key, or one write; an undo is covered with its write. The audit log
records who added and released it, when and why.

Agents must not be able to run this command.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return a.addHold(ctx, n, all, cmp.Or(by, me()), reason)
		}),
	}
	n.flags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "everything of the tenant")
	flags.StringVar(&reason, "reason", "", "the reason, such as a case number (required)")
	flags.StringVar(&by, "by", "", "your name (default the user of this machine)")
	return cmd
}

func (a *app) addHold(ctx context.Context, n naming, all bool, by, reason string) (int, error) {
	named := n != naming{}
	switch {
	case all && named:
		return 0, usagef("--all and names are given; want either everything or names")
	case !all && !named:
		return 0, usagef("nothing is named; want --destination, --destination with --key, --write, or --all")
	case n.key != "" && n.destination == "":
		return 0, usagef("--destination is missing; want the one that --key is a key of")
	case n.write != "" && (n.destination != "" || n.key != ""):
		return 0, usagef("--write and --destination are given; want one of them")
	case strings.TrimSpace(reason) == "":
		return 0, usagef("--reason is missing; want why, such as the number of a case")
	}
	d, s, err := a.erasures(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if err := knows(d, n.destination, "hold"); err != nil {
		return 0, err
	}
	of, err := n.subject(ctx, a, d)
	if err != nil {
		return 0, err
	}
	if _, err := s.Hold(ctx, of, by, d.Text(d.Tenant, reason)); err != nil {
		return 0, err
	}
	return a.printHolds(ctx, s, d)
}

func (a *app) holdListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the legal holds of the tenant, including released ones",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, s, err := a.erasures(ctx)
			if err != nil {
				return 0, err
			}
			defer d.Close()
			return a.printHolds(ctx, s, d)
		}),
	}
}

func (a *app) holdReleaseCommand() *cobra.Command {
	var by, reason string
	cmd := &cobra.Command{
		Use:   "release ID --reason TEXT",
		Short: "Release a legal hold of the tenant",
		Long: `Release a legal hold. From then on the writes that it covered can be pruned and
erased.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if strings.TrimSpace(reason) == "" {
				return 0, usagef("--reason is missing; want why it ends")
			}
			d, s, err := a.erasures(ctx)
			if err != nil {
				return 0, err
			}
			defer d.Close()
			if _, err := s.Release(ctx, d.Tenant, args[0], cmp.Or(by, me()), d.Text(d.Tenant, reason)); err != nil {
				return 0, err
			}
			return a.printHolds(ctx, s, d)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason (required)")
	cmd.Flags().StringVar(&by, "by", "", "your name (default the user of this machine)")
	return cmd
}

func (a *app) printHolds(ctx context.Context, s *erasure.Service, d *server.Instance) (int, error) {
	all, total, err := s.Holds(ctx, d.Tenant)
	if err != nil {
		return 0, err
	}
	return 0, a.print(map[string]any{"tenant": d.Tenant, "holds": all, "total": total}, func() string {
		if total == 0 {
			return fmt.Sprintf("Tenant %s has no legal holds.\n", report.Safe(d.Tenant))
		}
		rows := []string{"ID\tSTATE\tCOVERS\tADDED\tBY\tREASON"}
		for _, h := range all {
			state := "active"
			if !h.Released.IsZero() {
				state = fmt.Sprintf("released at %s by %s: %s", h.Released.UTC().Format(time.RFC3339), report.Safe(h.ReleasedBy), report.Safe(h.Why))
			}
			rows = append(rows, strings.Join([]string{h.ID, state, coveredBy(h), h.At.UTC().Format(time.RFC3339), report.Safe(h.By), report.Safe(h.Reason)}, "\t"))
		}
		return report.Table(rows...)
	})
}

// coveredBy describes what a hold covers. A key is not shown: only its digest is stored.
func coveredBy(h ledger.Hold) string {
	switch {
	case len(h.KeyDigests) > 0:
		return fmt.Sprintf("one record at %s", report.Safe(h.Destination))
	case len(h.Writes) > 0:
		return "write " + string(h.Writes[0])
	case h.Destination != "":
		return "everything at " + report.Safe(h.Destination)
	}
	return "everything of the tenant"
}
