package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
)

func (a *app) initCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a configuration with comments",
		Args:  cobra.NoArgs,
		RunE:  a.does(func(context.Context, []string) (int, error) { return a.init(force) }),
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

const firstSteps = `Wrote %[1]s. To try it out:

  readback simulated-orders --address 127.0.0.1:8177 &
  readback schema --example > intent.json
  readback submit -f intent.json
`

func (a *app) init(force bool) (int, error) {
	path := cmp.Or(a.config, a.env(config.Variable), config.FileName)
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, how, 0o600) // it names secrets, though it holds none
	if errors.Is(err, fs.ErrExist) {
		return 0, usagef("%s is there already; --force overwrites it", path)
	}
	if err != nil {
		return 0, err
	}
	_, err = f.Write(config.Template())
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return 0, a.print(map[string]string{"wrote": path}, func() string { return fmt.Sprintf(firstSteps, path) })
}
