package mcp_test

import (
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/verifytest"
)

// TestAudit: no wrong state is called verified, and no right one is refused.
func TestAudit(t *testing.T) {
	verifytest.Audit(t, verifytest.Harness{Suite: connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			s := fakemcp.New(fakemcp.NewWorld())
			return fixture(t, s, connect(t, s, pinned(t, fakemcp.Contract)))
		},
		Writes: allWrites, Variants: variants(), Lacks: lacks,
	}})
}
