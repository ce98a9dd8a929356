package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/adapters/temporal"
	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	workflowType = "readback.Follow"
	activityType = "readback.WorkOn"
	// due is the signal that wakes a workflow before its timer.
	due = "due"

	// dialFirst and dialMost are the pauses between attempts to reach Temporal.
	dialFirst, dialMost = 500 * time.Millisecond, 15 * time.Second
	// attemptTime bounds one activity: a send, its reads, and commits that wait for a database.
	attemptTime = 10 * time.Minute
	// heartbeat is after how long without a sign of life a worker counts as dead.
	heartbeat = 15 * time.Second
	// retryFirst and retryMost are the pauses after a failed activity. A shorter timer than the
	// first would only repeat what the engine has waited for in its own time.
	retryFirst, retryMost = time.Second, time.Minute
	// unserved is how long a write waits for a worker that knows its destination. Then any takes it,
	// to end a hold whose time is over, or to record that its destination is not configured.
	unserved = time.Minute
	// stopTime is how long activities may take to return once the worker stops. The sends in them
	// have the grace of the command.
	stopTime = 5 * time.Second
)

// subject is a write or a saga.
type subject struct {
	Kind        string `json:"kind"` // "write" or "saga"
	Tenant      string `json:"tenant"`
	ID          string `json:"id"`
	Destination string `json:"destination,omitempty"` // of a write
}

// next is when a subject needs work again.
type next struct {
	In    time.Duration `json:"in"`
	Again bool          `json:"again"`
}

// follow is the workflow of one subject. It ends when the subject needs no work before something
// changes it, and then is started again. Work that was never worked on is in the ledger alone.
func follow(ctx workflow.Context, of subject) error {
	wakes := workflow.GetSignalChannel(ctx, due)
	for !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		for wakes.ReceiveAsync(nil) {
		}
		n, err := workOn(ctx, of)
		switch {
		case err != nil:
			return err
		case n.Again:
			wakes.ReceiveWithTimeout(ctx, max(n.In, retryFirst), nil)
		case wakes.Len() == 0:
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return workflow.NewContinueAsNewError(ctx, follow, of)
}

// workOn has the subject worked on by a worker that knows its destination, else by any.
func workOn(ctx workflow.Context, of subject) (n next, err error) {
	o := workflow.ActivityOptions{
		StartToCloseTimeout: attemptTime, HeartbeatTimeout: heartbeat,
		RetryPolicy: &sdk.RetryPolicy{InitialInterval: retryFirst, MaximumInterval: retryMost},
	}
	if of.Kind == "saga" {
		o.TaskQueue = sagasOf(workflow.GetInfo(ctx).TaskQueueName)
	}
	if of.Destination != "" {
		own := o
		own.TaskQueue, own.ScheduleToStartTimeout = below(workflow.GetInfo(ctx).TaskQueueName, of.Destination), unserved
		err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, own), activityType, of).Get(ctx, &n)
		var late *sdk.TimeoutError
		if !errors.As(err, &late) || late.TimeoutType() != enums.TIMEOUT_TYPE_SCHEDULE_TO_START {
			return n, err
		}
	}
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), activityType, of).Get(ctx, &n)
	return n, err
}

// below is the task queue of a destination. A destination with too many or too slow writes takes no
// worker from others.
func below(queue, destination string) string { return queue + "/" + destination }

// sagasOf is the task queue of sagas, so that writes which no worker of their destination took in time
// do not delay them.
func sagasOf(queue string) string { return queue + ":saga" }

// driver drives the work of one process.
type driver struct {
	work   command.Work
	client client.Client
	queue  string
}

// run starts the workers, and hands over what is due, until ctx ends or a worker fails.
func (d *driver) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	o := worker.Options{
		MaxConcurrentActivityExecutionSize: d.work.Options.Parallel, WorkerStopTimeout: stopTime, DisableRegistrationAliasing: true,
		OnFatalError: func(err error) { end(fmt.Errorf("a worker of Temporal: %w", err)) },
	}
	all := worker.New(d.client, d.queue, o)
	all.RegisterWorkflowWithOptions(follow, workflow.RegisterOptions{Name: workflowType})
	workers := []worker.Worker{all}
	o.DisableWorkflowWorker = true
	queues := []string{sagasOf(d.queue)}
	for _, name := range d.work.Destinations {
		queues = append(queues, below(d.queue, name))
	}
	for _, queue := range queues {
		workers = append(workers, worker.New(d.client, queue, o))
	}
	var stopping sync.WaitGroup
	defer stopping.Wait()
	for _, w := range workers {
		w.RegisterActivityWithOptions(d.workOn, activity.RegisterOptions{Name: activityType})
		if err := w.Start(); err != nil {
			return fmt.Errorf("a worker of Temporal: %w", err)
		}
		defer stopping.Go(w.Stop)
	}
	d.dispatch(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// dispatch hands over what is due until ctx ends.
func (d *driver) dispatch(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = d.work.Sagas.Dispatch(ctx, func(ctx context.Context, tenant, id string) error { // it returns nil
			return d.start(ctx, subject{Kind: "saga", Tenant: tenant, ID: id})
		})
	})
	o := d.work.Options
	o.Dispatch = func(ctx context.Context, rec ledger.Record) error {
		return d.start(ctx, subject{Kind: "write", Tenant: rec.Tenant, ID: string(rec.ID), Destination: rec.Destination})
	}
	_ = d.work.Engine.Work(ctx, &o) // it returns nil
	wg.Wait()
}

// workflowID names the workflow of a subject: a tenant and the ID of a saga may have slashes.
func (of subject) workflowID(queue string) string {
	return engine.WorkflowName(queue, of.Kind, of.Tenant, of.ID)
}

// start starts the workflow of a subject, or wakes it.
func (d *driver) start(ctx context.Context, of subject) error {
	_, err := d.client.SignalWithStartWorkflow(ctx, of.workflowID(d.queue), due, nil, client.StartWorkflowOptions{TaskQueue: d.queue}, workflowType, of)
	return err
}

// workOn is the activity. Its errors are retried without end: the subject stays due.
func (d *driver) workOn(ctx context.Context, of subject) (n next, err error) {
	ctx, end := temporal.WhileWorking(ctx)
	defer end()
	if of.Kind == "saga" {
		n.In, n.Again, err = d.work.Sagas.WorkOn(ctx, of.Tenant, of.ID)
	} else {
		n.In, n.Again, err = d.work.Engine.WorkOn(ctx, of.Tenant, ledger.ID(of.ID))
	}
	if err != nil {
		d.work.Logger.Warn("due work is tried again", of.Kind, of.ID, "tenant", of.Tenant, "error", err)
		err = sdk.NewApplicationErrorWithOptions(fmt.Sprintf("%s %s cannot be worked on now", of.Kind, of.ID), "readback.not_now",
			sdk.ApplicationErrorOptions{Category: sdk.ApplicationErrorCategoryBenign})
	}
	return n, err
}

// dial connects to Temporal, and tries again until ctx ends. It then returns nil.
func dial(ctx context.Context, o client.Options, log *slog.Logger) client.Client {
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(dialFirst), backoff.WithMaxInterval(dialMost), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		c, err := client.DialContext(ctx, o)
		if err == nil {
			return c
		}
		if ctx.Err() == nil {
			log.Error("Temporal cannot be reached; no due write continues until it is, and it is tried again", "address", o.HostPort, "error", err)
		}
		pause.For(ctx, pace.NextBackOff())
	}
	return nil
}
