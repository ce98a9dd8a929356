package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
)

const (
	// workflowVariable names the workflow of `readback mcp` where no flag does.
	workflowVariable = "READBACK_WORKFLOW"
	// mcpName is the default caller of `readback mcp`.
	mcpName = "mcp"
	// mcpParallel is how many other writes the process works on at once: it shares a
	// user's machine.
	mcpParallel = 4
)

// mcpSettings are the flags of `readback mcp`.
type mcpSettings struct {
	workflow, name, gateway string
	grace                   time.Duration
}

func (a *app) mcpCommand() *cobra.Command {
	var s mcpSettings
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the configured tools to one MCP client on standard input and output",
		Long: `Serve the tools of mcp.tools in the configuration, and get_outcome, to the client
of the Model Context Protocol that started this process: one message per line on
standard input and output. Logs go to standard error. The process ends when the client
closes standard input.

The client has the role agent of the configured tenant: it can make writes and read
their outcomes, and cannot make decisions. The process is a worker as well. A write
that is open when the process ends continues when a worker runs again.

The session is a workflow, and readback numbers the calls of each tool in it. With
--workflow, or $` + workflowVariable + `, the session has that name: a client that repeats its work
after a crash gets the outcomes of its earlier calls. Without a name each process is a
new workflow.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return 0, a.mcp(ctx, s) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.workflow, "workflow", "", "the name of the session as a workflow (default $"+workflowVariable+", else a random one)")
	flags.StringVar(&s.gateway, "gateway", "", "serve the gateway of this name in mcp.gateway, instead of the configured tools")
	flags.StringVar(&s.name, "as", mcpName, "the recorded name of the caller")
	flags.DurationVar(&s.grace, "grace", server.Grace, "how long begun sends and reads may last after the client disconnected")
	return cmd
}

func (a *app) mcp(ctx context.Context, s mcpSettings) error {
	if s.workflow == "" {
		s.workflow = a.env(workflowVariable)
	}
	if s.grace < 0 {
		return usagef("--grace is %s; want 0 or more", s.grace)
	}
	if err := mcpapi.CheckName(s.name); err != nil {
		return usagef("--as is %q; want %s", report.Safe(s.name), err)
	}
	if s.workflow != "" {
		if err := mcpapi.CheckName(s.workflow); err != nil {
			return usagef("--workflow (or $%s) is %q; want %s", workflowVariable, report.Safe(s.workflow), err)
		}
	}
	c, err := a.settings()
	if err != nil {
		return err
	}
	reg, err := server.Check(c, a.env)
	if err != nil {
		return err
	}
	d, err := a.open(ctx, c, config.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	h, err := server.NewServices(ctx, d, reg, c.Server.PublicURL)
	if err != nil {
		d.Close()
		return err
	}
	speaks, err := mcpServer(ctx, h, a, s)
	if err == nil {
		err = d.RecordConfiguration(ctx, server.ConfigurationEvent{Event: server.Started, Command: "mcp"}, c)
	}
	if err != nil {
		h.Close()
		return err
	}
	speaking, hush := context.WithCancel(ctx)
	defer hush()
	spoken := make(chan error, 1)
	go func() {
		spoken <- speaks.Stdio(speaking, access.Identity{Tenant: d.Tenant, Name: s.name, Role: engine.RoleAgent, Via: "stdio"})
	}()
	return h.Run(ctx, engine.WorkOptions{Parallel: mcpParallel}, s.grace, spoken, nil)
}
