package mcpgate_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestOverHTTP: the SDK's client lists and calls over streamable HTTP, and a caller of
// another tenant sees get_outcome alone.
func TestOverHTTP(t *testing.T) {
	b, up := shop(t, false, nil)
	s := b.connect("acme")
	if got := names(t, s); len(got) != 7 {
		t.Fatalf("tools %v", got)
	}
	meets(t, up, fault.Fault{Kind: fault.LostAnswer})
	r := b.call(s, fakemcp.Create, order("A-1"), nil)
	if !r.Verified || up.World.Effects("A-1") != 1 || up.World.Calls(fakemcp.Create) != 1 {
		t.Errorf("%+v, %d effects of %d calls", r, up.World.Effects("A-1"), up.World.Calls(fakemcp.Create))
	}
	outsider := b.connect("other")
	if d := cmp.Diff([]string{mcpapi.OutcomeToolName}, names(t, outsider)); d != "" {
		t.Errorf("the tools of another tenant (-want +got):\n%s", d)
	}
	if found := b.call(outsider, mcpapi.OutcomeToolName, map[string]any{"id": r.ID}, nil); found.Status != "refused" {
		t.Errorf("another tenant reads the write: %+v", found)
	}
}

// TestPromptsAndResourcesPassThrough, and so do errors and progress of tools
// that read.
func TestPromptsAndResourcesPassThrough(t *testing.T) {
	b, up := shop(t, false, nil)
	up.MCP.AddPrompt(&sdk.Prompt{Name: "greet"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: "hello"}, nil
	})
	up.MCP.AddResource(&sdk.Resource{Name: "orders", URI: "shop://orders"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "shop://orders", Text: "none"}}}, nil
	})
	ctx := context.Background()
	s := b.stdio(agent("acme"), nil)
	prompts, err := s.ListPrompts(ctx, nil)
	if err != nil || len(prompts.Prompts) != 1 {
		t.Errorf("prompts %+v, %v", prompts, err)
	}
	prompt, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "greet"})
	if err != nil || prompt.Description != "hello" {
		t.Errorf("prompt %+v, %v", prompt, err)
	}
	resource, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "shop://orders"})
	if err != nil || resource.Contents[0].Text != "none" {
		t.Errorf("resource %+v, %v", resource, err)
	}
	if _, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "shop://none"}); err == nil {
		t.Error("a resource that is not there was read")
	}
	missing, err := s.CallTool(ctx, &sdk.CallToolParams{Name: fakemcp.Get, Arguments: map[string]any{"id": "o-9"}})
	if err != nil || !missing.IsError || missing.Content[0].(*sdk.TextContent).Text != "no such order" {
		text, _ := json.Marshal(missing)
		t.Errorf("an error of a tool that reads: %s, %v", text, err)
	}
	other := b.stdio(agent("other"), nil)
	if listed, err := other.ListResources(ctx, nil); err == nil && len(listed.Resources) > 0 {
		t.Errorf("another tenant sees resources: %+v", listed.Resources)
	}
}

// TestAnswersOfReadsPassWhole: an image, a link, and structured content arrive as
// the tool gave them, and its arguments as the client gave them, whichever way the
// server is reached. 9007199254740993 is no double.
func TestAnswersOfReadsPassWhole(t *testing.T) {
	const content = `{"id":9007199254740993,"price":1.250,"text":"<\"é\\n"}`
	for _, way := range []string{"stdio", "events", "json"} {
		t.Run(way, func(t *testing.T) {
			up := fakemcp.New(fakemcp.NewWorld())
			tool, args := up.Tool(fakemcp.Find), new(atomic.Value)
			up.MCP.AddTool(tool, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				args.Store(string(req.Params.Arguments))
				return &sdk.CallToolResult{
					Content: []sdk.Content{&sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}, &sdk.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
						&sdk.ResourceLink{URI: "shop://orders", Name: "orders"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "shop://a", Blob: []byte("b")}}},
					StructuredContent: json.RawMessage(content),
				}, nil
			})
			behind := mcp.Server{Transport: up.Transport}
			if way != "stdio" {
				web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return up.MCP }, &sdk.StreamableHTTPOptions{JSONResponse: way == "json"}))
				t.Cleanup(web.Close)
				behind = mcp.Server{URL: web.URL}
			}
			conn, err := mcp.New(pinned(t, up), mcp.Options{Server: behind})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(up.Cut)
			b := newBench(t, conn, nil, nil)
			s := b.raw()
			s.ask(1, rawInitialize)
			s.ask(0, rawInitialized)
			got := s.ask(2, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+fakemcp.Find+`","arguments":{"order_id":"A-1","n":9007199254740993}}}`)
			for _, part := range []string{
				`{"type":"image","mimeType":"image/png","data":"cG5n"}`, `{"type":"audio","mimeType":"audio/wav","data":"d2F2"}`,
				`{"type":"resource_link","uri":"shop://orders","name":"orders"}`, `{"type":"resource","resource":{"uri":"shop://a","blob":"Yg=="}}`,
				`"structuredContent":` + strings.ReplaceAll(content, "<", `\u003c`),
			} {
				if !strings.Contains(got, part) {
					t.Errorf("%s lacks %s", got, part)
				}
			}
			if want := `{"order_id":"A-1","n":9007199254740993}`; args.Load() != want {
				t.Errorf("the arguments came as %v, want %s", args.Load(), want)
			}
		})
	}
}

// Callers' other metadata stays here: the upstream server gets the trace at most.
func TestTheEnvelopeOfCallersStaysHere(t *testing.T) {
	b, up := shop(t, false, nil)
	up.MCP.AddPrompt(&sdk.Prompt{Name: "greet"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	})
	var mu sync.Mutex
	metas := map[string]map[string]any{}
	up.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if p := req.GetParams(); p != nil && method != "initialize" {
				mu.Lock()
				metas[method] = maps.Clone(p.GetMeta())
				mu.Unlock()
			}
			return next(ctx, method, req)
		}
	})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	envelope := func() sdk.Meta {
		return sdk.Meta{"traceparent": parent, "tracestate": "vendor=canary", "baggage": "customer=canary"}
	}
	ctx, s := context.Background(), b.stdio(agent("acme"), nil)
	_, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Meta: envelope(), Name: "greet"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.ReadResource(ctx, &sdk.ReadResourceParams{Meta: envelope(), URI: "shop://none"})
	_, _ = s.CallTool(ctx, &sdk.CallToolParams{Meta: envelope(), Name: fakemcp.Get, Arguments: map[string]any{"id": "o-9"}})
	mu.Lock()
	defer mu.Unlock()
	for _, method := range []string{"prompts/get", "resources/read", "tools/call"} {
		if metas[method]["traceparent"] != parent || metas[method]["tracestate"] != nil || metas[method]["baggage"] != nil {
			t.Errorf("%s was sent with _meta %v, want the trace and nothing else of the caller's", method, metas[method])
		}
	}
}

// TestProgressOfReadsPassesThrough under the client's own token. Progress at the very end
// of a call may be overtaken by its response, so the call here continues until its client
// was notified.
func TestProgressOfReadsPassesThrough(t *testing.T) {
	b, up := shop(t, false, nil)
	redacted := make(chan struct{})
	up.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok {
				if token := p.GetProgressToken(); token != nil {
					if err := req.GetSession().(*sdk.ServerSession).NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"}); err != nil {
						return nil, err
					}
					<-redacted
				}
			}
			return next(ctx, method, req)
		}
	})
	metas := make(chan *sdk.ProgressNotificationParams, 10)
	s := b.stdio(agent("acme"), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		metas <- r.Params
		close(redacted)
	}})
	p := &sdk.CallToolParams{Name: fakemcp.Find, Arguments: map[string]any{"order_id": "A-1"}}
	p.SetProgressToken("mine")
	if _, err := s.CallTool(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	if got := <-metas; got.ProgressToken != "mine" || got.Message != "half" {
		t.Errorf("progress %+v", got)
	}
}
