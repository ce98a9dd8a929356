package command

import (
	"context"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/server"
)

// speaker is a server of one client on standard input and output.
type speaker interface {
	Stdio(ctx context.Context, who access.Identity) error
}

// mcpServer is the server of `readback mcp`: a gateway if one is named, else the configured
// tools.
func mcpServer(ctx context.Context, h *server.Services, a *app, s mcpSettings) (speaker, error) {
	if s.gateway == "" {
		if len(h.Instance.Config.MCP.Tools) == 0 {
			h.Instance.Log.Warn("there are no tools but get_outcome: mcp.tools in the configuration names none")
		}
		return h.MCP(mcpapi.Config{Workflow: s.workflow, In: a.stdin, Out: a.stdout})
	}
	all := h.Instance.Config.MCP.Gateways
	i := slices.IndexFunc(all, func(g config.Gateway) bool { return g.Name == s.gateway })
	if i < 0 {
		var names []string
		for _, g := range all {
			names = append(names, g.Name)
		}
		return nil, usagef("--gateway is %q; mcp.gateway in the configuration names %q", s.gateway, strings.Join(names, ", "))
	}
	return h.Gateway(ctx, all[i], mcpgate.Config{Workflow: s.workflow, In: a.stdin, Out: a.stdout})
}
