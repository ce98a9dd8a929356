package mcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/mcp/mcptest"
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

// A rollback fact says within how long effects can be taken back.
func TestRollbackNeedsATime(t *testing.T) {
	for says, problem := range map[string]string{
		"2m":   "",
		"true": `"true" is no duration; want one such as 60s, or unknown`,
		"60":   `"60" is no duration; want one such as 60s, or unknown`,
		"-1s":  `"-1s" is no duration; want one such as 60s, or unknown`,
		"":     "is empty; want a value, or the line taken out",
	} {
		text := strings.Replace(mcptest.Contract, "horizon: 1s}", "horizon: 1s, rollback: "+says+"}", 1)
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
