package mcpapi

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/mcpapi/tool"
)

// OutcomeTool is get_outcome, for other servers whose tools submit to the same service.
func (s *Server) OutcomeTool() (*mcp.Tool, mcp.ToolHandler) { return getOutcome(), s.outcome }

// OutcomeToolName is its name, which no other tool may have.
const OutcomeToolName = tool.GetOutcome
