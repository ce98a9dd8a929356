package soak

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/saga"
)

var (
	seed = flag.Uint64("soak.seed", 1, "seed of the moments at which processes are killed")
	full = flag.Bool("soak.full", false, "have TestUnderFire carry 20,000 writes, which takes some minutes")
)

const tenant = "acme"

// role selects the role of a child process; without it this is the test itself.
const role = "READBACK_SOAK_ROLE"

// roles are what a child can be. Files for some systems only add theirs.
var roles = map[string]func() error{}

// Work works on due writes and sagas until ctx ends, as [engine.Engine.Work] and [saga.Runner.Work] do.
type Work func(ctx context.Context, e *engine.Engine, s *saga.Runner, o engine.WorkOptions) error

// work is what the workers of this program do.
var work Work

// Child is the first call of TestMain. In a process that a test has started it does what the process
// is for, and does not return. The processes of workers do work.
func Child(w Work) {
	work = w
	as := os.Getenv(role)
	if as == "" {
		return
	}
	if err := roles[as](); err != nil {
		fmt.Fprintln(os.Stderr, "child:", as+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}
