package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Three ways to write 100 orders, counted by the destination",
		Long:  "Needs no configuration and leaves nothing behind.",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return 0, demo.Run(ctx, demo.Options{JSON: a.json, Progress: a.stderr}, a.stdout)
		}),
	}
}
