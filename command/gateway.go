package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/report"
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

// maxTools is how many tools of a kind doctor names.
const maxTools = 30

// examineGateways shows how each gateway treats the tools of its server, and what the
// server offers that it does not pass. A server that cannot be reached is reported as a
// destination.
func examineGateways(ctx context.Context, e *examination, c config.Config, reg *connectors.Registry) {
	for _, g := range c.MCP.Gateways {
		kinds := kindsOf(reg, g.Destination)
		if len(kinds) == 0 {
			continue
		}
		conn, _, err := reg.Lookup(g.Destination, kinds[0])
		server, ok := conn.(*mcp.Connector)
		if err != nil || !ok {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, probeTime)
		found, err := (&mcpgate.Config{Connector: server, Reads: g.Reads, Hide: g.Hide}).Survey(asking)
		cancel()
		if err == nil {
			e.ok("gateway "+g.Name, "%s", surveyed(found))
		}
	}
}

func surveyed(s mcpgate.Survey) string {
	text := fmt.Sprintf("verifies %s and passes %s that read", plural(len(s.Verified), "tool"), plural(len(s.Reads), "tool"))
	for _, of := range []struct {
		what  string
		names []string
	}{
		{"without a contract, so called once and unverified", s.Unverified}, {"hidden", s.Hidden},
		{"offered by the server and not passed", s.Unpassed},
	} {
		if len(of.names) == 0 {
			continue
		}
		text += "; " + of.what + ": " + report.Safe(strings.Join(of.names[:min(len(of.names), maxTools)], ", "))
		if more := len(of.names) - maxTools; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}
