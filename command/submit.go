package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
)

// defaultWait is how long a command waits for an outcome: as long as a destination takes
// that declares nothing about itself.
const defaultWait = time.Minute

func (a *app) submitCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit -f FILE",
		Short: "Make the write that an intent declares, once, and wait for its outcome",
		Long: `Make the write that an intent declares, once, and wait for its outcome.

The file holds one intent as JSON; "-" is standard input. An intent without a tenant is
one of the configured tenant, or of --tenant. The intent is on disk
before the send. You can submit the same intent any number of times: the write is made
once, and each time the command prints its outcome.

If the wait ends first, the write stays in the ledger and the outcome is "in progress"
(exit code 21). "readback resume ID" or "readback work" continues it. The command still
waits for a send or read that has begun, so that its result is not lost. With --wait 0
it waits for nothing else.

If another workflow used the idempotency key, the write is refused (30); the error
names that workflow, its write, state and outcome. With --wait-prior the command waits
for that write, up to --wait, and prints its outcome. A write with other contents under
the same key is always refused.

With --enqueue the command sends nothing: it records the write and prints its ID, and a
worker ("readback work") on this ledger sends it. The outcome is "in progress", or
"refused" (30) if too many writes wait.

The write records the W3C trace in the environment variable TRACEPARENT, and passes it
to the destination.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.submit(ctx, s) }),
	}
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "the file of the intent, - for standard input (required)")
	waitFlag(cmd, &s.wait)
	cmd.Flags().BoolVar(&s.waitPrior, "wait-prior", false, "wait for the workflow that began the same operation before")
	cmd.Flags().StringVar(&s.by, "by", "", "the caller: another reviewer must approve the write (default none)")
	cmd.Flags().BoolVar(&s.enqueue, "enqueue", false, "only record it; a worker on the ledger sends it")
	cmd.MarkFlagsMutuallyExclusive("enqueue", "wait")
	cmd.MarkFlagsMutuallyExclusive("enqueue", "wait-prior")
	return cmd
}

// submission are the flags of submit.
type submission struct {
	file, by           string
	wait               time.Duration
	enqueue, waitPrior bool
}

func waitFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", defaultWait, "how long to wait for the outcome")
}

func (a *app) submit(ctx context.Context, s submission) (int, error) {
	if s.wait < 0 {
		return 0, usagef("--wait is %s; want 0 or more", s.wait)
	}
	text, err := a.readIntent(s.file)
	if err != nil {
		return 0, err
	}
	c, err := a.settings()
	if err != nil {
		return 0, err
	}
	w, err := intent.Parse(text) // the engine validates it
	if err != nil {
		return 0, err
	}
	w.Tenant = cmp.Or(w.Tenant, c.Tenant)
	if w.Tenant != c.Tenant {
		return 0, &intent.InvalidError{Problems: []intent.Problem{{Path: "/tenant", Problem: fmt.Sprintf("is %q", w.Tenant),
			Want: fmt.Sprintf("%q, the tenant that is meant here; --tenant %s means another one", c.Tenant, w.Tenant)}}}
	}
	d, e, err := a.bench(ctx, config.OpenOptions{Create: true})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	defer e.Close()
	d.Log.Info("submit", "destination", w.Destination, "kind", w.Kind, "write", w.Write, "correlation", w.CorrelationID)
	ctx = a.traced(engine.As(ctx, engine.Principal{Name: s.by}))
	if w.CorrelationID == "" {
		w.CorrelationID = engine.TraceID(ctx)
	}
	if s.enqueue {
		id, err := e.Enqueue(ctx, w)
		if err != nil {
			return 0, err
		}
		return a.outcome(ctx, d, e, engine.Outcome{ID: id})
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	var begun *prior
	out, err := e.Do(waiting, w)
	if err != nil && s.waitPrior {
		out, begun, err = awaited(waiting, e, err)
	}
	if err != nil {
		return 0, err
	}
	return a.outcomeOf(ctx, d, e, out, begun)
}

// traced is the context of a command in the trace of its environment.
func (a *app) traced(ctx context.Context) context.Context {
	return engine.WithTraceparent(ctx, a.env("TRACEPARENT"))
}

// readIntent reads a file, up to the longest intent.
func (a *app) readIntent(file string) ([]byte, error) {
	from := a.stdin
	switch file {
	case "":
		return nil, usagef("-f is missing; want the file of an intent, or - for standard input")
	case "-":
	default:
		f, err := os.Open(file)
		if err != nil {
			return nil, usagef("-f: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, intent.MaxSize+1))
	if err != nil {
		return nil, usagef("-f: %w", err)
	}
	return text, nil
}
