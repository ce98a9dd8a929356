// Command readback-temporal is the command readback with Temporal as the scheduler of serve and
// work: due times, retries, rechecks and sagas are durable timers and activities of Temporal, and
// the writes are in the ledger as before. docs/operate/run.md describes it.
//
// The package hands due work over and waits. It decides nothing about a write: whatever Temporal
// loses or repeats, the ledger's leases and fences permit one executor.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/readback-go/readback/command"
)

func main() { scheduler().Main() }

// scheduler returns Temporal as a scheduler, with its flags.
func scheduler() command.Scheduler {
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	address := flags.String("temporal", "", "Temporal's frontend, host:port (default $TEMPORAL_ADDRESS, else localhost:7233)")
	namespace := flags.String("namespace", "", "Temporal's namespace (default $TEMPORAL_NAMESPACE, else default)")
	queue := flags.String("task-queue", "readback", "Temporal's task queue, one for each ledger; each destination has one below it")
	return command.Scheduler{Flags: flags, Run: func(ctx context.Context, w command.Work) error {
		o, err := envconfig.LoadDefaultClientOptions()
		if err != nil {
			return err
		}
		o.HostPort, o.Namespace = cmp.Or(*address, o.HostPort), cmp.Or(*namespace, o.Namespace)
		o.Logger = log.NewStructuredLogger(w.Logger)
		return schedule(ctx, o, *queue, w)
	}}
}

// schedule drives the work of this process until ctx ends.
func schedule(ctx context.Context, o client.Options, queue string, w command.Work) error {
	if queue == "" {
		return errors.New("--task-queue is empty: name one for each ledger")
	}
	c := dial(ctx, o, w.Logger)
	if c == nil {
		return nil
	}
	defer c.Close()
	d := &driver{work: w, client: c, queue: queue}
	return d.run(ctx)
}
