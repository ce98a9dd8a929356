package main

import (
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

The file holds one intent as JSON; "-" is standard input. The intent is on disk
before anything is sent. The same intent may be submitted any number of times:
it is made once, and each time the answer is its outcome.

When the wait ends first, the write stays in the ledger and the answer is "in
progress" (exit code 22); "readback resume ID" or "readback work" continues it. A
send or read that is under way then is let end first, so that its result is not
lost. With --wait 0 nothing else is waited for.

A write whose idempotency key was used by another workflow is refused (30), with
that workflow, its write, state and outcome. With --wait-prior its outcome is waited
for instead, as long as --wait says, and is the answer; one that asks for something
else under the same key is refused all the same.

With --enqueue nothing is sent here: the write is recorded, its id is printed, and
a worker ("readback work") on this ledger sends it. The answer then is "in
progress" as well, or "refused" (30) when too much waits already.

A trace that the environment variable TRACEPARENT names, as W3C writes it, is that of
the write: its record keeps it, and its destination gets it.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.submit(ctx, s) }),
	}
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "the file of the intent, - for standard input (required)")
	waitFlag(cmd, &s.wait)
	cmd.Flags().BoolVar(&s.waitPrior, "wait-prior", false, "wait for the workflow that began the same operation before")
	cmd.Flags().StringVar(&s.by, "by", "", "who asks: another reviewer must approve it (default none)")
	cmd.Flags().BoolVar(&s.enqueue, "enqueue", false, "only record it, for the workers of the ledger")
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
	w, err := intent.Decode(text)
	if err != nil {
		return 0, err
	}
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
