package mcpapi

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/engine"
)

// metaTrace is the member of a request's _meta with its trace, as the protocol defines
// it. tracestate and baggage are ignored.
const metaTrace = "traceparent"

// traced puts a call of a tool into the trace of its _meta, or else of its header. A
// malformed one is ignored.
func traced(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		return next(inTrace(ctx, req), method, req)
	}
}

func inTrace(ctx context.Context, req mcp.Request) context.Context {
	call, ok := req.(*mcp.CallToolRequest)
	if !ok || call.Params == nil {
		return ctx
	}
	if text, there := call.Params.Meta[metaTrace].(string); there {
		return engine.WithTraceparent(ctx, text)
	}
	if extra := req.GetExtra(); extra != nil {
		if all := extra.Header.Values(metaTrace); len(all) == 1 {
			return engine.WithTraceparent(ctx, all[0])
		}
	}
	return ctx
}
