//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/readback-go/readback/adapters/temporal/internal/servertest"
	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/soak"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/saga"
)

// program is Temporal's server, which make adapters builds.
const program = "../../../../bin/temporalserver"

// mainOf is an environment variable in the process of the program.
const mainOf = "READBACK_TEMPORAL_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainOf) != "" {
		main()
	}
	soak.Child(workUnderFire)
	servertest.Main(m, 16, workProcess)
}

// dsn is that of an empty database.
func dsn(tb testing.TB) string {
	tb.Helper()
	return killtest.Database(tb, killtest.Postgres(tb)) + " pool_max_conns=5"
}

// process is what one process has: an engine and sagas on the ledger.
type process struct {
	ledger *postgres.Ledger
	engine *engine.Engine
	sagas  *saga.Runner
}

func open(ctx context.Context, dsn string, reg *connectors.Registry) (p process, err error) {
	if p.ledger, err = postgres.Open(ctx, dsn, nil); err != nil {
		return p, err
	}
	p.engine = engine.New(p.ledger, reg, &engine.Options{Slack: time.Second, Recheck: 2 * time.Second})
	p.sagas = saga.New(p.ledger, p.engine, nil)
	return p, nil
}

// here opens a process of the test itself, for a destination.
func here(tb testing.TB, dsn string, world *orders.World) process {
	tb.Helper()
	p, err := open(tb.Context(), dsn, killtest.Registry(tb, world))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.engine.Close()
		if err := p.ledger.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

func (p process) work() command.Work {
	return command.Work{Engine: p.engine, Sagas: p.sagas, Destinations: []string{"orders"}, Options: engine.WorkOptions{Parallel: 8}, Logger: slog.New(slog.DiscardHandler)}
}

// workProcess is a worker in a process of its own, which may be killed.
func workProcess(stage killtest.Inside, address, queue, ledger string) error {
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	p, err := open(context.Background(), ledger, reg)
	if err != nil {
		return err
	}
	o := client.Options{HostPort: address, Logger: servertest.Quiet, Interceptors: []interceptor.ClientInterceptor{servertest.Announce(stage)}}
	for { // a worker that cannot start ends its process, which is then started again
		err = schedule(context.Background(), o, queue, p.work())
		fmt.Fprintln(os.Stderr, err)
	}
}

// order is an intent that creates an order.
func order(id string) intent.WriteIntent {
	w := killtest.Order(id)
	w.Workflow, w.Step, w.Tool = "wf", "charge "+id, "charge_card"
	return w
}

// enqueue records a write, which no caller makes.
func (p process) enqueue(tb testing.TB, id string) ledger.ID {
	tb.Helper()
	write, err := p.engine.Enqueue(tb.Context(), order(id))
	if err != nil {
		tb.Fatal(err)
	}
	return write
}

// until polls until a condition holds. What a test has lost is handed over again after 30 s.
func until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	killtest.Within(tb, 2*time.Minute, what, holds)
}

// settled waits until a write is settled. One whose sender died has a last recheck after a day.
func (p process) settled(tb testing.TB, id ledger.ID) (rec ledger.Record) {
	tb.Helper()
	defer func() {
		if tb.Failed() {
			events, err := p.ledger.Events(context.Background(), "acme", id)
			tb.Logf("%s by %q, due in %s, leased for %s, %v", rec.Phase(), rec.Owner, rec.Due.Sub(rec.Now), rec.LeaseUntil.Sub(rec.Now), err)
			for _, e := range events {
				tb.Logf("  %s %s by %q: %s %s", e.At.Sub(rec.Created), e.Kind, e.By, e.Rule, e.Reason)
			}
		}
	}()
	until(tb, "settled", func() bool {
		var err error
		if rec, err = p.ledger.Get(tb.Context(), "acme", id); err != nil {
			tb.Fatal(err)
		}
		return rec.State == ledger.Settled
	})
	return rec
}

// ended waits until no workflow of a subject is open.
func ended(tb testing.TB, c client.Client, id string) {
	tb.Helper()
	until(tb, "the end of the workflow", func() bool {
		about, err := c.DescribeWorkflow(tb.Context(), id, "")
		if none := new(serviceerror.NotFound); errors.As(err, &none) {
			return true // another worker was quicker, and it was never started
		}
		return err == nil && about.RawResponse.GetWorkflowExecutionInfo().GetCloseTime() != nil
	})
}

// replay runs the code of a workflow against the history of its last run.
func replay(tb testing.TB, c client.Client, id string) {
	tb.Helper()
	var all []*history.HistoryEvent
	for found := c.GetWorkflowHistory(tb.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); found.HasNext(); {
		event, err := found.Next()
		if none := new(serviceerror.NotFound); errors.As(err, &none) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, event)
	}
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(follow, workflow.RegisterOptions{Name: workflowType})
	if err := r.ReplayWorkflowHistory(servertest.Quiet, &history.History{Events: all}); err != nil {
		tb.Error(err)
	}
}

// TestKills: a worker, Temporal's server, or both are killed at each point of a write and of a saga.
// Another worker continues, and each write has one effect.
func TestKills(t *testing.T) {
	t.Parallel()
	s := servertest.Shared(t, program)
	servertest.Kills(t, s, func(t *testing.T, stage *killtest.Stage, queue string, kill func(ledger string)) {
		book := dsn(t)
		p := here(t, book, stage.World)
		write := p.enqueue(t, "A-1")
		plan := saga.Plan{Tenant: "acme", ID: "saga-1", Steps: []saga.Step{{Name: "first", Intent: order("S-1")}, {Name: "second", Intent: order("S-2"), After: []string{"first"}}}}
		plan.Steps[0].Intent.Reversibility, plan.Steps[1].Intent.Reversibility = intent.Compensable, intent.Pivot
		for i := range plan.Steps {
			plan.Steps[i].Intent.Workflow, plan.Steps[i].Intent.Step = "", ""
		}
		if _, err := p.sagas.Begin(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		kill(book)
		if rec := p.settled(t, write); rec.Settlement != ledger.Verified || rec.Sends != 1 {
			t.Errorf("%s after %d sends", rec.Phase(), rec.Sends)
		}
		until(t, "the end of the saga", func() bool {
			got, err := p.sagas.Get(t.Context(), "acme", "saga-1")
			return err == nil && got.Over()
		})
		if got, err := p.sagas.Get(t.Context(), "acme", "saga-1"); err != nil || got.State != saga.Done {
			t.Errorf("the saga is %s: %s, %v", got.State, got.Reason, err)
		}
		for _, id := range []string{"A-1", "S-1", "S-2"} {
			if n := stage.World.Changes(id); n != 1 {
				t.Errorf("%s has %d effects, want 1", id, n)
			}
		}
		if rec, err := p.ledger.Get(t.Context(), "acme", write); err == nil && rec.Due.IsZero() {
			ended(t, s.Client, queue+":write/acme/"+string(write))
		}
		replay(t, s.Client, queue+":write/acme/"+string(write))
	})
}

// TestTwoWorkersAndLostWorkflows: two workers drive writes whose answers are lost, whose sends are
// throttled, whose workflows run twice or are terminated. Each has one effect.
func TestTwoWorkersAndLostWorkflows(t *testing.T) {
	t.Parallel()
	s := servertest.Shared(t, program)
	stage, queue, book := killtest.New(t), "two", dsn(t)
	for _, f := range []orders.Fault{
		{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Times: 8},
		{Kind: orders.Throttled, Ops: []orders.Op{orders.OpCreate}, Times: 12},
	} {
		if err := stage.World.Set(f); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		p := here(t, book, stage.World)
		wg.Go(func() {
			if err := schedule(ctx, client.Options{HostPort: s.Address, Logger: servertest.Quiet}, queue, p.work()); err != nil {
				t.Error(err)
			}
		})
	}
	p := here(t, book, stage.World)
	const writes = 24
	var ids []ledger.ID
	for n := range writes {
		ids = append(ids, p.enqueue(t, fmt.Sprint("A-", n)))
		if of := (subject{"write", "acme", string(ids[n]), "orders"}); n%2 == 0 {
			if _, err := s.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "another-" + of.ID, TaskQueue: queue}, workflowType, of); err != nil {
				t.Fatal(err)
			}
		}
	}
	terminated := 0
	for n := 0; n < writes; n += 3 {
		err := s.Client.TerminateWorkflow(ctx, queue+":write/acme/"+string(ids[n]), "", "a test")
		if ended := new(serviceerror.NotFound); err == nil {
			terminated++
		} else if !errors.As(err, &ended) {
			t.Error(err)
		}
	}
	for n, id := range ids {
		if rec := p.settled(t, id); rec.Settlement != ledger.Verified || stage.World.Changes(fmt.Sprint("A-", n)) != 1 {
			t.Errorf("%s after %d sends, with %d effects", rec.Phase(), rec.Sends, stage.World.Changes(fmt.Sprint("A-", n)))
		}
	}
	t.Logf("%d workflows were terminated", terminated)
	stop()
	wg.Wait()
}

// TestALostTimer: Temporal loses the workflow of a write that waits for its recheck. The ledger has
// the due time, and hands the write over again.
func TestALostTimer(t *testing.T) {
	t.Parallel()
	s := servertest.Shared(t, program)
	o := orders.Plain.Options()
	o.Recheck = connectors.Within(10 * time.Second)
	world, err := orders.New(o)
	if err == nil {
		err = world.Set(orders.Fault{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Times: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	p := here(t, dsn(t), world)
	t.Cleanup(killtest.Background(t, func(ctx context.Context) error {
		return schedule(ctx, client.Options{HostPort: s.Address, Logger: servertest.Quiet}, "lost", p.work())
	}))
	id := p.enqueue(t, "A-1")
	if rec := p.settled(t, id); rec.Due.IsZero() {
		t.Fatalf("%s, and no recheck is pending", rec.Phase())
	}
	workflowID := subject{"write", "acme", string(id), "orders"}.workflowID("lost")
	if err := s.Client.TerminateWorkflow(t.Context(), workflowID, "", "a test"); err != nil {
		t.Fatal(err)
	}
	until(t, "rechecked", func() bool {
		rec, err := p.ledger.Get(t.Context(), "acme", id)
		return err == nil && rec.Due.IsZero() && rec.Settlement == ledger.Verified
	})
	if n := world.Changes("A-1"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// TestProgram: the program takes the configuration of readback and Temporal's flags, works, and ends
// with 0 on SIGTERM, also while Temporal is unreachable. Without its namespace it fails.
func TestProgram(t *testing.T) {
	t.Parallel()
	s := servertest.Shared(t, program)
	world := killtest.World(t)
	shop := httptest.NewServer(orders.Handler(world))
	t.Cleanup(shop.Close)
	dir := t.TempDir()
	config := fmt.Sprintf("ledger: readback.db\ntenant: acme\ndestinations:\n  orders:\n    type: simulated\n    url: %s\n    class: plain\n", shop.URL)
	if err := os.WriteFile(filepath.Join(dir, "readback.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(in string, args ...string) (cmd *exec.Cmd, said func() string) {
		out, err := os.CreateTemp(dir, "out")
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), mainOf+"=1"), strings.NewReader(in)
		cmd.Stdout, cmd.Stderr = out, out
		if err := errors.Join(cmd.Start(), out.Close()); err != nil {
			t.Fatal(err)
		}
		return cmd, func() string {
			text, err := os.ReadFile(out.Name())
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	ends := func(cmd *exec.Cmd, said func() string) {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, said())
		}
	}
	early, said := start("", "work", "--temporal", "127.0.0.1:1")
	until(t, "in the log", func() bool { return strings.Contains(said(), "Temporal cannot be reached") })
	ends(early, said)
	text, err := json.Marshal(order("A-1"))
	if err != nil {
		t.Fatal(err)
	}
	enqueue, said := start(string(text), "submit", "--enqueue", "-f", "-")
	if err := enqueue.Wait(); enqueue.ProcessState.ExitCode() != 21 {
		t.Fatalf("%v: %s", err, said())
	}
	work, said := start("", "work", "--temporal", s.Address, "--namespace", "default", "--task-queue", "program")
	until(t, "made", func() bool { return world.Changes("A-1") == 1 })
	ends(work, said)
	about, err := s.Client.DescribeTaskQueue(t.Context(), "program/orders", enums.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil || len(about.GetPollers()) == 0 {
		t.Errorf("no worker on the task queue of the destination, %v", err)
	}
	wrong, said := start("", "work", "--temporal", s.Address, "--namespace", "no-such")
	if err := wrong.Wait(); wrong.ProcessState.ExitCode() != 1 || !strings.Contains(said(), "no-such") {
		t.Errorf("%v: %s", err, said())
	}
}
