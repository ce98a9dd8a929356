package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// closed is a ledger that cannot be reached to be sealed.
type closed struct{ *ledger.Memory }

func (closed) BeginSealing(context.Context) (time.Time, error) {
	return time.Time{}, ledger.ErrUnavailable
}

// The unsealed backlog is measured also where nothing was ever sealed: a missing series
// raises no alarm.
func TestUnsealedIsMeasuredThoughNothingCanBeSealed(t *testing.T) {
	d := &Instance{}
	if _, here := d.auditStats(); here {
		t.Error("no sealer runs here")
	}
	s := audit.New(closed{ledger.NewMemory()}, audit.Options{Logger: slog.New(slog.DiscardHandler)})
	d.sealer.Store(s)
	if a, here := d.auditStats(); !here || a.Unsealed >= 0 {
		t.Errorf("%+v, %v: it was not tried yet", a, here)
	}
	if _, err := s.Seal(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if a, here := d.auditStats(); !here || a.Unsealed < 0 || a.Failures != 1 {
		t.Errorf("%+v, %v: want a number that grows", a, here)
	}
}

// TestAnInstanceDisconnects: the process of a destination ends with the command that used it.
func TestAnInstanceDisconnects(t *testing.T) {
	c, err := mcp.New(mcp.None(), mcp.Options{Server: mcp.Server{Command: []string{"none"}}, WriteOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("x", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		t.Fatal(err)
	}
	d := &Instance{Ledger: ledger.NewMemory(), Closer: io.NopCloser(nil), Process: Process{Log: slog.New(slog.DiscardHandler)}}
	if err := d.Start(t.Context(), &reg); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if _, err := c.Client().Session(t.Context()); !errors.Is(err, mcp.ErrUnreachable) || err.Error() != mcp.ErrUnreachable.Error()+": closed" {
		t.Errorf("the client goes on: %v", err)
	}
}

// Notices of a webhook need no configured destination, and a destination exists for the
// tenants that it serves.
func TestWhomADestinationServes(t *testing.T) {
	d := &Instance{Config: config.Config{
		Destinations: []config.Destination{{Name: "own", Tenants: []string{"acme"}}, {Name: "open"}},
		Webhooks:     []config.Webhook{{Hook: webhooks.Hook{Name: "ops"}}},
	}}
	for _, c := range []struct {
		tenant, name string
		want         bool
	}{
		{"acme", "own", true}, {"umbrella", "own", false}, {"umbrella", "open", true}, {"umbrella", webhooks.Prefix + "ops", true},
		{"acme", webhooks.Prefix + "none", false}, {"acme", "none", false},
	} {
		if got := d.Serves(c.tenant, c.name); got != c.want {
			t.Errorf("%s for %s: %t", c.name, c.tenant, got)
		}
	}
}

// A redaction key that could not be fetched at the first attempt may be there at the next.
func TestKeysAreFetchedAtEachAttemptToOpenTheLedger(t *testing.T) {
	fetched := 0
	s := newServer(Options{listener: make(pipes), Config: config.Config{Ledger: config.Ledger{File: t.TempDir() + "/missing/ledger.db"}},
		Process: Process{Log: slog.New(slog.DiscardHandler), Unlock: func(config.Config) (*redact.Vault, error) {
			fetched++
			return nil, errors.New("the key store is down")
		}}})
	for i := range 2 {
		if _, err := s.services(t.Context()); err == nil || fetched != i+1 {
			t.Errorf("attempt %d: the keys were fetched %d times, error %v", i+1, fetched, err)
		}
	}
}
