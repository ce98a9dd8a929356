package command

import (
	"github.com/spf13/cobra"
)

const about = `readback executes writes to systems that you do not own: it records an intent, sends
it once, reads the destination back, and returns what is true there.

  readback init                    write a configuration with comments
  readback submit -f intent.json   make a write and wait for its outcome
  readback show ID                 show every event of a write
  readback review                  list the writes that wait for a reviewer
  readback status                  show what needs attention`

// root is the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "readback",
		Short:         "Writes that are read back",
		Long:          about + "\n\n" + exitTable(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		// Without a command it prints the help; it fails, so that a script that forgot
		// the command notices.
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.json {
				if err := cmd.Help(); err != nil {
					return err
				}
			}
			return usagef("a command is missing")
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "the configuration (default $READBACK_CONFIG, else ./readback.yaml)")
	flags.StringVar(&a.tenant, "tenant", "", "the tenant (default as configured)")
	flags.BoolVar(&a.json, "json", false, "print JSON on standard output, errors included")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more on standard error")
	root.AddCommand(
		a.submitCommand(), a.showCommand(), a.policyCommand(), a.operationCommand(), a.workflowCommand(), a.listCommand(), a.resumeCommand(), a.reviewCommand(), a.workCommand(), a.sagaCommand(), a.serveCommand(), a.mcpCommand(), a.contractCommand(), a.pruneCommand(), a.eraseCommand(), a.holdCommand(), a.auditCommand(),
		a.statusCommand(), a.doctorCommand(), a.stopCommand(), a.releaseCommand(), a.stopsCommand(), a.tokenCommand(), a.keyCommand(), a.receiptCommand(),
		a.destinationsCommand(), a.catalogCommand(), a.declaredCommand(), a.probeCommand(), a.evalCommand(), a.reconcileCommand(), a.initCommand(), a.configCommand(), a.healthcheckCommand(), a.schemaCommand(), a.versionCommand(), a.demoCommand(), a.ordersCommand(),
	)
	return root
}
