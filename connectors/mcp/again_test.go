package mcp_test

import (
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/mcp/mcptest"
)

// TestACallIsNotBegunAnew: the newest protocol lets a server ask for the same
// call once more, which the SDK would do by itself.
func TestACallIsNotBegunAnew(t *testing.T) {
	s := mcptest.New(mcptest.NewWorld())
	c, err := mcp.New(pinned(t, mcptest.Contract), mcp.Options{Server: mcp.Server{Transport: s.Transport, Protocol: "2026-07-28"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		s.Cut()
	})
	s.World.Arm(mcptest.AsksBack, "")
	_, err = c.Write(t.Context(), create(1))
	if connectors.FateOf(err) != connectors.FateUnknown || s.World.Calls(mcptest.Create) != 1 {
		t.Errorf("fate %q (%v) after %d calls, want unknown after 1", connectors.FateOf(err), err, s.World.Calls(mcptest.Create))
	}
}
