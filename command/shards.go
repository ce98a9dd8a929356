package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
)

func (a *app) shardsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shards",
		Short: "Tenants in several databases: where they are, and moves",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("the subcommand is missing; want list, check, move, resume, abandon or keep")
		}),
	}
	cmd.AddCommand(a.shardsListCommand(), a.shardsCheckCommand(), a.shardsMoveCommand(), a.shardsResumeCommand(), a.shardsAbandonCommand(), a.shardsKeepCommand())
	return cmd
}

// sharded runs a command on a ledger in several databases.
func (a *app) sharded(ctx context.Context, f func(l *shards.Ledger) (int, error)) (int, error) {
	c, err := a.settings()
	if err != nil {
		return 0, err
	}
	d, err := a.open(ctx, c, config.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	l, ok := d.Ledger.(*shards.Ledger)
	if !ok {
		return 0, usagef("the ledger is not in several databases; want ledger.shards in the configuration")
	}
	return f(l)
}

func (a *app) shardsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the shards, and the tenants in the directory",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return a.sharded(ctx, func(l *shards.Ledger) (int, error) { return a.listShards(ctx, l) })
		}),
	}
}

// shardView and placeView are what list prints.
type shardView struct {
	Name      string `json:"name"`
	Directory bool   `json:"directory"`
	Reached   bool   `json:"reached"`
	Error     string `json:"error,omitempty"`
	Tenants   int    `json:"tenants"`
}

type placeView struct {
	Tenant   string `json:"tenant"`
	Shard    string `json:"shard"`
	Epoch    int64  `json:"epoch"`
	State    string `json:"state"`
	Target   string `json:"target,omitempty"`
	Previous string `json:"previous,omitempty"`
}

func (a *app) listShards(ctx context.Context, l *shards.Ledger) (int, error) {
	partitions, err := l.Partitions(ctx)
	if err != nil {
		return 0, err
	}
	placements, err := l.Placements(ctx)
	if err != nil {
		return 0, err
	}
	all, places, code := []shardView{}, []placeView{}, 0
	for _, p := range partitions {
		v := shardView{Name: p.Name, Directory: p.Home, Reached: p.Err == nil, Tenants: p.Tenants}
		if p.Err != nil {
			v.Error, code = p.Err.Error(), exitAttention
		}
		all = append(all, v)
	}
	for _, p := range placements {
		places = append(places, placeView{p.Tenant, p.Partition, p.Epoch, string(p.State), p.Target, p.Previous})
	}
	return code, a.print(map[string]any{"shards": all, "tenants": places}, func() string {
		rows := []string{"SHARD\tTENANTS\tSTATE"}
		for _, v := range all {
			state := "reached"
			if !v.Reached {
				state = report.Safe(v.Error)
			}
			if v.Directory {
				state += ", has the directory"
			}
			rows = append(rows, strings.Join([]string{v.Name, strconv.Itoa(v.Tenants), state}, "\t"))
		}
		text := report.Table(rows...)
		if len(places) == 0 {
			return text
		}
		rows = []string{"TENANT\tSHARD\tEPOCH\tSTATE"}
		for _, p := range places {
			state := p.State
			if p.State == string(ledger.TenantDraining) {
				state = "moves to " + report.Safe(p.Target)
			}
			rows = append(rows, strings.Join([]string{report.Safe(p.Tenant), report.Safe(p.Shard), strconv.FormatInt(p.Epoch, 10), state}, "\t"))
		}
		return text + "\n" + report.Table(rows...)
	})
}

func (a *app) shardsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Compare the directory with what each shard owns",
		Long: `Compare the directory with what each shard owns. A tenant that two shards own, or that
its shard does not have, is named; it is refused until that is decided. Exit code 40 if
there is one, or if a shard cannot be reached.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return a.sharded(ctx, func(l *shards.Ledger) (int, error) { return a.checkShards(ctx, l) })
		}),
	}
}

func (a *app) checkShards(ctx context.Context, l *shards.Ledger) (int, error) {
	problems, err := shardProblems(ctx, l)
	if err != nil {
		return 0, err
	}
	code := 0
	if len(problems) > 0 {
		code = exitAttention
	}
	return code, a.print(map[string]any{"problems": problems}, func() string {
		if len(problems) == 0 {
			return "The directory and the shards agree.\n"
		}
		var b strings.Builder
		for _, p := range problems {
			fmt.Fprintf(&b, "%s\n", report.Safe(p))
		}
		return b.String()
	})
}

// shardProblems are the shards that cannot be reached, and the tenants that are refused.
func shardProblems(ctx context.Context, l *shards.Ledger) ([]string, error) {
	problems := []string{}
	partitions, err := l.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		if p.Err != nil {
			problems = append(problems, fmt.Sprintf("shard %s cannot be reached; its tenants are refused: %v", p.Name, p.Err))
		}
	}
	found, err := l.Check(ctx)
	for _, f := range found {
		problems = append(problems, f.Text)
	}
	return problems, err
}

func (a *app) shardsMoveCommand() *cobra.Command {
	var to string
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "move TENANT --to NAME",
		Short: "Move a tenant to another shard",
		Long: `Move a tenant to another shard, while others work. What workers have is finished first;
until the tenant is in its new shard its requests are refused as unavailable, and are to
be made again. Writes that wait move as they are.

A move that was interrupted has lost nothing: ` + "`readback shards resume`" + ` continues it,
` + "`readback shards abandon`" + ` gives it up.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if to == "" {
				return 0, usagef("--to is missing; want the name of a shard")
			}
			return a.moves(ctx, args[0], within, func(ctx context.Context, l *shards.Ledger, report func(shards.Step)) error {
				return l.Move(ctx, args[0], to, report)
			})
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "the shard (required)")
	waiting(cmd, &within)
	return cmd
}

func waiting(cmd *cobra.Command, within *time.Duration) {
	cmd.Flags().DurationVar(within, "within", 10*time.Minute, "how long to wait for workers, and to copy")
}

func (a *app) shardsResumeCommand() *cobra.Command {
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "resume TENANT",
		Short: "Continue a move that was interrupted",
		Long: `Continue a move of a tenant that was interrupted.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			return a.moves(ctx, args[0], within, func(ctx context.Context, l *shards.Ledger, report func(shards.Step)) error {
				return l.Resume(ctx, args[0], report)
			})
		}),
	}
	waiting(cmd, &within)
	return cmd
}

// moves runs a move, and prints its steps as they are done.
func (a *app) moves(ctx context.Context, tenant string, within time.Duration, move func(context.Context, *shards.Ledger, func(shards.Step)) error) (int, error) {
	if within <= 0 {
		return 0, usagef("--within is %s; want more than zero", within)
	}
	return a.sharded(ctx, func(l *shards.Ledger) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		err := move(ctx, l, func(s shards.Step) {
			if !a.json {
				_, _ = fmt.Fprintln(a.stderr, report.Safe(s.Text))
			}
		})
		if err != nil {
			return 0, err
		}
		return a.printPlace(ctx, l, tenant)
	})
}

// printPlace prints where a tenant is.
func (a *app) printPlace(ctx context.Context, l *shards.Ledger, tenant string) (int, error) {
	all, err := l.Placements(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.Tenant == tenant {
			v := placeView{p.Tenant, p.Partition, p.Epoch, string(p.State), p.Target, p.Previous}
			return 0, a.print(v, func() string {
				return fmt.Sprintf("Tenant %s is in shard %s (epoch %d).\n", report.Safe(v.Tenant), report.Safe(v.Shard), v.Epoch)
			})
		}
	}
	return 0, fmt.Errorf("%w: the directory has no tenant %q", shards.ErrMove, tenant)
}

func (a *app) shardsAbandonCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "abandon TENANT",
		Short: "Give a move up; the tenant stays where it is",
		Long: `Give a move of a tenant up. The tenant stays where it is. A move whose new shard owns
the tenant already cannot be given up; ` + "`readback shards resume`" + ` ends it.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			return a.sharded(ctx, func(l *shards.Ledger) (int, error) {
				if err := l.Abandon(ctx, args[0]); err != nil {
					return 0, err
				}
				return a.printPlace(ctx, l, args[0])
			})
		}),
	}
}

func (a *app) shardsKeepCommand() *cobra.Command {
	var in string
	cmd := &cobra.Command{
		Use:   "keep TENANT --in NAME",
		Short: "Decide which shard has a tenant that is refused",
		Long: `Decide which shard has a tenant that two shards own, or that another shard than that of
the directory owns: after a backup of one database was restored. The others give it up;
what they have of it stays there, and is ignored. Run ` + "`readback recover`" + ` if the shard that
keeps the tenant was the restored one.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if in == "" {
				return 0, usagef("--in is missing; want the name of a shard")
			}
			return a.sharded(ctx, func(l *shards.Ledger) (int, error) {
				if err := l.Keep(ctx, args[0], in); err != nil {
					return 0, err
				}
				return a.printPlace(ctx, l, args[0])
			})
		}),
	}
	cmd.Flags().StringVar(&in, "in", "", "the shard (required)")
	return cmd
}
