package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// bubble is Temporal in memory, whose timers end at once.
func bubble(workOn func(ctx context.Context, of subject) (next, error)) *testsuite.TestWorkflowEnvironment {
	var s testsuite.WorkflowTestSuite
	s.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := s.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: "q"})
	env.RegisterWorkflowWithOptions(follow, workflow.RegisterOptions{Name: workflowType})
	env.RegisterActivityWithOptions(workOn, activity.RegisterOptions{Name: activityType})
	return env
}

// The workflow works, waits for as long as the ledger demands or for a signal, and ends.
func TestFollow(t *testing.T) {
	var notNow, unregistered = errors.New("not now"), sdk.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	type result struct {
		next
		err error
	}
	write, begun := subject{"write", "acme", "wr_1", "orders"}, subject{"saga", "acme", "saga-1", ""}
	for name, c := range map[string]struct {
		of      subject
		results []result
		signal  time.Duration // 0: none
		took    time.Duration
		queues  []string
	}{
		"settled at once":         {write, []result{{}}, 0, 0, []string{"q/orders"}},
		"a recheck in three days": {write, []result{{next: next{72 * time.Hour, true}}, {}}, 0, 72 * time.Hour, []string{"q/orders", "q/orders"}},
		"due at once again":       {write, []result{{next: next{0, true}}, {}}, 0, time.Second, []string{"q/orders", "q/orders"}},
		"woken early":             {write, []result{{next: next{72 * time.Hour, true}}, {}}, time.Hour, time.Hour, []string{"q/orders", "q/orders"}},
		"retried":                 {write, []result{{err: notNow}, {err: notNow}, {}}, 0, 3 * time.Second, []string{"q/orders", "q/orders", "q/orders"}},
		"an unknown destination":  {write, []result{{err: unregistered}, {}}, 0, 0, []string{"q/orders", "q"}},
		"a saga":                  {begun, []result{{}}, 0, 0, []string{"q:saga"}},
	} {
		t.Run(name, func(t *testing.T) {
			var queues []string
			env := bubble(func(ctx context.Context, of subject) (next, error) {
				queues = append(queues, activity.GetInfo(ctx).TaskQueue)
				r := c.results[len(queues)-1]
				return r.next, r.err
			})
			began := env.Now()
			if c.signal > 0 {
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(due, nil) }, c.signal)
			}
			env.ExecuteWorkflow(workflowType, c.of)
			if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
				t.Error(err)
			}
			if took := env.Now().Sub(began); took != c.took || !slices.Equal(queues, c.queues) {
				t.Errorf("after %s on %q, want %s on %q", took, queues, c.took, c.queues)
			}
		})
	}
}

// A write whose answer is lost, and its recheck after two days are made by one workflow.
func TestARecheckInDaysIsATimer(t *testing.T) {
	o := orders.Plain.Options()
	o.Recheck = connectors.Within(48 * time.Hour)
	world, err := orders.New(o)
	if err == nil {
		err = world.Set(orders.Fault{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Times: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	d := &driver{queue: "q"}
	env := bubble(d.workOn)
	l := ledger.NewMemory()
	l.SetClock(env.Now)
	e := engine.New(l, &reg, nil)
	t.Cleanup(e.Close)
	d.work = command.Work{Engine: e, Sagas: saga.New(l, e, nil), Logger: slog.New(slog.DiscardHandler)}
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "wf", Step: "pay", Tool: "orders.create", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"status": "paid"},
	}
	id, err := e.Enqueue(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	began := env.Now()
	env.ExecuteWorkflow(workflowType, subject{"write", "acme", string(id), "orders"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	rec, err := l.Get(t.Context(), "acme", id)
	if err != nil || rec.Settlement != ledger.Verified || !rec.Due.IsZero() || rec.Sends != 1 || world.Changes("A-1") != 1 {
		t.Errorf("%s after %d sends, due %s; %d effects, %v", rec.Phase(), rec.Sends, rec.Due, world.Changes("A-1"), err)
	}
	if took := env.Now().Sub(began); took < 47*time.Hour {
		t.Errorf("it ended after %s, before the recheck", took)
	}
}

// Two subjects never have one workflow, which would work on one of them only.
func TestWorkflowID(t *testing.T) {
	seen := map[string]subject{}
	for _, of := range []subject{
		{"saga", "a", "b/c", ""}, {"saga", "a/b", "c", ""}, {"write", "a", "b/c", ""}, {"saga", "a%2Fb", "c", ""},
		{"saga", strings.Repeat("/", 255), strings.Repeat("/", 254) + "1", ""}, {"saga", strings.Repeat("/", 255), strings.Repeat("/", 254) + "2", ""},
	} {
		id := of.workflowID("q")
		if other, ok := seen[id]; ok || len(id) > 1000 { // Temporal's limit
			t.Errorf("%v and %v have the workflow %q", of, other, id)
		}
		seen[id] = of
	}
	if err := schedule(t.Context(), client.Options{}, "", command.Work{}); err == nil {
		t.Error("without a task queue, each hand-over would start another workflow")
	}
}

// A workflow that an earlier version began continues in this one. A change that breaks it needs
// workflow.GetVersion: a workflow that is stuck only takes signals, and its write is not worked on.
func TestFrozenHistory(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(follow, workflow.RegisterOptions{Name: workflowType})
	if err := r.ReplayWorkflowHistoryFromJSONFile(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), "testdata/follow.json"); err != nil {
		t.Error(err)
	}
}
