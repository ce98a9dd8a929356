//go:build unix

package main

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/readback-go/readback/adapters/temporal/internal/servertest"
	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/soak"
	"github.com/readback-go/readback/saga"
)

// serverOf is an environment variable of the workers under fire.
const serverOf = "READBACK_TEMPORAL_FIRE"

// TestUnderFire: the workers have Temporal as their scheduler, and its server is killed, too.
func TestUnderFire(t *testing.T) {
	s := servertest.Shared(t, program)
	kill := func() { s.Kill(t) }
	// Temporal notices after seconds that a worker is gone, and gives others its activities then.
	soak.UnderFire(t, soak.Options{Writes: 120, Kill: 3 * time.Second, Env: []string{serverOf + "=" + s.Address}, Acts: []func(){kill, kill}})
}

// workUnderFire works as the command does.
func workUnderFire(ctx context.Context, e *engine.Engine, s *saga.Runner, o engine.WorkOptions) error {
	w := command.Work{Engine: e, Sagas: s, Destinations: []string{"orders"}, Options: o, Logger: slog.New(slog.DiscardHandler)}
	return schedule(ctx, client.Options{HostPort: os.Getenv(serverOf), Logger: servertest.Quiet}, "fire", w)
}
