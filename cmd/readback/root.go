package main

import (
	"github.com/spf13/cobra"
)

const about = `readback takes writes to systems you do not own: it records an intent, sends it
once, reads the destination back, and answers with what it saw.

  readback init                    write a configuration with a comment on everything
  readback submit -f intent.json   make a write and wait for its outcome
  readback show ID                 the life of a write
  readback review                  what waits for a person
  readback status                  what needs attention`

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
	flags.StringVar(&a.tenant, "tenant", "", "the tenant that is meant (default that of the configuration)")
	flags.BoolVar(&a.json, "json", false, "answer in JSON on standard output, errors included")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more on standard error")
	root.AddCommand(
		a.submitCommand(), a.showCommand(), a.policyCommand(), a.operationCommand(), a.workflowCommand(), a.listCommand(), a.resumeCommand(), a.reviewCommand(), a.workCommand(), a.sagaCommand(), a.serveCommand(), a.mcpCommand(), a.contractCommand(), a.pruneCommand(), a.eraseCommand(), a.holdCommand(), a.auditCommand(),
		a.statusCommand(), a.doctorCommand(), a.stopCommand(), a.releaseCommand(), a.stopsCommand(), a.tokenCommand(), a.keyCommand(), a.receiptCommand(),
		a.destinationsCommand(), a.catalogCommand(), a.declaredCommand(), a.probeCommand(), a.evalCommand(), a.initCommand(), a.configCommand(), a.healthcheckCommand(), a.schemaCommand(), a.versionCommand(), a.demoCommand(), a.ordersCommand(),
	)
	return root
}
