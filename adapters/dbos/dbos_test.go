//go:build unix

package dbos_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
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

func TestMain(m *testing.M) {
	if stage, is := killtest.IsWorker(); is {
		if err := work(context.Background(), stage, os.Getenv(dsnOf)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is the server of the tests that do not kill it.
var shared struct {
	sync.Once
	server *pgtest.Server
	err    error
}

func server(tb testing.TB) *pgtest.Server {
	tb.Helper()
	shared.Do(func() { shared.server, shared.err = pgtest.Open(pgtest.Options{}) })
	pgtest.Need(tb, shared.err)
	return shared.server
}

func database(tb testing.TB, s *pgtest.Server) (dsn string) {
	tb.Helper()
	name, err := s.CreateDatabase()
	must(tb, err)
	return s.DSN(name)
}

// work is the process of a worker. It starts the one workflow, or recovers it.
func work(ctx context.Context, stage killtest.Inside, dsn string) error {
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	s, err := open(ctx, dsn, reg, &engine.Options{Observer: func(a engine.Activity) {
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

// open opens the ledger and DBOS. The lease is short, so that a write is taken over soon.
func open(ctx context.Context, dsn string, reg *connectors.Registry, opts *engine.Options) (*system, error) {
	l, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, dsn)
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
func inProcess(tb testing.TB, dsn string, world *orders.World, risks ...policies.RiskRule) *system {
	tb.Helper()
	var reg connectors.Registry
	must(tb, reg.Register("orders", world.Destination()))
	s, err := open(tb.Context(), dsn, &reg, &engine.Options{Risks: risks})
	must(tb, err)
	must(tb, dbos.Launch(s.dbos))
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func newWorld(tb testing.TB) *orders.World {
	tb.Helper()
	world, err := orders.New(orders.Plain.Options())
	must(tb, err)
	return world
}

func (s *system) run(tb testing.TB, id string, o order) dbos.WorkflowHandle[engine.Outcome] {
	tb.Helper()
	h, err := dbos.RunWorkflow(s.dbos, s.charge, o, dbos.WithWorkflowID(id))
	must(tb, err)
	return h
}

// result is what a workflow returned, within a minute.
func result(tb testing.TB, h dbos.WorkflowHandle[engine.Outcome]) (engine.Outcome, error) {
	tb.Helper()
	return h.GetResult(dbos.WithHandleTimeout(time.Minute), dbos.WithHandlePollingInterval(20*time.Millisecond))
}

// TestLostResponse: the destination loses the response to the first send. The workflow ends with a
// verified outcome and one effect, and so does a replay of it.
func TestLostResponse(t *testing.T) {
	world := newWorld(t)
	must(t, world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}))
	s := inProcess(t, database(t, server(t)), world)
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
	for _, p := range killtest.Points() {
		t.Run("worker/"+string(p), func(t *testing.T) {
			t.Parallel()
			stage, dsn := killtest.New(t), database(t, server(t))
			killed, started := make(chan struct{}), make(chan *killtest.Worker, 1)
			stage.At(p, func() { (<-started).Kill(t); close(killed) })
			started <- stage.Start(t, dsnOf+"="+dsn)
			<-killed
			stage.Start(t, dsnOf+"="+dsn)
			ends(t, stage, dsn)
		})
	}
	for _, p := range killtest.Points() {
		t.Run("server/"+string(p), func(t *testing.T) {
			t.Parallel()
			own := pgtest.Start(t, pgtest.Options{})
			stage, dsn := killtest.New(t), database(t, own)
			killed := make(chan struct{})
			stage.At(p, func() {
				if err := own.Kill(); err != nil {
					t.Error(err)
				}
				close(killed)
			})
			stage.Start(t, dsnOf+"="+dsn)
			<-killed
			must(t, own.Recover())
			ends(t, stage, dsn)
		})
	}
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
