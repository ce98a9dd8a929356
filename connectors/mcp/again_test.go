package mcp_test

import (
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestACallIsNotBegunAnew: the newest protocol lets a server request the same call once more,
// which the SDK would do by itself.
func TestACallIsNotBegunAnew(t *testing.T) {
	s := fakemcp.New(fakemcp.NewWorld())
	c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{Transport: s.Transport, Protocol: "2026-07-28"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		s.Cut()
	})
	if err := s.World.Set(fault.Fault{Kind: fault.BadGateway, How: "input"}.Once()); err != nil {
		t.Fatal(err)
	}
	_, err = c.Write(t.Context(), create(1))
	if connectors.FateOf(err) != connectors.FateUnknown || s.World.Calls(fakemcp.Create) != 1 {
		t.Errorf("fate %q (%v) after %d calls, want unknown after 1", connectors.FateOf(err), err, s.World.Calls(fakemcp.Create))
	}
}
