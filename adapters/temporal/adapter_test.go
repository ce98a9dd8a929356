package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/adapters/temporal"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// order is the intent of one order, without its name.
func order(id string, risk intent.Risk) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Tool: "charge_card", Destination: "orders", Kind: orders.Kind, Write: intent.Create, Risk: risk,
		Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number("1999")},
	}
}

// fixture is an engine, its destination and its ledger.
type fixture struct {
	engine *engine.Engine
	ledger ledger.Ledger
	world  *orders.World
}

func newFixture(t *testing.T, faults ...orders.Fault) fixture {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if err := world.Set(f); err != nil {
			t.Fatal(err)
		}
	}
	l := ledger.NewMemory()
	return fixture{newEngine(t, l, world.Destination()), l, world}
}

func newEngine(t *testing.T, l ledger.Ledger, d connectors.Destination) *engine.Engine {
	t.Helper()
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		t.Fatal(err)
	}
	eng := engine.New(l, &reg, nil)
	t.Cleanup(eng.Close)
	return eng
}

// run runs a workflow in Temporal's test environment, where time is virtual.
func run(t *testing.T, f fixture, opts worker.Options, prepare func(*testsuite.TestWorkflowEnvironment), flow any, args ...any) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	opts.DeadlockDetectionTimeout = time.Minute // of a busy machine
	env.SetWorkerOptions(opts)
	temporal.Register(env, f.engine)
	env.RegisterWorkflow(flow)
	if prepare != nil {
		prepare(env)
	}
	env.ExecuteWorkflow(flow, args...)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	return env
}

func chargeFlow(ctx workflow.Context, w intent.WriteIntent) (engine.Outcome, error) {
	return temporal.Do(ctx, "charge", w)
}

// wantOne fails unless the destination has exactly one effect of the order.
func wantOne(t *testing.T, world *orders.World, id string) {
	t.Helper()
	if n := world.Changes(id); n != 1 {
		t.Errorf("order %s has %d effects at the destination, want 1", id, n)
	}
}

func TestDoVerifiesAWriteWhoseAnswerIsLost(t *testing.T) {
	f := newFixture(t, orders.Fault{Kind: orders.LostAnswer, Times: 1})
	env := run(t, f, worker.Options{}, nil, chargeFlow, order("A-1", ""))
	var out engine.Outcome
	if err := env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	if out.Status != ledger.Verified || out.Sends != 1 {
		t.Errorf("got %s after %d sends: %s", out.Status, out.Sends, out.Text)
	}
	wantOne(t, f.world, "A-1")
}

func TestDoFailsWithTheOutcome(t *testing.T) {
	f := newFixture(t, orders.Fault{Kind: orders.Refused, Times: 1})
	env := run(t, f, worker.Options{}, nil, chargeFlow, order("A-1", ""))
	err := env.GetWorkflowError()
	var app *sdk.ApplicationError
	if !errors.As(err, &app) || app.Type() != "readback.not_applied" || !app.NonRetryable() {
		t.Fatalf("got %v", err)
	}
	var out engine.Outcome
	if err := app.Details(&out); err != nil || out.Status != ledger.NotApplied {
		t.Errorf("the error has the outcome %+v, %v", out, err)
	}
}

// held returns the write that waits for an approval.
func held(t *testing.T, f fixture) ledger.Record {
	t.Helper()
	found, err := f.ledger.List(t.Context(), ledger.Filter{Tenant: "acme", States: []ledger.State{ledger.Held}})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d writes are held, %v", len(found), err)
	}
	return found[0]
}

func decide(t *testing.T, f fixture, word engine.Word) ledger.ID {
	t.Helper()
	rec := held(t, f)
	if _, err := f.engine.Resolve(t.Context(), "acme", rec.ID, engine.Decision{Word: word, By: "erin", Reason: "checked", Digest: rec.Digest}); err != nil {
		t.Error(err)
	}
	return rec.ID
}

func TestDoWaitsForAReviewerForDays(t *testing.T) {
	const days = 3 * 24 * time.Hour
	for name, c := range map[string]struct {
		word   engine.Word
		signal bool
		most   time.Duration // until the workflow ends
		want   string        // the type of its error
	}{
		"the signal resumes it":           {engine.WordApprove, true, days + time.Minute, ""},
		"a lost signal costs one timer":   {engine.WordApprove, false, days * 5 / 4, ""},
		"a denial is an error of its own": {engine.WordDeny, true, days + time.Minute, "readback.denied"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			calls := 0
			var began, ended time.Time
			env := run(t, f, worker.Options{}, func(env *testsuite.TestWorkflowEnvironment) {
				began = env.Now()
				env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) { calls++ })
				env.RegisterDelayedCallback(func() {
					id := decide(t, f, c.word)
					if c.signal {
						env.SignalWorkflow(temporal.Decided(id), nil)
					}
				}, days)
			}, func(ctx workflow.Context, w intent.WriteIntent) (engine.Outcome, error) {
				out, err := temporal.Do(ctx, "charge", w)
				ended = workflow.Now(ctx)
				return out, err
			}, order("A-1", intent.RiskApprove))
			if took := ended.Sub(began); took < days || took > c.most {
				t.Errorf("it took %v", took)
			}
			if calls > 60 { // each is about ten events of the history, which may have 50,000
				t.Errorf("three days needed %d activities", calls)
			}
			var app *sdk.ApplicationError
			switch err := env.GetWorkflowError(); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &app) || app.Type() != c.want):
				t.Errorf("got %v, want %s", err, c.want)
			}
			if c.want == "" {
				wantOne(t, f.world, "A-1")
			} else if n := f.world.Changes("A-1"); n != 0 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// The outcome of a step is the last one, with nothing of those before.
func TestTheLastOutcomeIsTheResult(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	steps := []engine.Step{
		{Next: engine.NextDecision, After: time.Minute, Outcome: engine.Outcome{ID: "wr_1", Status: "review", Refusal: &ledger.Refusal{Code: "busy"}, QueuedBehind: "wr_0"}},
		{Next: engine.NextResult, Outcome: engine.Outcome{ID: "wr_1", Status: ledger.Verified}},
	}
	env.RegisterActivityWithOptions(func(context.Context, intent.WriteIntent, bool) (s engine.Step, err error) {
		s, steps = steps[0], steps[1:]
		return s, nil
	}, activity.RegisterOptions{Name: temporal.ActivityType})
	env.RegisterWorkflow(chargeFlow)
	env.ExecuteWorkflow(chargeFlow, order("A-1", ""))
	var out engine.Outcome
	if err := env.GetWorkflowResult(&out); err != nil || out.Status != ledger.Verified || out.Refusal != nil || out.QueuedBehind != "" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// A workflow that waits for another one's write asks again while the idempotency key of that write
// still blocks, however long it has waited.
func TestNoWaitOutlastsAnIdempotencyKey(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	began := env.Now()
	last, longest := began, time.Duration(0)
	env.RegisterActivityWithOptions(func(context.Context, intent.WriteIntent, bool) (engine.Step, error) {
		longest, last = max(longest, env.Now().Sub(last)), env.Now()
		if last.Sub(began) > 30*24*time.Hour {
			return engine.Step{Next: engine.NextResult}, nil
		}
		return engine.Step{Next: engine.NextDecision, After: time.Hour, Outcome: engine.Outcome{ID: "wr_1"}}, nil
	}, activity.RegisterOptions{Name: temporal.ActivityType})
	env.RegisterWorkflow(chargeFlow)
	env.ExecuteWorkflow(chargeFlow, order("A-1", ""))
	const blocks = 24 * time.Hour // the default of engine.Options.Window
	if err := env.GetWorkflowError(); err != nil || longest > blocks-10*time.Hour {
		t.Errorf("one wait took %v, %v, want that the key blocks for hours after it", longest, err)
	}
}

func TestACancelledWaitDoesNotSayThatNothingIsSent(t *testing.T) {
	f := newFixture(t)
	env := run(t, f, worker.Options{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	}, chargeFlow, order("A-1", intent.RiskApprove))
	err := env.GetWorkflowError()
	if !sdk.IsCanceledError(err) || !strings.Contains(err.Error(), "may have been sent, and continues") || !strings.Contains(err.Error(), string(held(t, f).ID)) {
		t.Errorf("got %v", err)
	}
}

func TestALoopNeedsCall(t *testing.T) {
	loop := func(ctx workflow.Context, count bool) error {
		for i, id := range []string{"A-1", "A-2"} {
			w := order(id, "")
			if count {
				w.Call = i
			}
			if _, err := temporal.Do(ctx, "charge", w); err != nil {
				return err
			}
		}
		return nil
	}
	t.Run("with Call each is a write", func(t *testing.T) {
		f := newFixture(t)
		if err := run(t, f, worker.Options{}, nil, loop, true).GetWorkflowError(); err != nil {
			t.Fatal(err)
		}
		wantOne(t, f.world, "A-1")
		wantOne(t, f.world, "A-2")
	})
	t.Run("without it the second is refused, and the error names the remedy", func(t *testing.T) {
		f := newFixture(t)
		wantRefused(t, run(t, f, worker.Options{}, nil, loop, false).GetWorkflowError(), `step "charge"`, "a loop sets Call")
		wantOne(t, f.world, "A-1")
		if n := f.world.Changes("A-2"); n != 0 {
			t.Errorf("A-2 has %d effects", n)
		}
	})
}

// wantRefused fails unless the error is one that Temporal does not retry, with the texts.
func wantRefused(t *testing.T, err error, texts ...string) {
	t.Helper()
	var app *sdk.ApplicationError
	if !errors.As(err, &app) || app.Type() != "readback.refused" || !app.NonRetryable() {
		t.Fatalf("got %v", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
}

func TestOneWorkflowIDThatRunsAgain(t *testing.T) {
	f := newFixture(t)
	flow := func(period string, w intent.WriteIntent) (engine.Outcome, error) {
		w.Workflow = period
		env := run(t, f, worker.Options{}, nil, chargeFlow, w) // always under one workflow ID
		var out engine.Outcome
		if err := env.GetWorkflowError(); err != nil {
			return out, err
		}
		return out, env.GetWorkflowResult(&out)
	}
	first, err := flow("", order("A-1", ""))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := flow("", order("A-1", "")); err != nil || again.ID != first.ID || !again.Replayed {
		t.Errorf("a second run is the write %s, %v; want %s", again.ID, err, first.ID)
	}
	wantOne(t, f.world, "A-1")
	_, err = flow("", order("A-2", "")) // as from another cluster with this namespace and ID
	wantRefused(t, err, `workflow "temporal:default-test-namespace/default-test-workflow-id"`, "another Temporal cluster has another tenant")
	if next, err := flow("2026-12", order("A-2", "")); err != nil || next.ID == first.ID {
		t.Errorf("the next period is the write %s, %v", next.ID, err)
	}
	wantOne(t, f.world, "A-2")
}

// charge is an activity as it was before readback: its result is a reference.
func charge(context.Context, string) (string, error) {
	return "", errors.New("the function of an intercepted activity was called")
}

var existing = map[string]temporal.Write{"charge": {
	Intent: func(args []any) (intent.WriteIntent, error) { return order(args[0].(string), ""), nil },
	Result: func(out engine.Outcome) (any, error) { return out.Ref, nil },
}}

func existingFlow(ctx workflow.Context, activityID string) (ref string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID: activityID, StartToCloseTimeout: time.Minute, RetryPolicy: &sdk.RetryPolicy{MaximumAttempts: 1},
	})
	err = workflow.ExecuteActivity(ctx, charge, "A-1").Get(ctx, &ref)
	return ref, err
}

func intercepting(f fixture, writes map[string]temporal.Write) worker.Options {
	return worker.Options{Interceptors: []interceptor.WorkerInterceptor{temporal.Intercept(f.engine, writes)}}
}

func withCharge(env *testsuite.TestWorkflowEnvironment) { env.RegisterActivity(charge) }

func TestInterceptKeepsTheResultOfAnActivity(t *testing.T) {
	f := newFixture(t, orders.Fault{Kind: orders.LostAnswer, Times: 1})
	env := run(t, f, intercepting(f, existing), withCharge, existingFlow, "charge")
	var ref string
	if err := env.GetWorkflowResult(&ref); err != nil || ref == "" {
		t.Errorf("got %q, %v", ref, err)
	}
	wantOne(t, f.world, "A-1")
}

func TestInterceptRefusesANumberedActivityID(t *testing.T) {
	f := newFixture(t)
	for _, id := range []string{"", "17", "6f0f1b2c-95a1-4f0e-8d3c-0a1b2c3d4e5f"} {
		err := run(t, f, intercepting(f, existing), withCharge, existingFlow, id).GetWorkflowError()
		wantRefused(t, err, "set ActivityID in workflow.ActivityOptions, or Step in the intent")
	}
	if n := f.world.Changes("A-1"); n != 0 {
		t.Errorf("%d effects", n)
	}
	named := map[string]temporal.Write{"charge": existing["charge"]}
	w := named["charge"]
	w.Intent = func(args []any) (intent.WriteIntent, error) {
		o := order(args[0].(string), "")
		o.Step = "charge"
		return o, nil
	}
	named["charge"] = w
	if err := run(t, f, intercepting(f, named), withCharge, existingFlow, "").GetWorkflowError(); err != nil {
		t.Error(err)
	}
	wantOne(t, f.world, "A-1")
}

func TestInterceptRetriesUntilAReviewerDecides(t *testing.T) {
	f := newFixture(t)
	risky := map[string]temporal.Write{"charge": {
		Intent: func(args []any) (intent.WriteIntent, error) { return order(args[0].(string), intent.RiskApprove), nil },
		Result: existing["charge"].Result,
	}}
	env := run(t, f, intercepting(f, risky), func(env *testsuite.TestWorkflowEnvironment) {
		withCharge(env)
		env.RegisterDelayedCallback(func() { decide(t, f, engine.WordApprove) }, 30*time.Second) // this environment has ten attempts
	}, existingFlow, "charge") // whose own policy has one attempt
	var ref string
	if err := env.GetWorkflowResult(&ref); err != nil || ref == "" {
		t.Errorf("got %q, %v", ref, err)
	}
	wantOne(t, f.world, "A-1")
}

func TestInterceptPassesOtherActivities(t *testing.T) {
	f := newFixture(t)
	env := run(t, f, intercepting(f, nil), withCharge, existingFlow, "charge")
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "was called") {
		t.Errorf("got %v", err)
	}
}

// A run that repeats an earlier one may repeat its writes only under their names.
func TestARunThatChangesTheNameOfAStepIsRefused(t *testing.T) {
	f := newFixture(t)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	temporal.Register(env, f.engine)
	call := func(step string, rerun bool) error {
		w := order("A-1", "")
		w.Step = step
		_, err := env.ExecuteActivity(temporal.ActivityType, w, rerun)
		return err
	}
	if err := call("charge 1", false); err != nil {
		t.Fatal(err)
	}
	err := call("charge 2", true)
	wantRefused(t, err, engine.ErrIdentityChanged.Error(), `step "charge 1"`, `step "charge 2"`)
	wantOne(t, f.world, "A-1")
}

// An attempt ends before Temporal's own time-out, and when the worker stops.
func TestAnAttemptEndsInTime(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	deadline := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		working, end := temporal.WhileWorking(ctx)
		defer end()
		if at, ok := working.Deadline(); !ok || !at.Equal(deadline.Add(-5*time.Second)) {
			t.Errorf("it ends %v before the activity's deadline", deadline.Sub(at))
		}
		close(stop)
		<-working.Done()
		return ctx.Err() // of the activity, which continues
	}, activity.RegisterOptions{Name: "attempt"})
	if _, err := env.ExecuteActivity("attempt"); err != nil {
		t.Error(err)
	}
}
