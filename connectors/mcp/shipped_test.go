package mcp_test

import (
	"testing"

	"github.com/readback-go/readback/connectors/mcp"
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
