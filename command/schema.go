package command

import (
	"context"
	_ "embed" // for the example

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/intent"
)

//go:embed example.json
var example []byte

func (a *app) schemaCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of an intent",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			text := intent.Schema()
			if show {
				text = example
			}
			_, err := a.stdout.Write(text)
			return 0, err
		}),
	}
	cmd.Flags().BoolVar(&show, "example", false, "an intent for the destination that `readback init` writes, instead")
	return cmd
}
