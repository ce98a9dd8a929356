package mcp_test

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// TestPin: the digests of a build stand beside the others, comments stay, and what is not pinned
// becomes so.
func TestPin(t *testing.T) {
	s := fakemcp.New(fakemcp.NewWorld())
	var tools []*sdk.Tool
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		tools = append(tools, s.Tool(name))
	}
	now, err := mcp.Digest(s.Tool(fakemcp.Find))
	if err != nil {
		t.Fatal(err)
	}
	other := "sha256:" + strings.Repeat("0", 64)
	full := withDigests(t, fakemcp.Contract)
	for name, c := range map[string]struct{ had, want, problem string }{
		"one":      {" " + other + " # 1.0", ":\n    - " + other + " # 1.0\n    - " + now + " # shop 2\n", ""},
		"several":  {"\n    - " + other + " # 1.0", ":\n    - " + other + " # 1.0\n    - " + now + " # shop 2\n", ""},
		"the same": {" " + now + " # 1.0", ": " + now + " # 1.0\n", ""},
		"unpinned": {" unpinned", ": " + now + " # shop 2\n", ""},
		"a list":   {" [" + other + "]", "", "want each digest on a line of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(full, "find_orders: "+now, "find_orders:"+c.had, 1)
			got, err := mcp.Pin([]byte(text), "shop.yaml", "shop 2", tools)
			switch {
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("%v, want %q", err, c.problem)
			case c.problem == "" && (err != nil || !strings.Contains(string(got), "find_orders"+c.want)):
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
	if _, err := mcp.Pin([]byte(full), "shop.yaml", "shop 2", tools[1:]); err == nil || !strings.Contains(err.Error(), "has no tool create_order") {
		t.Errorf("a server without create_order: %v", err)
	}

	// A server may call itself anything: that adds no digest of another build.
	for _, begin := range []string{" " + now, " unpinned", "\n    - " + now} {
		text := strings.Replace(full, "find_orders: "+now, "find_orders:"+strings.Replace(begin, now, other, 1), 1)
		for _, end := range []string{"\n", "\r", "\u2028", "\x85"} {
			evil := "sha256:" + strings.Repeat("6", 64)
			got, err := mcp.Pin([]byte(text), "shop.yaml", "shop"+end+"    - "+evil, tools)
			if err != nil {
				t.Fatal(err)
			}
			c, err := mcp.Load(got, "shop.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.FieldsFunc(string(got), func(r rune) bool { return strings.ContainsRune("\n\r\u2028\x85", r) }); slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "    - "+evil) }) {
				t.Errorf("%q: a digest that the server wrote by its name:\n%s", end, got)
			}
			if err := c.Trusts(s.Tool(fakemcp.Find)); err != nil {
				t.Error(err)
			}
		}
	}
}
