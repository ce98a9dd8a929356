//go:build unix

package dbos_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	readback "github.com/readback-go/readback/adapters/dbos"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/policies"
)

// order is the input of the workflows of the tests.
type order struct {
	ID  string
	Key string // the idempotency key
	App string
}

func (o order) intent() intent.WriteIntent {
	w := killtest.Order(o.ID)
	w.Workflow, w.IdempotencyKey = o.App, o.Key
	return w
}

// dsnOf is the environment variable with the database of a worker's process.
const dsnOf = "READBACK_DBOS_DSN"

func TestMain(m *testing.M) { killtest.Main(m, work) }

var must = killtest.Must

func database(tb testing.TB) string {
	tb.Helper()
	return killtest.Database(tb, killtest.Postgres(tb))
}

// work is the process of a worker. It starts the one workflow, or recovers it.
func work(stage killtest.Inside) error {
	dsn := os.Getenv(dsnOf)
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	s, err := open(context.Background(), dsn, dsn, reg, &engine.Options{Observer: func(a engine.Activity) {
		if a.Kind == engine.ActivityEnded {
			stage.Reached(killtest.Settled)
		}
	}})
	if err != nil {
		return err
	}
	s.before = func() { stage.Reached(killtest.BeforeDo) }
	if err := dbos.Launch(s.dbos); err != nil {
		return err
	}
	if _, err := dbos.RunWorkflow(s.dbos, s.charge, order{ID: "A-1"}, dbos.WithWorkflowID("run-1")); err != nil {
		return err
	}
	select {}
}

// system is DBOS and an engine on one database.
type system struct {
	pool   *pgxpool.Pool
	ledger *postgres.Ledger
	engine *engine.Engine
	dbos   dbos.Context
	source *dbos.DataSource // the ledger's database
	before func()
}

// open opens DBOS and the ledger, in one database or two. The lease is short, so that a write is taken
// over soon.
func open(ctx context.Context, dsn, ledgerDSN string, reg *connectors.Registry, opts *engine.Options) (*system, error) {
	l, err := postgres.Open(ctx, ledgerDSN, nil)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, ledgerDSN)
	if err != nil {
		return nil, err
	}
	opts.Slack = time.Second
	s := &system{pool: pool, ledger: l, engine: engine.New(l, reg, opts), before: func() {}}
	s.dbos, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: "readback-test", DatabaseURL: dsn, ApplicationVersion: "1",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return nil, err
	}
	s.source, err = dbos.NewDataSource(s.dbos, pool)
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(s.dbos, s.charge, dbos.WithWorkflowName("charge"))
	dbos.RegisterWorkflow(s.dbos, s.placeAndCharge, dbos.WithWorkflowName("place and charge"))
	return s, nil
}

// charge is a workflow of one write.
func (s *system) charge(ctx dbos.Context, o order) (engine.Outcome, error) {
	s.before()
	return readback.Write(ctx, s.engine, "charge", o.intent())
}

// placeAndCharge stores the order and enqueues its charge in one transaction, which DBOS records as a
// step, and then waits for the charge.
func (s *system) placeAndCharge(ctx dbos.Context, o order) (engine.Outcome, error) {
	_, err := dbos.RunAsTransaction(ctx, s.source, func(ctx context.Context, tx dbos.Tx) (ledger.ID, error) {
		if _, err := tx.Exec(ctx, "INSERT INTO placed (id) VALUES ($1)", o.ID); err != nil {
			return "", err
		}
		return readback.EnqueueIn(ctx, tx, postgres.Outbox{}, "charge", o.intent())
	}, dbos.WithStepName("place"))
	if err != nil {
		return engine.Outcome{}, err
	}
	return readback.Write(ctx, s.engine, "charge", o.intent())
}

func (s *system) close(tb testing.TB) {
	if err := dbos.Shutdown(s.dbos, 10*time.Second); err != nil {
		tb.Error(err)
	}
	s.engine.Close()
	if err := s.ledger.Close(); err != nil {
		tb.Error(err)
	}
	s.pool.Close()
}

// inProcess starts DBOS and an engine in the test's process, with a destination in it.
func inProcess(tb testing.TB, dsn string, d killtest.Destination, risks ...policies.RiskRule) *system {
	tb.Helper()
	s, err := open(tb.Context(), dsn, dsn, killtest.Registry(tb, d), &engine.Options{Risks: risks})
	must(tb, err)
	must(tb, dbos.Launch(s.dbos))
	return s
}

// approval holds every write of the tests for a reviewer.
var approval = policies.RiskRule{Destination: "orders"}

func (s *system) run(tb testing.TB, id string, o order) dbos.WorkflowHandle[engine.Outcome] {
	tb.Helper()
	h, err := dbos.RunWorkflow(s.dbos, s.charge, o, dbos.WithWorkflowID(id))
	must(tb, err)
	return h
}

// result is what a workflow returned.
func result(tb testing.TB, h dbos.WorkflowHandle[engine.Outcome]) (engine.Outcome, error) {
	tb.Helper()
	return h.GetResult(dbos.WithHandleTimeout(30*time.Second), dbos.WithHandlePollingInterval(20*time.Millisecond))
}

// TestLostResponse: the destination loses the response to the first send. The workflow ends with a
// verified outcome and one effect, and so does a replay of it.
func TestLostResponse(t *testing.T) {
	world := killtest.World(t)
	must(t, world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}))
	s := inProcess(t, database(t), world)
	defer s.close(t)
	out, err := result(t, s.run(t, "run-1", order{ID: "A-1"}))
	if err != nil || out.Status != ledger.Verified || out.Sends != 1 || world.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want verified, one send, one effect", out, err, world.Changes("A-1"))
	}
	h, err := dbos.RewindWorkflow[engine.Outcome](s.dbos, "run-1") // the whole history is dropped
	must(t, err)
	again, err := result(t, h)
	if err != nil || again.ID != out.ID || !again.Replayed || world.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want the outcome of %s", again, err, world.Changes("A-1"), out.ID)
	}
}

// TestKills: a worker or the server is killed at each point of a step. DBOS recovers the workflow,
// and there is one effect.
func TestKills(t *testing.T) {
	killtest.PostgresKills(t, func(t *testing.T, stage *killtest.Stage, pg *pgtest.Server, kill func(func(), ...string)) {
		dsn := killtest.Database(t, pg)
		kill(func() {}, dsnOf+"="+dsn)
		ends(t, stage, dsn)
	})
}

// ends waits until the workflow of a worker's process has ended.
func ends(t *testing.T, stage *killtest.Stage, dsn string) {
	t.Helper()
	c, err := dbos.NewClient(t.Context(), dbos.ClientConfig{DatabaseURL: dsn, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, dbos.Shutdown(c, 10*time.Second)) }()
	h, err := dbos.RetrieveWorkflow[engine.Outcome](c, "run-1")
	must(t, err)
	if out, err := result(t, h); err != nil || out.Status != ledger.Verified || stage.World.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want verified and one effect", out, err, stage.World.Changes("A-1"))
	}
}

// steps are the names of a workflow's recorded steps.
func (s *system) steps(tb testing.TB, id string) (names []string) {
	tb.Helper()
	all, err := dbos.GetWorkflowSteps(s.dbos, id)
	must(tb, err)
	for _, one := range all {
		names = append(names, one.StepName)
	}
	return names
}

// awaitSteps waits until a workflow has recorded a step so often.
func (s *system) awaitSteps(tb testing.TB, id, step string, times int) {
	tb.Helper()
	killtest.Until(tb, fmt.Sprintf("%s has %d times %s", id, times, step), func() bool {
		n := 0
		for _, name := range s.steps(tb, id) {
			if name == step {
				n++
			}
		}
		return n >= times
	})
}

// pass lets the durable waits of all workflows end: DBOS reads their ends from the database when it
// starts. The process is not running meanwhile.
func pass(tb testing.TB, dsn string) {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), dsn)
	must(tb, err)
	_, err = c.Exec(tb.Context(), `UPDATE dbos.operation_outputs
		SET output = encode(convert_to((convert_from(decode(output, 'base64'), 'UTF8')::bigint - 86400000)::text, 'UTF8'), 'base64')
		WHERE function_name = 'DBOS.sleep'`)
	must(tb, err)
	must(tb, c.Close(tb.Context()))
}

func (s *system) only(tb testing.TB, status ledger.Status) ledger.Record {
	tb.Helper()
	found, err := s.ledger.List(tb.Context(), ledger.Filter{Tenant: "acme"})
	must(tb, err)
	if len(found) != 1 || found[0].Status() != status {
		tb.Fatalf("%+v, want one write that is %s", found, status)
	}
	return found[0]
}

func (s *system) approve(tb testing.TB, id ledger.ID) {
	tb.Helper()
	reviewer := engine.As(tb.Context(), engine.Principal{Name: "ann", Role: engine.RoleReviewer})
	_, err := s.engine.Resolve(reviewer, "acme", id, engine.Decision{Word: engine.WordApprove, By: "ann", Reason: "asked by phone"})
	must(tb, err)
}

// TestDecisionDaysLater: a write waits for a reviewer for days, while processes come and go. The days
// are the durable waits, whose ends are moved back in the database while no process runs. Each wait
// adds three rows to the history. The decision, whose message is delivered twice, ends the workflow.
func TestDecisionDaysLater(t *testing.T) {
	world, dsn := killtest.World(t), database(t)
	s := inProcess(t, dsn, world, approval)
	s.run(t, "run-1", order{ID: "A-1"})
	s.awaitSteps(t, "run-1", "DBOS.sleep", 1)
	for day := range 3 {
		s.close(t)
		pass(t, dsn)
		s = inProcess(t, dsn, world, approval)
		s.awaitSteps(t, "run-1", "DBOS.sleep", day+2)
	}
	defer func() { s.close(t) }()
	held := s.only(t, ledger.StatusHeld)
	s.approve(t, held.ID)
	for range 2 {
		must(t, readback.Wake(s.dbos, held.Workflow, held.ID, "msg_1"))
	}
	h, err := dbos.RetrieveWorkflow[engine.Outcome](s.dbos, "run-1")
	must(t, err)
	out, err := result(t, h)
	if err != nil || out.ID != held.ID || out.Status != ledger.Verified || world.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want verified and one effect", out, err, world.Changes("A-1"))
	}
	want := strings.Repeat("readback:charge DBOS.recv DBOS.sleep ", 4) + "readback:charge"
	if got := strings.Join(s.steps(t, "run-1"), " "); got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

// TestNoWaitOutlastsAnIdempotencyKey: a workflow that waits for another one's write asks again while the
// idempotency key of that write still blocks, however long it has waited. The years are in the recorded
// outcome, which is changed in the database while no process runs.
func TestNoWaitOutlastsAnIdempotencyKey(t *testing.T) {
	world, dsn := killtest.World(t), database(t)
	s := inProcess(t, dsn, world, approval)
	s.run(t, "run-1", order{ID: "A-1"})
	s.awaitSteps(t, "run-1", "DBOS.sleep", 1)
	s.close(t)
	c, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	_, err = c.Exec(t.Context(), "DELETE FROM dbos.operation_outputs WHERE function_name <> 'readback:charge'")
	must(t, err)
	_, err = c.Exec(t.Context(), `UPDATE dbos.operation_outputs SET output = encode(convert_to(regexp_replace(
		convert_from(decode(output, 'base64'), 'UTF8'), '"created":"[^"]*"', '"created":"2020-01-01T00:00:00Z"'), 'UTF8'), 'base64')`)
	must(t, err)
	s = inProcess(t, dsn, world, approval)
	defer s.close(t)
	s.awaitSteps(t, "run-1", "DBOS.sleep", 1)
	var end int64
	must(t, c.QueryRow(t.Context(), `SELECT convert_from(decode(output, 'base64'), 'UTF8')::bigint
		FROM dbos.operation_outputs WHERE function_name = 'DBOS.sleep'`).Scan(&end))
	const blocks = 24 * time.Hour // the default of engine.Options.Window
	if wait := time.Until(time.UnixMilli(end)); wait < time.Hour || wait > blocks-10*time.Hour {
		t.Errorf("the wait takes %v, want hours, and that the key blocks for hours after it", wait)
	}
}

// TestWakeNothing: messages about writes of no workflow, or of another engine, wake nothing.
func TestWakeNothing(t *testing.T) {
	s := inProcess(t, database(t), killtest.World(t))
	defer s.close(t)
	long := engine.WorkflowName("dbos", strings.Repeat("x", 300))
	for _, workflow := range []string{"", "temporal:default/run-1", "dbos:gone", "dbos:%zz", long} {
		if err := readback.Wake(s.dbos, workflow, "wr_1", "msg_1"); err != nil {
			t.Errorf("%q: %v", workflow, err)
		}
	}
}

// TestFork: a fork of a workflow has another ID. It has the outcome of the original's write, with an
// idempotency key and without, also after the time for which a key blocks. A fork of a fork that DBOS has
// deleted is refused, and the error names both.
func TestFork(t *testing.T) {
	world := killtest.World(t)
	dsn := database(t)
	s, err := open(t.Context(), dsn, dsn, killtest.Registry(t, world), &engine.Options{Window: 1})
	must(t, err)
	must(t, dbos.Launch(s.dbos))
	defer s.close(t)
	fork := func(from, to string) (engine.Outcome, error) {
		h, err := dbos.ForkWorkflow[engine.Outcome](s.dbos, dbos.ForkWorkflowInput{OriginalWorkflowID: from, ForkedWorkflowID: to})
		must(t, err)
		return result(t, h)
	}
	for _, o := range []order{{ID: "A"}, {ID: "B", Key: "charge:B"}} {
		one, err := result(t, s.run(t, "run-"+o.ID, o))
		must(t, err)
		for _, from := range []string{"run-", "fork-run-"} {
			two, err := fork(from+o.ID, "fork-"+from+o.ID)
			if err != nil || one.ID != two.ID || two.Status != ledger.Verified || world.Changes(o.ID) != 1 {
				t.Errorf("%s: %+v and %+v, %v with %d effects, want one write", from, one, two, err, world.Changes(o.ID))
			}
		}
	}
	_, err = s.pool.Exec(t.Context(), "DELETE FROM dbos.workflow_status WHERE workflow_uuid = 'fork-run-A'")
	must(t, err)
	_, err = fork("fork-fork-run-A", "fork")
	if err == nil || world.Changes("A") != 1 {
		t.Fatalf("%v with %d effects, want an error and one effect", err, world.Changes("A"))
	}
	for _, part := range []string{engine.ErrIdentityChanged.Error(), "dbos:fork", "dbos:run-A", "idempotency_key"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %q", part, err)
		}
	}
}

// TestForkOfAFailedWrite: a fork makes a write that the original made without its effect, and a fork of
// the fork has that one's outcome.
func TestForkOfAFailedWrite(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t), world)
	defer s.close(t)
	must(t, world.Set(orders.Fault{Kind: orders.Refused, Times: 1}))
	if _, err := result(t, s.run(t, "run-1", order{ID: "A-1"})); err == nil {
		t.Fatal("a refused write has no error")
	}
	var first engine.Outcome
	for _, from := range []string{"run-1", "fork-run-1"} {
		h, err := dbos.ForkWorkflow[engine.Outcome](s.dbos, dbos.ForkWorkflowInput{OriginalWorkflowID: from, ForkedWorkflowID: "fork-" + from})
		must(t, err)
		out, err := result(t, h)
		if err != nil || out.Status != ledger.Verified || world.Changes("A-1") != 1 || first.ID != "" && out.ID != first.ID {
			t.Errorf("fork of %s: %+v, %v with %d effects, want verified and one effect", from, out, err, world.Changes("A-1"))
		}
		first = out
	}
}

// TestForkBeforeTheWrite: a fork of a workflow that failed before its write makes it, under the original's
// name: the original may run at the same time.
func TestForkBeforeTheWrite(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t), world)
	defer s.close(t)
	s.before = func() { panic("a bug before the write") }
	if _, err := result(t, s.run(t, "run-1", order{ID: "A-1"})); err == nil {
		t.Fatal("a workflow that panics has no error")
	}
	s.before = func() {}
	h, err := dbos.ForkWorkflow[engine.Outcome](s.dbos, dbos.ForkWorkflowInput{OriginalWorkflowID: "run-1"})
	must(t, err)
	out, err := result(t, h)
	if err != nil || out.Status != ledger.Verified || world.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want verified and one effect", out, err, world.Changes("A-1"))
	}
	if made := s.only(t, ledger.Verified); made.Workflow != "dbos:run-1" {
		t.Errorf("the write is of workflow %q, want the original's", made.Workflow)
	}
}

// TestForkOfAWaitingWorkflow: a decision wakes the workflow and its fork. Both have one write.
func TestForkOfAWaitingWorkflow(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t), world, approval)
	defer s.close(t)
	original := s.run(t, "run-1", order{ID: "A-1"})
	s.awaitSteps(t, "run-1", "DBOS.sleep", 1)
	fork, err := dbos.ForkWorkflow[engine.Outcome](s.dbos, dbos.ForkWorkflowInput{OriginalWorkflowID: "run-1", ForkedWorkflowID: "fork-1"})
	must(t, err)
	s.awaitSteps(t, "fork-1", "DBOS.sleep", 1)
	held := s.only(t, ledger.StatusHeld)
	s.approve(t, held.ID)
	must(t, readback.Wake(s.dbos, held.Workflow, held.ID, "msg_1"))
	for _, h := range []dbos.WorkflowHandle[engine.Outcome]{original, fork} {
		if out, err := result(t, h); err != nil || out.ID != held.ID || out.Status != ledger.Verified || world.Changes("A-1") != 1 {
			t.Errorf("%s: %+v, %v with %d effects, want verified and one effect", h.GetWorkflowID(), out, err, world.Changes("A-1"))
		}
		steps, err := dbos.GetWorkflowSteps(s.dbos, h.GetWorkflowID())
		must(t, err)
		for _, step := range steps {
			if step.Error != nil {
				t.Errorf("%s: %s: %v, want that the decision ended the wait", h.GetWorkflowID(), step.StepName, step.Error)
			}
		}
	}
}

// TestOneIdentityTwice: two applications with databases of their own share a tenant, and a workflow ID.
// The second write is refused and names what differs, unless the application is part of the name.
func TestOneIdentityTwice(t *testing.T) {
	world, dsn := killtest.World(t), database(t)
	s := inProcess(t, dsn, world)
	defer s.close(t)
	other, err := open(t.Context(), database(t), dsn, killtest.Registry(t, world), &engine.Options{})
	must(t, err)
	defer other.close(t)
	must(t, dbos.Launch(other.dbos))
	one, err := result(t, s.run(t, "run-1", order{ID: "A-1"}))
	must(t, err)
	if _, err := result(t, other.run(t, "run-1", order{ID: "A-2"})); err == nil || !strings.Contains(err.Error(), "digest") || world.Changes("A-2") != 0 {
		t.Errorf("%v with %d effects, want an error about the digest and no effect", err, world.Changes("A-2"))
	}
	two, err := result(t, other.run(t, "run-2", order{ID: "A-3", App: "billing"}))
	three, err3 := result(t, s.run(t, "run-2", order{ID: "A-4", App: "shipping"}))
	if err != nil || err3 != nil || two.ID == three.ID || two.Status != ledger.Verified || three.Status != ledger.Verified || one.Status != ledger.Verified {
		t.Errorf("%+v, %+v, %+v, %v, %v, want three writes", one, two, three, err, err3)
	}
}

// TestFails: what has ended without its effect is an error with the outcome's text, and the same in a
// replay.
func TestFails(t *testing.T) {
	world := killtest.World(t)
	must(t, world.Set(orders.Fault{Kind: orders.Refused, Times: 1}))
	s := inProcess(t, database(t), world)
	defer s.close(t)
	_, err := result(t, s.run(t, "run-1", order{ID: "A-1"}))
	if err == nil || !strings.Contains(err.Error(), "422") {
		t.Fatalf("%v, want the destination's refusal", err)
	}
	h, forkErr := dbos.RewindWorkflow[engine.Outcome](s.dbos, "run-1", dbos.WithRewindStartStep(1)) // the write's step stays
	must(t, forkErr)
	if _, again := result(t, h); again == nil || again.Error() != err.Error() || world.Changes("A-1") != 0 {
		t.Errorf("%v, then %v, with %d effects", err, again, world.Changes("A-1"))
	}
	if _, err := result(t, s.run(t, "run-2", order{})); err == nil || !strings.Contains(err.Error(), "order_id") {
		t.Errorf("%v, want an error about the key", err)
	}
}

// TestNothingKnown: while the ledger cannot be reached the workflow waits. A process that can reach it
// ends it.
func TestNothingKnown(t *testing.T) {
	world, dsn := killtest.World(t), database(t)
	s := inProcess(t, dsn, world)
	s.engine.Close()
	s.run(t, "run-1", order{ID: "A-1"})
	s.awaitSteps(t, "run-1", "DBOS.sleep", 2)
	s.close(t)
	s = inProcess(t, dsn, world)
	defer s.close(t)
	h, err := dbos.RetrieveWorkflow[engine.Outcome](s.dbos, "run-1")
	must(t, err)
	if out, err := result(t, h); err != nil || out.Status != ledger.Verified || world.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want verified and one effect", out, err, world.Changes("A-1"))
	}
}

// TestTransactions: a write is enqueued in a transaction of the workflow, and in one of its caller, or
// not at all.
func TestTransactions(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t), world)
	defer s.close(t)
	defer killtest.Background(t, func(ctx context.Context) error { return s.engine.Work(ctx, nil) })()
	_, err := s.pool.Exec(t.Context(), "CREATE TABLE placed (id text PRIMARY KEY)")
	must(t, err)
	place := func(run string) (engine.Outcome, error) {
		h, err := dbos.RunWorkflow(s.dbos, s.placeAndCharge, order{ID: "A-1"}, dbos.WithWorkflowID(run))
		must(t, err)
		return result(t, h)
	}
	if out, err := place("run-1"); err != nil || out.Status != ledger.Verified {
		t.Errorf("%+v, %v, want verified", out, err)
	}
	if _, err := place("run-2"); err == nil { // the order is there: the transaction fails, and its write with it
		t.Error("an order was placed twice")
	}
	s.only(t, ledger.Verified)
	_, err = s.pool.Exec(t.Context(), "DELETE FROM placed")
	must(t, err)
	forked, err := dbos.ForkWorkflow[engine.Outcome](s.dbos, dbos.ForkWorkflowInput{OriginalWorkflowID: "run-1"})
	must(t, err)
	if out, err := result(t, forked); err != nil || out.Status != ledger.Verified {
		t.Errorf("a fork: %+v, %v, want verified", out, err)
	}
	s.only(t, ledger.Verified)

	queue, err := dbos.RegisterQueue(s.dbos, "charges")
	must(t, err)
	enqueue := func(run, id string, end func(pgx.Tx) error) dbos.WorkflowHandle[engine.Outcome] {
		o := order{ID: id}
		tx, err := s.pool.Begin(t.Context())
		must(t, err)
		_, err = postgres.Enqueue(t.Context(), tx, readback.Named(run, "charge", o.intent()))
		must(t, err)
		h, err := dbos.Enqueue[engine.Outcome](s.dbos, queue.GetName(), "charge", o, dbos.WithEnqueueWorkflowID(run), dbos.WithEnqueueTransaction(tx))
		must(t, err)
		must(t, end(tx))
		return h
	}
	enqueue("run-3", "A-3", func(tx pgx.Tx) error { return tx.Rollback(t.Context()) })
	h := enqueue("run-4", "A-4", func(tx pgx.Tx) error { return tx.Commit(t.Context()) })
	if out, err := result(t, h); err != nil || out.Status != ledger.Verified {
		t.Errorf("%+v, %v, want verified", out, err)
	}
	if got := fmt.Sprint(world.Changes("A-1"), world.Changes("A-3"), world.Changes("A-4")); got != "1 0 1" {
		t.Errorf("effects %s, want 1 0 1", got)
	}
}

// TestCancel: a workflow is cancelled while its request is at the destination. The send is recorded
// all the same, and the resumed workflow has its outcome.
func TestCancel(t *testing.T) {
	gate := killtest.NewGate(killtest.World(t))
	s := inProcess(t, database(t), gate)
	defer s.close(t)
	h := s.run(t, "run-1", order{ID: "A-1"})
	<-gate.Entered
	must(t, dbos.CancelWorkflow(s.dbos, "run-1"))
	close(gate.Open)
	if out, err := result(t, h); err == nil {
		t.Errorf("%+v, want that the workflow was cancelled", out)
	}
	resumed, err := dbos.ResumeWorkflow[engine.Outcome](s.dbos, "run-1")
	must(t, err)
	if out, err := result(t, resumed); err != nil || out.Status != ledger.Verified || out.Sends != 1 || gate.Changes("A-1") != 1 {
		t.Errorf("%+v, %v with %d effects, want verified, one send, one effect", out, err, gate.Changes("A-1"))
	}
}
