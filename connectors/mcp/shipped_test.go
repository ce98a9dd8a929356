package mcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

func TestShippedContractsLoad(t *testing.T) {
	if len(mcp.Shipped()) < 2 {
		t.Fatalf("shipped: %v", mcp.Shipped())
	}
	for _, name := range mcp.Shipped() {
		c, err := mcp.ShippedContract(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for kind, p := range c.Profiles() {
			if err := p.Valid(); err != nil {
				t.Errorf("%s: %s: %v", name, kind, err)
			}
		}
	}
}

// A rollback fact is within how long effects can be taken back.
func TestRollbackNeedsATime(t *testing.T) {
	for says, problem := range map[string]string{
		"2m":   "",
		"true": `"true" is no duration; want one such as 60s, or unknown`,
		"60":   `"60" is no duration; want one such as 60s, or unknown`,
		"-1s":  `"-1s" is no duration; want one such as 60s, or unknown`,
		"":     "is empty; want a value, or the line taken out",
	} {
		text := strings.Replace(fakemcp.Contract, "horizon: 1s}", "horizon: 1s, rollback: "+says+"}", 1)
		c, err := mcp.Load([]byte(withDigests(t, text)), "shop.yaml")
		switch {
		case problem != "" && (err == nil || !strings.Contains(err.Error(), "kinds.order.profile.rollback: "+problem)):
			t.Errorf("rollback: %s: %v, want %q", says, err, problem)
		case problem == "" && err != nil:
			t.Errorf("rollback: %s: %v", says, err)
		case problem == "":
			if within, declared := c.Profiles()["order"].Rollback.Declared(); !declared || within != 2*time.Minute {
				t.Errorf("rollback: %s: declared %t, %s", says, declared, within)
			}
		}
	}
}

// TestContractsOfWhichEveryCallIsRefused: that no call could be accepted is a problem of
// the contract. What only some calls do is none.
func TestContractsOfWhichEveryCallIsRefused(t *testing.T) {
	memory, err := mcp.ShippedText("memory")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason, contract, old, new string
		want                       string // "" for none
	}{
		"fine":              {"nothing is wrong", fakemcp.Contract, "", "", ""},
		"stamp in the key":  {"readback's own mark would be the key", fakemcp.Contract, "stamp: $.external_id", "stamp: $.order_id", "shop.yaml:8: kinds.order.writes.create: would have every call of create_order refused: arguments that the contract does not take: $.order_id is set; readback puts its own mark there"},
		"stamp expected":    {"a call that leaves the note out works", fakemcp.Contract, "stamp: $.external_id", "stamp: $.note", ""},
		"key of everything": {"all arguments are no name", fakemcp.Contract, "tool: update_order\n        key: {order_id: $.order_id}", "tool: update_order\n        key: {order_id: $}", "would have every call of update_order refused: arguments that the contract does not take: /key/order_id has no place"},
		"an empty key":      {"no record could be queried", fakemcp.Contract, "tool: put_order\n        key: {order_id: $.order_id}", "tool: put_order\n        key: {order_id: {value: ''}}", "would have every call of put_order refused: arguments that the contract does not take: "},
		"a fixed key":       {"it is always the same record", fakemcp.Contract, "tool: put_order\n        key: {order_id: $.order_id}", "tool: put_order\n        key: {order_id: {value: A-1}}", ""},
		"a fixed field":     {"it is always the same value", fakemcp.Contract, "tool: put_order\n        key: {order_id: $.order_id}\n        expect: {note: $.note,", "tool: put_order\n        key: {order_id: $.order_id}\n        expect: {note: {value: n},", ""},
		"the field before":  {"the record has it", fakemcp.Contract, "tool: put_order\n        key: {order_id: $.order_id}\n        expect: {note: $.note,", "tool: put_order\n        key: {order_id: $.order_id}\n        expect: {note: {before: note},", ""},
		"of several":        {"a key within a key", string(memory), "key: {from: $.from, to: $.to, relationType: $.relationType}", "key: {from: $.from, to: $.from.to, relationType: $.relationType}", "would have every call of create_relations refused: arguments that the contract does not take: to has no place"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.contract, c.old) {
				t.Fatalf("the contract has no %q", c.old)
			}
			text := strings.Replace(c.contract, c.old, c.new, 1)
			if !strings.Contains(text, "digests:") {
				text = withDigests(t, text)
			}
			_, err := mcp.Load([]byte(text), "shop.yaml")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", c.reason, err, c.want)
			}
		})
	}
}
