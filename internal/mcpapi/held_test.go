package mcpapi_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

// A held call is answered at once, and so is its repetition: a person decides, in hours.
func TestAHeldCallIsAnsweredAtOnce(t *testing.T) {
	for name, meta := range map[string]mcp.Meta{"the client names it": {"readback/step": "order"}, "no name": nil} {
		for _, called := range []string{"create_order_held", "create_order_once_held"} {
			t.Run(name+", "+called, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, orders.Unique.Options(), func(c *mcpapi.Config) {
						c.Tools = append(c.Tools, named(createOrder(), "create_order_once_held", func(t *tool.Tool) {
							t.Operation, t.Risk = []string{"order_id"}, intent.RiskApprove
						}))
					})
					s := b.stdio(agent("bot"), nil)
					for range 3 {
						begun := time.Now()
						r, _ := b.call(s, called, order("A-1"), meta)
						if r.Status != "held" || time.Since(begun) > time.Second {
							t.Errorf("%+v after %s of the bubble's clock", r, time.Since(begun))
						}
					}
				})
			})
		}
	}
}

// A list of five tools costs a model at most 1,800 tokens, at 4.2 bytes a token as
// measured of such lists (o200k_base).
func TestAListOfFiveToolsIsShort(t *testing.T) {
	const most = 1800 * 42 / 10
	b := newBench(t, orders.Unique.Options(), func(c *mcpapi.Config) {
		for _, one := range docsTools(t) {
			c.Tools = append(c.Tools, named(one, "create_"+one.Name, nil))
		}
	})
	listed, err := b.stdio(agent("bot"), nil).ListTools(context.Background(), nil)
	if err != nil || len(listed.Tools) != 5 {
		t.Fatalf("%d tools, %v", len(listed.Tools), err)
	}
	text, err := json.Marshal(listed.Tools)
	if err != nil || len(text) > most {
		t.Errorf("%d bytes, %v; want at most %d", len(text), err, most)
	}
}
