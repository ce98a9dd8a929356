package temporal

import (
	"cmp"
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

// Write is how an activity that exists becomes a write.
type Write struct {
	// Intent returns the write that the activity makes, from its arguments. A step in it names the
	// write; without one the activity ID does, which the workflow must have set.
	Intent func(args []any) (intent.WriteIntent, error)
	// Result returns the activity's result, in its old type, from an outcome that is one.
	Result func(engine.Outcome) (any, error)
}

// Intercept returns the interceptor of a worker that makes writes of the activities of these types:
// worker.Options{Interceptors: []interceptor.WorkerInterceptor{temporal.Intercept(eng, writes)}}.
// The functions of the activities are not called any more; workflows stay as they are.
//
// A write in progress, and one that waits for a reviewer, is retried after a time of its own. In
// workflows of workers with the interceptor these activities therefore have no maximum of
// attempts. A schedule-to-close timeout must be longer than a reviewer may take.
func Intercept(e *engine.Engine, writes map[string]Write) interceptor.WorkerInterceptor {
	return &intercepted{engine: e, writes: writes}
}

type intercepted struct {
	interceptor.WorkerInterceptorBase
	engine *engine.Engine
	writes map[string]Write
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (i *intercepted) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &interceptedActivity{of: i}
	a.Next = next
	return a
}

type interceptedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	of *intercepted
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (a *interceptedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	write, ok := a.of.writes[activity.GetInfo(ctx).ActivityType.Name]
	if !ok {
		return a.Next.ExecuteActivity(ctx, in)
	}
	w, err := write.Intent(in.Args)
	if err != nil {
		return nil, final("readback.refused", err.Error(), err)
	}
	step, err := attempt(ctx, a.of.engine, w, false)
	if err != nil {
		return nil, err
	}
	if step.Next == engine.NextDecision {
		return nil, later(step)
	}
	return write.Result(step.Outcome)
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (i *intercepted) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w := &interceptedWorkflow{of: i}
	w.Next = next
	return w
}

type interceptedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	of *intercepted
}

// Init implements [interceptor.WorkflowInboundInterceptor].
func (w *interceptedWorkflow) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &scheduled{of: w.of}
	o.Next = next
	return w.Next.Init(o)
}

type scheduled struct {
	interceptor.WorkflowOutboundInterceptorBase
	of *intercepted
}

// ExecuteActivity implements [interceptor.WorkflowOutboundInterceptor].
func (s *scheduled) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if _, ok := s.of.writes[activityType]; ok {
		o := workflow.GetActivityOptions(ctx)
		o.HeartbeatTimeout = cmp.Or(o.HeartbeatTimeout, heartbeat)
		if o.RetryPolicy != nil {
			policy := *o.RetryPolicy
			policy.MaximumAttempts = 0
			o.RetryPolicy = &policy
		}
		ctx = workflow.WithActivityOptions(ctx, o)
	}
	return s.Next.ExecuteActivity(ctx, activityType, args...)
}
