package command

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/internal/server"
	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			v := server.Built()
			return 0, a.print(v, func() string { return fmt.Sprintf("readback %s (%s, %s)\n", v.Version, v.Revision, v.Go) })
		}),
	}
}
