package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/intent"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// TestNewest: of a list that is cut after the newest records, what it shows counts, and it proves
// no absence.
func TestNewest(t *testing.T) {
	text := strings.Replace(fakemcp.Contract, `{order_id: "{key.order_id}"}, records: "$.orders[*]", limit: 1000`, `{external_id: s}, records: "$.orders[*]", newest: 2`, 1)
	if text == fakemcp.Contract {
		t.Fatal("the contract has no list that this test knows")
	}
	for name, c := range map[string]struct {
		orders  []int
		records int
		says    string
	}{
		"not full, there":     {[]int{1}, 1, ""},
		"not full, not there": {[]int{2}, 0, ""},
		"full, there":         {[]int{1, 2}, 1, ""},
		"full, not there":     {[]int{2, 3}, 0, "may be older"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakemcp.New(fakemcp.NewWorld())
			conn := connect(t, s, pinned(t, text))
			for _, n := range c.orders {
				s.World.Put(map[string]any{"order_id": fmt.Sprint(order(intent.Create, n).Key["order_id"]), "note": "two words"}, "s")
			}
			o, err := conn.Read(t.Context(), connectors.Query{Intent: order(intent.Create, 1)})
			if len(o.Records) != c.records || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d records, %v; want %d and %q", len(o.Records), err, c.records, c.says)
			}
		})
	}
	for _, with := range []string{"newest: 2, limit: 2", "newest: 2, strength: strong"} {
		_, err := mcp.Load([]byte(withDigests(t, strings.Replace(text, "newest: 2", with, 1))), "shop.yaml")
		if err == nil || !strings.Contains(err.Error(), "has newest; want it on a list") {
			t.Errorf("%s: %v", with, err)
		}
	}
}

// TestFirstElements: a path leads into the first element of a list; a call with another element,
// which nothing would compare, is refused.
func TestFirstElements(t *testing.T) {
	text := strings.Replace(withDigests(t, fakemcp.Contract), "{note: $.note, amount_cents: $.amount_cents", "{note: '$.texts[0].content', amount_cents: $.amount_cents", 1)
	c, err := mcp.Load([]byte(text), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	one := func(content string) map[string]any { return map[string]any{"content": content} }
	in, err := c.Derive(fakemcp.Create, intent.Fields{"order_id": "A-1", "texts": []any{one("a note")}}, nil)
	if err != nil || in.Expect["note"] != "a note" || in.Payload != nil {
		t.Errorf("%+v, %v", in, err)
	}
	for name, texts := range map[string]any{
		"/texts/1": []any{one("a note"), one("another")}, "/texts/0/bold": []any{map[string]any{"content": "a note", "bold": true}}, "/texts": "a note",
	} {
		if _, err := c.Derive(fakemcp.Create, intent.Fields{"order_id": "A-1", "texts": texts}, nil); err == nil || !strings.Contains(err.Error(), name+": no read could show") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
