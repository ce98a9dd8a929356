package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// TestWordsThatSayThereIsNone: only the tool's own text counts, not that of a record: a record
// that is not seen is sent again.
func TestWordsThatSayThereIsNone(t *testing.T) {
	const record = `{"orders":[{"id":"o-1","order_id":"Order-001","note":"No orders found so far"}]}`
	for name, c := range map[string]struct {
		reason, text string
		structured   bool
		want         int
	}{
		"words":               {"the tool says so", "No orders found.", false, 0},
		"a record as JSON":    {"it holds the words", record, false, 1},
		"a record structured": {"likewise", record, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakemcp.New(fakemcp.NewWorld())
			from := `records: "$.orders[*]", limit: 1000}`
			contract := pinned(t, strings.ReplaceAll(fakemcp.Contract, from, `records: "$.orders[*]", limit: 1000, empty: ['No orders found']}`))
			s.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
				return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
					if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); !ok || p.Name != fakemcp.Find {
						return next(ctx, method, req)
					}
					r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: c.text}}}
					if c.structured {
						r.StructuredContent = json.RawMessage(c.text)
					}
					return r, nil
				}
			})
			conn, err := mcp.New(contract, mcp.Options{Server: mcp.Server{Transport: s.Transport}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = conn.Close()
				s.Cut()
			})
			o, err := conn.Read(t.Context(), connectors.Query{Intent: create(1).Intent})
			if err != nil || len(o.Records) != c.want {
				t.Errorf("%s: %d records (%v), want %d", c.reason, len(o.Records), err, c.want)
			}
		})
	}
}
