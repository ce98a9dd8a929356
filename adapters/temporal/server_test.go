//go:build unix

package temporal_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/adapters/temporal"
	"github.com/readback-go/readback/adapters/temporal/internal/servertest"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// program is Temporal's server, which make adapters builds.
const program = "../../bin/temporalserver"

// temporalServer returns the server and a client, and starts it with the first test.
func temporalServer(tb testing.TB) (*servertest.Server, client.Client) {
	tb.Helper()
	s := servertest.Shared(tb, program)
	return s, s.Client
}

func TestMain(m *testing.M) { servertest.Main(m, 12, workProcess) }

// workProcess is a worker in a process of its own, which may be killed.
func workProcess(stage killtest.Inside, address, queue, path string) error {
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: servertest.Quiet})
	if err != nil {
		return err
	}
	working(c, queue, engine.New(l, reg, &engine.Options{Slack: time.Second}), servertest.Announce(stage))
	select {}
}

// working starts a worker. The server may be dead, and is started again.
func working(c client.Client, queue string, e *engine.Engine, interceptors ...interceptor.WorkerInterceptor) worker.Worker {
	for ; ; <-time.After(20 * time.Millisecond) {
		w := worker.New(c, queue, worker.Options{Interceptors: interceptors, DeadlockDetectionTimeout: time.Minute})
		temporal.Register(w, e)
		w.RegisterActivity(charge)
		for _, flow := range flows {
			w.RegisterWorkflow(flow)
		}
		if w.Start() == nil {
			return w
		}
	}
}

// flows are the workflows of these tests.
var flows = []any{killFlow, twoFlow, runNamedFlow, periodFlow, existingFlow}

// brief has a dead worker detected soon.
func brief(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{HeartbeatTimeout: time.Second, StartToCloseTimeout: 20 * time.Second})
}

func killFlow(ctx workflow.Context, w intent.WriteIntent) (engine.Outcome, error) {
	return temporal.Do(brief(ctx), "charge", w)
}

// start starts a workflow.
func start(tb testing.TB, c client.Client, queue, id string, flow any, args ...any) client.WorkflowRun {
	tb.Helper()
	var run client.WorkflowRun
	killtest.Until(tb, "started: workflow "+id, func() bool {
		var err error
		run, err = c.ExecuteWorkflow(tb.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, flow, args...)
		return err == nil // else the server is dead, and is started again
	})
	return run
}

// outcome waits for a workflow's end.
func outcome(tb testing.TB, run client.WorkflowRun) (out engine.Outcome, err error) {
	tb.Helper()
	err = result(tb, run, &out)
	return out, err
}

// result waits for a workflow's end and takes its result.
func result(tb testing.TB, run client.WorkflowRun, to any) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 90*time.Second)
	defer cancel()
	err := run.Get(ctx, to)
	if ctx.Err() != nil {
		tb.Fatalf("the workflow has not ended: %v", err)
	}
	return err
}

// TestKills: a worker, the server, or both are killed at each point of a step. There is one effect,
// the outcome is verified, and a replay of the history changes nothing.
func TestKills(t *testing.T) {
	s, c := temporalServer(t)
	servertest.Kills(t, s, func(t *testing.T, stage *killtest.Stage, queue string, kill func(ledger string)) {
		run := start(t, c, queue, queue, killFlow, order("A-1", ""))
		kill(filepath.Join(t.TempDir(), "ledger.db"))
		out, err := outcome(t, run)
		if err != nil || out.Status != ledger.Verified || out.Sends != 1 {
			t.Errorf("%s after %d sends, %v: %s", out.Status, out.Sends, err, out.Text)
		}
		replay(t, c, run)
		if n := stage.World.Changes("A-1"); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}
	})
}

// replay runs the code of a workflow against its history.
func replay(tb testing.TB, c client.Client, run client.WorkflowRun) {
	tb.Helper()
	r := worker.NewWorkflowReplayer()
	for _, flow := range flows {
		r.RegisterWorkflow(flow)
	}
	if err := r.ReplayWorkflowHistory(servertest.Quiet, &history.History{Events: events(tb, c, run)}); err != nil {
		tb.Error(err)
	}
}

// TestFrozenHistory: a workflow that an earlier version began continues in this one. A change of Do
// that breaks it needs workflow.GetVersion: without that the user's workflows would be stuck.
func TestFrozenHistory(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	for _, flow := range flows {
		r.RegisterWorkflow(flow)
	}
	if err := r.ReplayWorkflowHistoryFromJSONFile(servertest.Quiet, "testdata/do.json"); err != nil {
		t.Error(err)
	}
}

// events are the history of a run.
func events(tb testing.TB, c client.Client, run client.WorkflowRun) (all []*history.HistoryEvent) {
	tb.Helper()
	killtest.Until(tb, "readable: the history of "+run.GetID(), func() bool {
		found := c.GetWorkflowHistory(tb.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for all = nil; found.HasNext(); {
			event, err := found.Next()
			if err != nil { // the server is dead, and is started again
				return false
			}
			all = append(all, event)
		}
		return true
	})
	return all
}

// work starts a worker in this process.
func work(tb testing.TB, c client.Client, queue string, e *engine.Engine, interceptors ...interceptor.WorkerInterceptor) {
	tb.Helper()
	tb.Cleanup(working(c, queue, e, interceptors...).Stop)
}

// TestCancelWhileSending: the workflow ends as cancelled and says that the write may have been sent.
// The send is recorded and read back, and the next run under the ID has its outcome.
func TestCancelWhileSending(t *testing.T) {
	_, c := temporalServer(t)
	f := newFixture(t)
	gate := killtest.NewGate(f.world)
	open := sync.OnceFunc(func() { close(gate.Open) })
	work(t, c, "cancel", newEngine(t, ledger.NewMemory(), gate.Destination()))
	t.Cleanup(open)
	run := start(t, c, "cancel", "cancel", killFlow, order("A-1", ""))
	killtest.Await(t, "sent", gate.Entered)
	if err := c.CancelWorkflow(t.Context(), run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	_, err := outcome(t, run)
	var canceled *sdk.CanceledError
	if !errors.As(err, &canceled) {
		t.Fatalf("got %v", err)
	}
	var text string
	var last engine.Outcome
	if err := canceled.Details(&text, &last); err != nil || !strings.Contains(text, "may have been sent, and continues") || last.Status != ledger.InProgress {
		t.Errorf("%q, %s, %v", text, last.Status, err)
	}
	open()
	again := start(t, c, "cancel", "cancel", killFlow, order("A-1", ""))
	if out, err := outcome(t, again); err != nil || out.Status != ledger.Verified || out.ID != last.ID || out.Sends != 1 {
		t.Errorf("%s of write %s after %d sends, %v; want verified of %s", out.Status, out.ID, out.Sends, err, last.ID)
	}
	replay(t, c, run)
	replay(t, c, again)
	wantOne(t, f.world, "A-1")
}

// twoFlow makes two writes.
func twoFlow(ctx workflow.Context) (out engine.Outcome, err error) {
	for _, id := range []string{"A-1", "A-2"} {
		if out, err = temporal.Do(brief(ctx), "charge "+id, order(id, "")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// runNamedFlow takes the run ID into the name of the step, which a reset changes.
func runNamedFlow(ctx workflow.Context) (engine.Outcome, error) {
	return temporal.Do(brief(ctx), "charge "+workflow.GetInfo(ctx).WorkflowExecution.RunID, order("A-1", ""))
}

// periodFlow runs twice, and each run is to write.
func periodFlow(ctx workflow.Context, id string) (engine.Outcome, error) {
	w := order(id, "")
	w.Workflow = workflow.GetInfo(ctx).OriginalRunID
	out, err := temporal.Do(brief(ctx), "charge", w)
	if err == nil && id == "A-1" {
		return out, workflow.NewContinueAsNewError(ctx, periodFlow, "A-2")
	}
	return out, err
}

// reset runs a workflow again from its first event.
func reset(tb testing.TB, c client.Client, run client.WorkflowRun) client.WorkflowRun {
	tb.Helper()
	response, err := c.ResetWorkflowExecution(tb.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
		Reason: "a test", RequestId: tb.Name(), WorkflowTaskFinishEventId: 4, // of the first task
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c.GetWorkflow(tb.Context(), run.GetID(), response.GetRunId())
}

func TestResetMakesNoSecondEffect(t *testing.T) {
	_, c := temporalServer(t)
	f := newFixture(t)
	work(t, c, "reset", f.engine)
	t.Run("the steps are the same writes", func(t *testing.T) {
		run := start(t, c, "reset", "two", twoFlow)
		first, err := outcome(t, run)
		if err != nil {
			t.Fatal(err)
		}
		again := reset(t, c, run)
		if out, err := outcome(t, again); err != nil || out.ID != first.ID || !out.Replayed || out.Sends != 1 {
			t.Errorf("write %s, replayed %t, %d sends, %v; want %s", out.ID, out.Replayed, out.Sends, err, first.ID)
		}
		replay(t, c, run)
		replay(t, c, again)
		wantOne(t, f.world, "A-1")
		wantOne(t, f.world, "A-2")
	})
	t.Run("a step that is named by its run is refused", func(t *testing.T) {
		f := newFixture(t)
		work(t, c, "run-named", f.engine)
		run := start(t, c, "run-named", "run-named", runNamedFlow)
		if _, err := outcome(t, run); err != nil {
			t.Fatal(err)
		}
		again := reset(t, c, run)
		_, err := outcome(t, again)
		wantRefused(t, err, engine.ErrIdentityChanged.Error(), `step "charge `+run.GetRunID(), `step "charge `+again.GetRunID())
		wantOne(t, f.world, "A-1")
	})
	t.Run("the original run ID is a period", func(t *testing.T) {
		f := newFixture(t)
		work(t, c, "period", f.engine)
		run := start(t, c, "period", "period", periodFlow, "A-1")
		first := run.GetRunID()
		if _, err := outcome(t, run); err != nil { // of the second run
			t.Fatal(err)
		}
		last := c.GetWorkflow(t.Context(), run.GetID(), "")
		if _, err := outcome(t, last); err != nil || last.GetRunID() == first {
			t.Fatalf("run %s, %v", last.GetRunID(), err)
		}
		if out, err := outcome(t, reset(t, c, last)); err != nil || !out.Replayed {
			t.Errorf("replayed %t, %v", out.Replayed, err)
		}
		wantOne(t, f.world, "A-1")
		wantOne(t, f.world, "A-2")
	})
}

func TestInterceptOnAServer(t *testing.T) {
	_, c := temporalServer(t)
	f := newFixture(t, orders.Fault{Kind: orders.LostAnswer, Times: 1})
	work(t, c, "intercept", f.engine, temporal.Intercept(f.engine, existing))
	var ref string
	if err := result(t, start(t, c, "intercept", "intercept", existingFlow, "charge"), &ref); err != nil || ref == "" {
		t.Errorf("got %q, %v", ref, err)
	}
	_, err := outcome(t, start(t, c, "intercept", "unnamed", existingFlow, ""))
	wantRefused(t, err, "set ActivityID in workflow.ActivityOptions, or Step in the intent")
	wantOne(t, f.world, "A-1")
}

// TestADecisionWakesTheWorkflow: a reviewer approves, and readback's webhook signals the workflow.
func TestADecisionWakesTheWorkflow(t *testing.T) {
	_, c := temporalServer(t)
	h, err := temporal.Webhook(c, "default", secret)
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(h)
	t.Cleanup(receiver.Close)
	hook, err := webhook.New(webhook.Options{URL: receiver.URL, Secret: secret, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	var reg connectors.Registry
	for name, d := range map[string]connectors.Destination{"orders": f.world.Destination(), webhooks.Prefix + "temporal": hook.Destination()} {
		if err := reg.Register(name, d); err != nil {
			t.Fatal(err)
		}
	}
	f.engine = engine.New(f.ledger, &reg, nil)
	t.Cleanup(f.engine.Close)
	background := []func(context.Context) error{
		func(ctx context.Context) error { return f.engine.Work(ctx, nil) },
		webhooks.New(f.ledger, f.engine, webhooks.Options{Hooks: []webhooks.Hook{{Name: "temporal", Events: []string{"write.approved", "write.decided", "write.settled"}}}}).Work,
	}
	for _, run := range background {
		t.Cleanup(killtest.Background(t, run))
	}
	work(t, c, "decision", f.engine)
	run := start(t, c, "decision", "decision", killFlow, order("A-1", intent.RiskApprove))
	killtest.Until(t, "waiting for a decision", func() bool { return timers(t, c, run) > 0 })
	id := decide(t, f, engine.WordApprove)
	if out, err := outcome(t, run); err != nil || out.Status != ledger.Verified {
		t.Errorf("%s, %v", out.Status, err)
	}
	var names []string
	for _, e := range events(t, c, run) {
		if s := e.GetWorkflowExecutionSignaledEventAttributes(); s != nil {
			names = append(names, s.GetSignalName())
		}
	}
	if len(names) != 1 || names[0] != temporal.Decided(id) {
		t.Errorf("signals %q, want one, %s", names, temporal.Decided(id))
	}
	replay(t, c, run)
	wantOne(t, f.world, "A-1")
}

func timers(tb testing.TB, c client.Client, run client.WorkflowRun) (n int) {
	for _, e := range events(tb, c, run) {
		if e.GetEventType() == enums.EVENT_TYPE_TIMER_STARTED {
			n++
		}
	}
	return n
}
