package mcp_test

import (
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/mcp/mcptest"
	"github.com/readback-go/readback/verify/verifytest"
)

// TestAudit: no wrong state is called verified, and no right one is refused.
func TestAudit(t *testing.T) {
	verifytest.Audit(t, verifytest.Harness{Suite: connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			s := mcptest.New(mcptest.NewWorld())
			return fixture(t, s, connect(t, s, pinned(t, mcptest.Contract)))
		},
		Writes: allWrites, Variants: variants(), Lacks: lacks,
	}})
}
