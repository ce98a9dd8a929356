package mcp_test

import (
	"context"
	"maps"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// The server of a tool learns the trace of the call, and nothing else that callers
// pass on.
func TestTheTraceGoesAlong(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	s := fakemcp.New(fakemcp.NewWorld())
	var mu sync.Mutex
	var metas []map[string]any
	s.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if call, ok := req.(*sdk.CallToolRequest); ok {
				mu.Lock()
				metas = append(metas, maps.Clone(call.Params.Meta))
				mu.Unlock()
			}
			return next(ctx, method, req)
		}
	})
	c, err := mcp.NewClient(mcp.Server{Transport: s.Transport}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Cut(); _ = c.Close() }()
	member, err := baggage.NewMember("customer", "canary")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	ctx := propagation.TraceContext{}.Extract(baggage.ContextWithBaggage(t.Context(), bag),
		propagation.MapCarrier{"traceparent": parent, "tracestate": "vendor=canary"})
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if _, err := c.Call(ctx, fakemcp.Get, map[string]any{"id": "1"}, func(*sdk.ProgressNotificationParams) {}); err != nil {
			t.Fatal(err)
		}
	}
	if len(metas) != 2 || metas[0]["traceparent"] != parent || metas[0]["progressToken"] == nil {
		t.Fatalf("_meta %v, want the trace in the first", metas)
	}
	for _, other := range []string{"tracestate", "baggage"} {
		if metas[0][other] != nil {
			t.Errorf("_meta has %s %v", other, metas[0][other])
		}
	}
	if _, there := metas[1]["traceparent"]; there {
		t.Errorf("_meta %v without a trace", metas[1])
	}
}
