package config_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

const oneTool = `ledger: a.db
destinations:
  x: {type: simulated, url: 'http://a'}
mcp:
  tools:
    - name: create_order
      description: Creates an order.
      destination: x
      kind: order
      write: create
      arguments:
        - {name: order_id, type: string, required: true, description: The number.}
        - {name: amount, type: number, description: The amount.}
      key: [order_id]
`

// changed is the one tool with something else in it.
func changed(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(oneTool) }

func TestBadTools(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		want         []string
	}{
		"fine":           {"nothing is wrong", oneTool, nil},
		"nothing":        {"the word alone", "ledger: a\nmcp:\n", nil},
		"unknown word":   {"misspelt", changed("key: [", "keys: ["), []string{":14: mcp.tools[0].keys: is not known; did you mean key?"}},
		"name":           {"MCP's own rule", changed("name: create_order", "name: create order"), []string{`:6: mcp.tools[0].name: is "create order"; want 1 to 128 letters, digits, _, - and .`}},
		"taken name":     {"every server has it", changed("name: create_order", "name: get_outcome"), []string{":6: mcp.tools[0].name: is get_outcome, which every server has already; want another one"}},
		"no description": {"a model must know what it does", changed("      description: Creates an order.\n", ""), []string{":6: mcp.tools[0].description: is missing; want what a model must know to call it: what it does, and when"}},
		"destination":    {"there is none of this name", changed("destination: x", "destination: y"), []string{`:8: mcp.tools[0].destination: is "y", which no destination is called; want one of x`}},
		"kind": {"it has no such kind", changed("kind: order", "kind: mail"),
			[]string{`:9: mcp.tools[0].kind: does not fit: /kind: unknown destination: "x" has no kind "mail"; it has: order`}},
		"write": {"no write type", changed("write: create", "write: make"), []string{`:10: mcp.tools[0].write: is "make"; want create, update, upsert or delete`}},
		"mapped twice": {"one of them would be lost", changed("description: The amount.", "description: The amount., to: expect/a}\n        - {name: more, type: string, description: More., to: expect/a"),
			[]string{":14: mcp.tools[0].arguments[2].to: puts more at /expect/a, where argument amount puts something already; want one of them"}},
		"mapped below another": {"likewise", changed("description: The amount.", "description: The amount., to: expect/a}\n        - {name: more, type: string, description: More., to: expect/a/b"),
			[]string{":14: mcp.tools[0].arguments[2].to: puts more at /expect/a/b, where argument amount puts something already; want one of them"}},
		"fixed and given": {"a model would overwrite it", oneTool + "      fixed:\n        expect: {amount: 5}\n",
			[]string{":13: mcp.tools[0].arguments[1].to: puts amount at /expect/amount, where fixed.expect puts something already; want one of them"}},
		"key not required": {"without it nothing can be read back", changed("required: true, ", ""),
			[]string{":14: mcp.tools[0].key[0]: is order_id, which is not required; want required: true there, since without it the record cannot be asked for"}},
		"key of nothing":         {"no such argument", changed("key: [order_id]", "key: [order]"), []string{`:14: mcp.tools[0].key[0]: is "order", which no argument is called; want the name of one`}},
		"no key":                 {"nothing to ask by", changed("      key: [order_id]\n", ""), []string{":6: mcp.tools[0].key: is missing; want the arguments by which the destination can be asked for the record"}},
		"operation not required": {"it would have no name", oneTool + "      operation: [amount]\n", []string{":15: mcp.tools[0].operation[0]: is amount, which is not required; want required: true there, since without it there is no name for the operation"}},
		"key elsewhere":          {"it says two things", changed("required: true, ", "required: true, to: expect/id, "), []string{`:12: mcp.tools[0].arguments[0].to: is "expect/id", and key names order_id; want key/…, or the name taken out there`}},
		"no place":               {"nowhere", changed("description: The amount.", "description: The amount., to: tenant/x"), []string{`:13: mcp.tools[0].arguments[1].to: is "tenant/x"; want key, expect or payload and a path below it, such as expect/address/city, or context/reason`}},
		"type":                   {"no type", changed("type: number", "type: money"), []string{`:13: mcp.tools[0].arguments[1].type: is "money"; want one of [string integer number boolean array object]`}},
		"name of an argument":    {"models' own rule", changed("name: amount,", "name: 'the amount',"), []string{`:13: mcp.tools[0].arguments[1].name: is "the amount"; want a letter or _, then letters, digits and _, 64 at most`}},
		"wait":                   {"clients give up", oneTool + "      wait: 1h\n", []string{":6: mcp.tools[0].wait: is 1h0m0s; want 0 to 5m0s"}},
		"risk":                   {"the intent's own words", oneTool + "      risk: maybe\n", []string{`:15: mcp.tools[0].risk: makes no intent: /risk is "maybe"; want one of auto, log, approve`}},
		"on_mismatch":            {"the intent's own words", oneTool + "      on_mismatch: undo\n", []string{`:15: mcp.tools[0].on_mismatch: makes no intent: /on_mismatch is "undo"; want one of escalate, retry, compensate, repair`}},
		"on_mismatch, a list":    {"it is one word", oneTool + "      on_mismatch: [retry]\n", []string{":15: mcp.tools[0].on_mismatch: is a list; want text"}},
		"on_mismatch, nothing":   {"which one", oneTool + "      on_mismatch:\n", []string{":15: mcp.tools[0].on_mismatch: is empty; want a value, or the line taken out"}},
		"compensate": {"what cannot be taken back cannot be compensated", oneTool + "      on_mismatch: compensate\n",
			[]string{`:15: mcp.tools[0].on_mismatch: makes no intent: /on_mismatch is compensate for a write that is not compensable; want escalate or retry, or "reversibility": "compensable"`}},
		"repair of a delete": {"it stores nothing", changed("write: create", "write: delete", "        - {name: amount, type: number, description: The amount.}\n", "") + "      on_mismatch: repair\n",
			[]string{":14: mcp.tools[0].on_mismatch: makes no intent: /on_mismatch is repair for a delete, which stores nothing; want escalate or retry"}},
		"compare": {"the intent's own rules", oneTool + "      compare: {/amount: [{rule: nearly}]}\n",
			[]string{`:6: mcp.tools[0]: makes no intent: /compare/~1amount/0/rule is "nearly"; want one of trim, fold, crlf, unescape, text, empty, string, numeric, time, set`}},
		"a delete with fields": {"it has a key and nothing else", changed("write: create", "write: delete"), []string{":13: mcp.tools[0].arguments[1].to: is in expect; a delete has a key and nothing else"}},
		"twice":                {"which one?", oneTool + strings.SplitAfter(oneTool, "  tools:\n")[1], []string{`:15: mcp.tools[1].name: is "create_order", as that of tool 1; want another one`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, problems(t, tt.text, environment())); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}

// TestAToolWithEverything: each setting gets where it belongs.
func TestAToolWithEverything(t *testing.T) {
	path := write(t, changed("name: create_order\n", "name: create_order\n      title: New\n", "type: number, ", "type: array, items: integer, to: payload/amounts, ")+`        
      operation: [order_id]
      fixed:
        key: {shop: a}
        expect: {currency: EUR, inner: {n: 1.50, list: [a, 2, true, null]}}
        payload: {source: readback}
      ignore: [/x]
      absent: [/y]
      compare: {/currency: [{rule: fold}], /inner/n: [{rule: numeric, tolerance: 0.5}]}
      risk: log
      reversibility: compensable
      on_mismatch: compensate
      wait: 10s
`)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) any { return json.Number(s) }
	want := []tool.Tool{{
		Name: "create_order", Title: "New", Description: "Creates an order.", Destination: "x", Kind: "order", Write: intent.Create,
		Arguments: []tool.Argument{
			{Name: "order_id", Description: "The number.", Type: tool.String, Required: true},
			{Name: "amount", Description: "The amount.", Type: tool.Array, Items: tool.Integer, To: "payload/amounts"},
		},
		Key: []string{"order_id"}, Operation: []string{"order_id"},
		Fixed: tool.Fixed{Key: intent.Fields{"shop": "a"},
			Expect:  intent.Fields{"currency": "EUR", "inner": map[string]any{"n": number("1.50"), "list": []any{"a", number("2"), true, nil}}},
			Payload: intent.Fields{"source": "readback"}},
		Ignore: []string{"/x"}, Absent: []string{"/y"},
		Compare: map[string]intent.Comparison{"/currency": {{Name: intent.RuleFold}}, "/inner/n": {{Name: intent.RuleNumeric, Tolerance: "0.5"}}},
		Risk:    intent.RiskLog, Reversibility: intent.Compensable, OnMismatch: intent.MismatchCompensate, Wait: 10 * time.Second,
	}}
	if d := cmp.Diff(want, c.MCP.Tools); d != "" {
		t.Error(d)
	}
}

func TestTheTemplatesToolFits(t *testing.T) {
	c, err := config.Load(write(t, string(config.Template())))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.MCP.Tools) != 1 || c.MCP.Tools[0].Name != "create_order" {
		t.Errorf("tools %+v", c.MCP.Tools)
	}
	if _, err := c.Registry(environment()); err != nil {
		t.Error(err)
	}
}
