package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// maxUnsettled bounds what is counted after a resume.
const maxUnsettled = 1000

func (a *app) resumeCommand() *cobra.Command {
	var wait time.Duration
	var reset bool
	cmd := &cobra.Command{
		Use:   "resume [ID]",
		Short: "Continue due writes now, or one write until it has an outcome",
		Long: `Without an ID: continue every due write, of every tenant, until none is due, and
list the tenant's remaining writes. Exit code: 40 if some writes cannot be read,
otherwise 0. With an ID: continue that write whenever it is due until it has an
outcome. The exit code is that of the outcome.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			o := config.OpenOptions{ResetClock: reset}
			if len(args) == 1 {
				return a.resumeOne(ctx, args[0], wait, o)
			}
			return a.resumeAll(ctx, o)
		}),
	}
	waitFlag(cmd, &wait)
	cmd.Flags().BoolVar(&reset, "reset-clock", false, "accept this machine's clock although the newest entry of the ledger is later")
	return cmd
}

func (a *app) resumeOne(ctx context.Context, text string, wait time.Duration, o config.OpenOptions) (int, error) {
	if wait < 0 {
		return 0, usagef("--wait is %s; want 0 or more", wait)
	}
	d, e, err := a.bench(ctx, o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	defer e.Close()
	id, err := wholeID(ctx, d, text)
	if err != nil {
		return 0, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out, err := e.Wait(waiting, d.Tenant, id, true)
	if err != nil {
		return 0, err
	}
	return a.outcome(ctx, d, e, out)
}

func (a *app) resumeAll(ctx context.Context, o config.OpenOptions) (int, error) {
	d, e, err := a.bench(ctx, o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	defer e.Close()
	taken := 0
	err = untilStopped(ctx, e, server.Grace, func() (err error) {
		taken, err = e.Resume(ctx)
		return err
	})
	if err != nil && ctx.Err() == nil {
		return 0, err
	}
	left, err := unsettled(context.WithoutCancel(ctx), d)
	if left.Error, err = partly(err); err != nil {
		return 0, err
	}
	left.Taken = taken
	return a.part(left, left.Error, left.text)
}

// untilStopped runs the engine's work. When ctx ends it closes the engine, and gives the
// writes in hand a bounded time to end.
func untilStopped(ctx context.Context, e *engine.Engine, most time.Duration, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(most)
	defer late.Stop()
	go e.Close()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("%w after %s: it is in the ledger and is taken up again when its lease has ended", server.ErrLate, most)
	}
}

// remainder is what is left after a resume.
type remainder struct {
	// Taken is how many times a write was claimed.
	Taken int `json:"taken"`
	// States counts the writes that are not settled, by state.
	States map[ledger.State]int `json:"states"`
	// Next is when the next of them is due, if one is.
	Next time.Time `json:"next_due,omitzero"`
	// Error names writes that are not counted because they cannot be read.
	Error *failure `json:"error,omitempty"`

	now time.Time
}

func unsettled(ctx context.Context, d *server.Instance) (remainder, error) {
	r := remainder{States: map[ledger.State]int{}}
	var open []ledger.State
	for _, s := range service.States {
		if s != ledger.Settled {
			open = append(open, s)
		}
	}
	recs, err := d.Ledger.List(ctx, ledger.Filter{Tenant: d.Tenant, States: open, Limit: maxUnsettled})
	for _, rec := range recs {
		r.now = rec.Now
		r.States[rec.State]++
		if rec.State == ledger.Held { // it waits for a reviewer, not for a worker
			continue
		}
		if !rec.Due.IsZero() && (r.Next.IsZero() || rec.Due.Before(r.Next)) {
			r.Next = rec.Due
		}
	}
	return r, err
}

func (r remainder) text() string {
	text := fmt.Sprintf("Took writes up %d times.", r.Taken)
	var parts []string
	for _, s := range service.States {
		if n := r.States[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	switch {
	case len(parts) == 0 && r.Error != nil:
		return text + " Everything that can be read is settled.\n"
	case len(parts) == 0:
		return text + " Everything is settled.\n"
	}
	text += " Not settled: " + strings.Join(parts, ", ")
	if wait := r.Next.Sub(r.now); !r.Next.IsZero() && wait > 0 {
		text += fmt.Sprintf("; the next is due in %s", wait.Round(time.Second))
	}
	return text + ".\n"
}
