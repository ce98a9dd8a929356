package mcpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

const page = "../../docs/reference/mcp.md"

// documented is the block of the page after a mark.
func documented(t *testing.T, mark, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), mark)
	_, rest, found := strings.Cut(rest, "```"+language+"\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("no block behind %q", mark)
	}
	return block
}

// docsTools are the tools of the page, in a form that a file can hold.
func docsTools(t *testing.T) []tool.Tool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "readback.yaml")
	text := "ledger: a.db\ndestinations:\n  orders: {type: simulated, url: 'http://a'}\n" + documented(t, "In short:", "yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c.MCP.Tools
}

// TestThePageShowsWhatModelsSee: the list and the results of the page are those that a
// client gets.
func TestThePageShowsWhatModelsSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := docsTools(t)
		b := newBench(t, orders.Unique.Options(), func(c *mcpapi.Config) {
			held := tools[0]
			held.Name, held.Risk = "create_order_held", intent.RiskApprove
			c.Tools = append(tools, held)
		})
		s := b.stdio(agent("bot"), nil)
		listed, err := s.ListTools(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		shown := *listed.Tools[0]
		shown.OutputSchema = nil // is shown in full elsewhere
		compare(t, "list", shown)
		for mark, name := range map[string]string{"verified": "create_order", "held": "create_order_held"} {
			res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"order_id": "A-1-" + mark, "amount_cents": 1999, "currency": "EUR"}})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, mark, b.read(res))
			conforms(t, mcpapi.OutputSchema(), []byte(documented(t, "<!-- "+mark+" -->", "json")))
		}
	})
}

// changing is what differs from run to run.
var changing = regexp.MustCompile(`wr_[0-9a-f]+|ord_[0-9]+|\d{4}-\d{2}-\d{2}T[0-9:]+Z`)

func compare(t *testing.T, mark string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer // written for readers, not for a page
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(got)); err != nil {
		t.Fatal(err)
	}
	want := documented(t, "<!-- "+mark+" -->", "json")
	if d := cmp.Diff(changing.ReplaceAllString(want, "…"), strings.ReplaceAll(changing.ReplaceAllString(plain.String(), "…"), "create_order_held", "create_order")); d != "" {
		t.Errorf("%s (-page +now):\n%s\nthe page should say:\n%s", mark, d, plain.String())
	}
}
