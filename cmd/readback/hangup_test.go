package main

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/ledger"
)

// TestADeskHangsUp: the process of a destination ends with the command that used it.
func TestADeskHangsUp(t *testing.T) {
	c, err := mcp.New(mcp.None(), mcp.Options{Server: mcp.Server{Command: []string{"none"}}, WriteOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("x", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		t.Fatal(err)
	}
	d := &opened{ledger: ledger.NewMemory(), closer: io.NopCloser(nil), log: slog.New(slog.DiscardHandler)}
	if err := d.stand(t.Context(), &reg); err != nil {
		t.Fatal(err)
	}
	d.close()
	if _, err := c.Client().Session(t.Context()); !errors.Is(err, mcp.ErrUnreachable) || err.Error() != mcp.ErrUnreachable.Error()+": closed" {
		t.Errorf("the client goes on: %v", err)
	}
}
