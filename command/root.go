package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/server"
)

// newcomer is what the program prints without arguments.
const newcomer = `readback makes writes to systems that you do not own: it records each, sends it once,
reads the destination back, and returns what it found there.

  readback dev       try it out: a server, a destination, and two writes
  readback init      write a configuration for a destination of yours
  readback doctor    check the configuration, the ledger and each destination
  readback submit    make a write, and wait for its outcome

` + "`readback --help` lists all commands, `readback COMMAND --help` explains one.\n"

// root is the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "readback",
		Short:         "Writes that are read back",
		Long:          "readback makes writes to systems that you do not own, once, and reads them back.",
		Version:       server.Built().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		// Without a command it fails, so that a script that forgot the command notices.
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.json {
				cmd.Print(newcomer)
			}
			return usagef("a command is missing")
		},
	}
	root.SetVersionTemplate("readback {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "the configuration (default $READBACK_CONFIG, else ./readback.yaml)")
	flags.StringVar(&a.tenant, "tenant", "", "the tenant (default as configured)")
	flags.BoolVar(&a.json, "json", false, "print JSON on standard output, errors included")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more on standard error")
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Start:", []*cobra.Command{a.devCommand(), a.initCommand(), a.doctorCommand(), a.demoCommand(), a.chaosCommand()}},
		{"writes", "Writes:", []*cobra.Command{a.submitCommand(), a.showCommand(), a.listCommand(), a.reviewCommand(), a.resumeCommand(), a.sagaCommand(), a.operationCommand(), a.workflowCommand(), a.receiptCommand()}},
		{"run", "Run a server:", []*cobra.Command{a.serveCommand(), a.workCommand(), a.mcpCommand(), a.statusCommand(), a.stopCommand(), a.releaseCommand(), a.stopsCommand(), a.recoverCommand(), a.tokenCommand(), a.healthcheckCommand()}},
		{"destinations", "Destinations:", []*cobra.Command{a.destinationsCommand(), a.catalogCommand(), a.declaredCommand(), a.contractCommand(), a.probeCommand(), a.evalCommand(), a.reconcileCommand(), a.policyCommand()}},
		{"records", "The ledger and its evidence:", []*cobra.Command{a.auditCommand(), a.keyCommand(), a.pruneCommand(), a.eraseCommand(), a.holdCommand(), a.shardsCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.configCommand(), a.schemaCommand(), a.versionCommand(), a.ordersCommand(), &cobra.Command{
		Use: "exit-codes", Short: "What each exit code says", // a command without an action is a topic of help
		Long: "Exit codes say what a script can do next. --json says the rest.\n\n" + exitTable(),
	})
	suggesting(root)
	a.completing(root)
	return root
}

// suggesting makes every command that has commands of its own suggest one for a word that
// is none of them.
func suggesting(c *cobra.Command) {
	if !c.HasSubCommands() {
		return
	}
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("%s", text)
	}
	for _, below := range c.Commands() {
		suggesting(below)
	}
}
