package temporal

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

// heartbeat is the default of a heartbeat timeout. A cancellation reaches an attempt with a heartbeat.
const heartbeat = 15 * time.Second

// maxWait bounds one wait for a decision. A workflow that waits for another one's write gets no
// signal, and must ask again while that write's idempotency key still blocks: for a day after its
// end, by default.
const maxWait = 12 * time.Hour

// Do makes the write of a step of a workflow and returns its outcome: verified, accepted,
// unverified or reported. A write that waits for a reviewer waits for [Decided], or for a durable
// timer that grows with its age: days need few events. Register the activity with [Register].
//
// The tenant is the namespace unless the intent has one. A workflow of the intent is its period: a
// workflow ID that runs again, by cron or continue-as-new, and is to write again in each run, has
// workflow.GetInfo(ctx).OriginalRunID there, which a reset keeps. A loop sets Call.
//
// An error has the outcome beside it where there is one. It is an [sdk.ApplicationError] of type
// "readback.not_applied", "readback.denied" and so on after an outcome without the effect, and of
// type "readback.refused" after a request that was refused. After any other error, a cancellation
// too, the write may have been sent, and continues: Do with the same step returns its outcome.
//
// Do keeps the [workflow.ActivityOptions] of ctx but for the activity ID, and waits for the end of
// an attempt that is cancelled. Default: an attempt of one minute with heartbeats, and retries
// without end.
func Do(ctx workflow.Context, step string, w intent.WriteIntent) (engine.Outcome, error) {
	info := workflow.GetInfo(ctx)
	reset := info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID
	w.Step = step
	o := workflow.GetActivityOptions(ctx)
	o.StartToCloseTimeout = cmp.Or(o.StartToCloseTimeout, time.Minute)
	o.HeartbeatTimeout = cmp.Or(o.HeartbeatTimeout, heartbeat)
	o.WaitForCancellation = true // the answer of the attempt says what is known
	if o.ActivityID = step; w.Call > 0 {
		o.ActivityID = fmt.Sprintf("%s/%d", step, w.Call)
	}
	ctx = workflow.WithActivityOptions(ctx, o)
	began := workflow.Now(ctx)
	var last engine.Outcome
	for {
		var s engine.Step // decoding keeps what is not in the text
		err := workflow.ExecuteActivity(ctx, ActivityType, w, reset || info.Attempt > 1).Get(ctx, &s)
		if err != nil {
			return failed(ctx, step, last, err)
		}
		if s.Next != engine.NextDecision {
			return s.Outcome, nil
		}
		last = s.Outcome
		wait := max(s.After, min(workflow.Now(ctx).Sub(began)/4, maxWait))
		workflow.GetSignalChannel(ctx, Decided(s.Outcome.ID)).ReceiveWithTimeout(ctx, wait, nil)
	}
}

// failed returns the outcome that an error of the activity has, or else the last one, and an error
// that never claims that nothing was sent where that is unknown.
func failed(ctx workflow.Context, step string, last engine.Outcome, err error) (engine.Outcome, error) {
	var app *sdk.ApplicationError
	var canceled *sdk.CanceledError
	var out engine.Outcome
	known := errors.As(err, &app) && app.Details(&out) == nil || errors.As(err, &canceled) && canceled.Details(&out) == nil
	if known && out.ID != "" {
		last = out
	}
	if app != nil && app.NonRetryable() {
		return last, err
	}
	text := fmt.Sprintf("the write of step %q may have been sent, and continues; the step returns its outcome when it runs again", step)
	if last.ID != "" {
		text = fmt.Sprintf("%s; write %s was %s: %s", text, last.ID, last.Status, last.Text)
	}
	if canceled != nil || ctx.Err() != nil { // the workflow ends as cancelled, with the text
		return last, sdk.NewCanceledErrorWithOptions(sdk.CanceledErrorOptions{Message: text, Details: []any{text, last}, Cause: err})
	}
	return last, fmt.Errorf("%s: %w", text, err)
}
