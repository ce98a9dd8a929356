package mcpapi_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

func order(id string) map[string]any { return map[string]any{"order_id": id, "amount_cents": 1999} }

func TestListAndCallOverStdio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Unique.Options(), nil)
		s := b.stdio(agent("bot"), nil)
		listed, err := s.ListTools(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, one := range listed.Tools {
			names = append(names, one.Name)
			for _, schema := range []any{one.InputSchema, one.OutputSchema} {
				text, err := json.Marshal(schema)
				if err != nil {
					t.Fatal(err)
				}
				compile(t, text)
			}
		}
		diff(t, "tools", names, []string{"create_order", "create_order_held", "create_order_once", tool.GetOutcome})
		r, res := b.call(s, "create_order", order("A-1"), nil)
		if !r.Verified || r.Status != "verified" || res.IsError || r.Ref == "" {
			t.Errorf("answer %+v", r)
		}
		again, _ := b.call(s, tool.GetOutcome, map[string]any{"id": r.ID}, nil)
		if again.Status != "verified" || !again.Replayed || again.ID != r.ID || b.effects() != 1 {
			t.Errorf("outcome %+v, %d effects", again, b.effects())
		}
	})
}

func TestInvalidArgumentsAreToldByName(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		arguments string
		want      []tool.Problem
	}{
		"missing":   {"a required one", `{"order_id":"A-1"}`, []tool.Problem{{Argument: "amount_cents", Problem: "is missing", Want: "a whole number"}}},
		"type":      {"a number in quotes is none", `{"order_id":"A-1","amount_cents":"1999"}`, []tool.Problem{{Argument: "amount_cents", Problem: "is text", Want: "a whole number"}}},
		"unknown":   {"one that nobody takes", `{"order_id":"A-1","amount_cents":1,"tenant":"x"}`, []tool.Problem{{Argument: "tenant", Problem: "is no argument of this tool", Want: "one of order_id, amount_cents, note"}}},
		"blanks":    {"another spelling of a key is another record", `{"order_id":" A-1","amount_cents":1}`, []tool.Problem{{Argument: "order_id", Problem: "has blanks at its ends", Want: "it without them"}}},
		"null":      {"null is not left out", `{"order_id":"A-1","amount_cents":1,"note":null}`, []tool.Problem{{Argument: "note", Problem: "is null", Want: "text in quotes, or the argument left out"}}},
		"no object": {"a list of arguments", `["A-1"]`, []tool.Problem{{Problem: "the arguments are no JSON object", Want: "an object of the arguments by name"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, simulated.Unique.Options(), nil)
				r, res := b.call(b.stdio(agent("bot"), nil), "create_order", json.RawMessage(c.arguments), nil)
				if !res.IsError || r.Status != "refused" || b.effects() != 0 {
					t.Errorf("%s: answer %+v, %d effects", c.reason, r, b.effects())
				}
				diff(t, c.reason, r.Problems, c.want)
				if !strings.Contains(r.WhatToDo, "create_order") {
					t.Errorf("what to do is %q", r.WhatToDo)
				}
			})
		})
	}
}

func TestOutcomesAreNoErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Unique.Options(), nil)
		s := b.stdio(agent("bot"), nil)
		r, res := b.call(s, "create_order_held", order("A-1"), nil)
		if res.IsError || r.Status != "held" || r.Verified || b.effects() != 0 {
			t.Errorf("answer %+v", r)
		}
		for _, want := range []string{"get_outcome", r.ID, "Do not call create_order_held again"} {
			if !strings.Contains(r.WhatToDo, want) {
				t.Errorf("what to do is %q; want %q in it", r.WhatToDo, want)
			}
		}
	})
}

var _ = mcp.Meta{}
