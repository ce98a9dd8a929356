package temporal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// ActivityType is the activity that [Do] calls. Its arguments are the intent, and whether this run
// of the workflow repeats an earlier one; its result is an [engine.Step].
const ActivityType = "readback.Write"

// margin is how long before its own deadline an attempt ends, so that its answer is in time.
const margin = 5 * time.Second

// errActivityID means that nothing names the step. Temporal numbers activities that have no ID, and the
// numbers change with the workflow's code.
var errActivityID = errors.New("the activity ID is one that Temporal gave, which changes with the workflow's code: " +
	"set ActivityID in workflow.ActivityOptions, or Step in the intent")

// counted matches the IDs that SDKs give to activities: a number, or a UUID that a reset changes.
var counted = regexp.MustCompile(`^([0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// Register registers the activity of [Do] with a worker.
func Register(r worker.ActivityRegistry, e *engine.Engine) {
	r.RegisterActivityWithOptions(func(ctx context.Context, w intent.WriteIntent, rerun bool) (engine.Step, error) {
		return attempt(ctx, e, w, rerun)
	}, activity.RegisterOptions{Name: ActivityType})
}

// attempt makes one attempt at a write in the activity of ctx. Its errors are Temporal's: only an
// outcome that cannot change is not retried.
func attempt(ctx context.Context, e *engine.Engine, w intent.WriteIntent, rerun bool) (engine.Step, error) {
	info := activity.GetInfo(ctx)
	if err := name(&w, info); err != nil {
		return engine.Step{}, final("readback.refused", err.Error(), err)
	}
	n := int(info.Attempt)
	if rerun { // an earlier run may have made it, as an earlier attempt
		n++
	}
	working, end := WhileWorking(ctx)
	step, err := e.Step(working, w, n)
	end()
	switch {
	case errors.Is(err, ledger.ErrDigestMismatch):
		err = fmt.Errorf("%w; step %q of workflow %q has made another write: a loop sets Call, a run that is to write "+
			"again sets Workflow, and another Temporal cluster has another tenant", err, w.Step, w.Workflow)
		return step, final("readback.refused", err.Error(), err)
	case err != nil && step.Next == engine.NextFail:
		return step, final("readback.refused", err.Error(), err)
	case err != nil:
		return step, err
	case step.Next == engine.NextFail:
		return step, final("readback."+string(step.Outcome.Status), step.Outcome.Text, nil, step.Outcome)
	case step.Next == engine.NextLater && sdk.IsCanceledError(context.Cause(ctx)):
		return step, sdk.NewCanceledError(step.Outcome)
	case step.Next == engine.NextLater:
		return step, later(step)
	}
	return step, nil
}

// name gives the write its name for ever: the namespace, the workflow ID, and where the intent has
// a workflow that as its period; and the step, or else the activity ID.
func name(w *intent.WriteIntent, info activity.Info) error {
	if w.Tenant == "" {
		w.Tenant = info.Namespace
	}
	parts := []string{info.Namespace, info.WorkflowExecution.ID}
	if w.Workflow != "" {
		parts = append(parts, w.Workflow)
	}
	w.Workflow = engine.WorkflowName(prefix, parts...)
	if w.Step == "" {
		if w.Step = info.ActivityID; counted.MatchString(w.Step) {
			return fmt.Errorf("%w: activity %s, ID %q", errActivityID, info.ActivityType.Name, info.ActivityID)
		}
	}
	return nil
}

// final is an error that Temporal does not retry, with the outcome where there is one.
func final(kind, text string, cause error, details ...any) error {
	return sdk.NewApplicationErrorWithOptions(text, kind, sdk.ApplicationErrorOptions{NonRetryable: true, Cause: cause, Details: details})
}

// later has Temporal call the activity again after the step's time, without an alert.
func later(step engine.Step) error {
	return sdk.NewApplicationErrorWithOptions(step.Outcome.Text, "readback."+string(step.Outcome.Status), sdk.ApplicationErrorOptions{
		NextRetryDelay: step.After, Category: sdk.ApplicationErrorCategoryBenign, Details: []any{step.Outcome},
	})
}

// WhileWorking sends the heartbeats of an activity until end is called. Its context ends before the activity's
// deadline, and when the worker stops: the write continues, and the next attempt has its outcome.
func WhileWorking(ctx context.Context) (working context.Context, end context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		working, end = context.WithDeadline(ctx, deadline.Add(-min(margin, time.Until(deadline)/4)))
	} else {
		working, end = context.WithCancel(ctx)
	}
	var beat <-chan time.Time
	stopBeat := func() {}
	if every := activity.GetInfo(ctx).HeartbeatTimeout / 3; every > 0 {
		ticker := time.NewTicker(every)
		beat, stopBeat = ticker.C, ticker.Stop
	}
	go func() {
		defer stopBeat()
		for {
			select {
			case <-beat: // how the activity learns that it is cancelled, too
				activity.RecordHeartbeat(ctx)
			case <-activity.GetWorkerStopChannel(ctx):
				end()
				return
			case <-working.Done():
				return
			}
		}
	}()
	return working, end
}
