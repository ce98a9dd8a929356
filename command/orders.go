package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// ordersCommand serves the destination of tests and demonstrations. It is hidden: it has
// no use in production.
func (a *app) ordersCommand() *cobra.Command {
	var o orders.RunOptions
	var class string
	var faults []string
	cmd := &cobra.Command{
		Use:    "simulated-orders",
		Short:  "Serve a destination to try things out with, until SIGTERM or SIGINT",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			c := orders.Class(class)
			if !slices.Contains(orders.Classes(), c) {
				return 0, usagef("--class is %q; want one of %v", class, orders.Classes())
			}
			o.Options = c.Options()
			for _, text := range faults {
				f, err := orders.ParseFault(text)
				if err != nil {
					return 0, usagef("--fault: %w", err)
				}
				o.Faults = append(o.Faults, f)
			}
			return 0, orders.Run(ctx, o, a.stdout)
		}),
	}
	cmd.Flags().StringVar(&o.LogPath, "log", "", "the file that stores the effects (default memory only)")
	cmd.Flags().StringVar(&o.Address, "address", "127.0.0.1:0", "where to listen")
	cmd.Flags().StringVar(&class, "class", string(orders.Plain), "what it can do: native, unique, plain or lagging")
	cmd.Flags().StringArrayVar(&faults, "fault", nil, `a fault, for example "lost-answer,op=create,times=1"; may be repeated`)
	return cmd
}
