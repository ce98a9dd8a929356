//go:build unix

package river_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	readback "github.com/readback-go/readback/adapters/river"
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

// chargeArgs are the arguments of the jobs of the tests. Run names the operation.
type chargeArgs struct {
	Run   string `json:"run"`
	Order string `json:"order"`
	Key   string `json:"key"`
}

func (chargeArgs) Kind() string { return "charge" }

func charge(a chargeArgs) (intent.WriteIntent, error) {
	w := killtest.Order(a.Order)
	w.Workflow, w.IdempotencyKey = a.Run, a.Key
	return w, nil
}

// existing is the worker of a program before it uses readback.
type existing struct {
	river.WorkerDefaults[chargeArgs]
}

func (existing) Work(context.Context, *river.Job[chargeArgs]) error {
	return errors.New("the middleware makes the write instead of this worker")
}

// dsnOf is the environment variable with the database of a worker's process.
const dsnOf = "READBACK_RIVER_DSN"

func TestMain(m *testing.M) {
	if stage, is := killtest.IsWorker(); is {
		if err := work(context.Background(), stage, os.Getenv(dsnOf)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// work is the process of a worker: River with the middleware, and the ledger in the same database.
func work(ctx context.Context, stage killtest.Inside, dsn string) error {
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	s, err := open(ctx, dsn, reg, nil)
	if err != nil {
		return err
	}
	at := river.WorkerMiddlewareFunc(func(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
		stage.Reached(killtest.BeforeDo)
		err := inner(ctx)
		stage.Reached(killtest.Settled)
		return err
	})
	if err := s.start(ctx, at); err != nil {
		return err
	}
	select {}
}

// system is River and an engine on one database.
type system struct {
	pool   *pgxpool.Pool
	ledger *postgres.Ledger
	engine *engine.Engine
	client *river.Client[pgx.Tx]
}

// open opens the ledger and makes an engine. The lease is short, so that a write is taken over
// soon.
func open(ctx context.Context, dsn string, reg *connectors.Registry, risks []policies.RiskRule) (*system, error) {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	l, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &system{pool: pool, ledger: l, engine: engine.New(l, reg, &engine.Options{Slack: time.Second, Risks: risks})}, nil
}

// start starts River.
func (s *system) start(ctx context.Context, middleware ...rivertype.Middleware) (err error) {
	config := &river.Config{
		Workers: river.NewWorkers(), Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Middleware: append(middleware, readback.NewMiddleware(s.engine, readback.Intent[chargeArgs](charge).Jobs())),
	}
	river.AddWorker(config.Workers, existing{})
	if s.client, err = river.NewClient(riverpgxv5.New(s.pool), config); err != nil {
		return err
	}
	return s.client.Start(ctx)
}

func (s *system) close(tb testing.TB) {
	if s.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.client.StopAndCancel(ctx); err != nil {
			tb.Error(err)
		}
	}
	s.engine.Close()
	if err := s.ledger.Close(); err != nil {
		tb.Error(err)
	}
	s.pool.Close()
}

// server is a PostgreSQL for the tests that do not kill it.
func server(tb testing.TB) *pgtest.Server { return pgtest.Start(tb, pgtest.Options{}) }

// database makes a database with River's tables.
func database(tb testing.TB, s *pgtest.Server) (dsn string) {
	tb.Helper()
	name, err := s.CreateDatabase()
	must(tb, err)
	pool, err := pgxpool.New(tb.Context(), s.DSN(name))
	must(tb, err)
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	must(tb, err)
	_, err = migrator.Migrate(tb.Context(), rivermigrate.DirectionUp, nil)
	must(tb, err)
	return s.DSN(name)
}

// inProcess starts River and an engine in the test's process, with a destination in it.
func inProcess(tb testing.TB, dsn string, world *orders.World, risks ...policies.RiskRule) *system {
	tb.Helper()
	var reg connectors.Registry
	must(tb, reg.Register("orders", world.Destination()))
	s, err := open(tb.Context(), dsn, &reg, risks)
	must(tb, err)
	tb.Cleanup(func() { s.close(tb) })
	must(tb, s.start(tb.Context()))
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

func (s *system) insert(tb testing.TB, a chargeArgs) int64 {
	tb.Helper()
	r, err := s.client.Insert(tb.Context(), a, nil)
	must(tb, err)
	return r.Job.ID
}

// await waits until a job is in a state, and returns it with its outcome.
func await(tb testing.TB, pool *pgxpool.Pool, id int64, state rivertype.JobState) (job rivertype.JobRow, out engine.Outcome) {
	tb.Helper()
	killtest.Until(tb, fmt.Sprintf("job %d %s", id, state), func() bool {
		var output []byte
		var errs []string
		// A server that was killed does not answer at first.
		err := pool.QueryRow(tb.Context(), `SELECT attempt, state, scheduled_at, coalesce(metadata->'output', '{}'), coalesce(ARRAY(SELECT unnest(errors)::text), '{}')
			FROM river_job WHERE id = $1`, id).Scan(&job.Attempt, &job.State, &job.ScheduledAt, &output, &errs)
		if err != nil {
			return false
		}
		job.Errors = nil
		for _, text := range errs {
			var one rivertype.AttemptError
			must(tb, json.Unmarshal([]byte(text), &one))
			job.Errors = append(job.Errors, one)
		}
		must(tb, json.Unmarshal(output, &out))
		return job.State == state
	})
	return job, out
}

// awaitHeld waits until a job is snoozed because its write waits for a reviewer.
func (s *system) awaitSnoozed(tb testing.TB, id int64, status ledger.Status) (rivertype.JobRow, engine.Outcome) {
	tb.Helper()
	var job rivertype.JobRow
	var out engine.Outcome
	killtest.Until(tb, "snoozed", func() bool {
		row, err := s.client.JobGet(tb.Context(), id)
		must(tb, err)
		out = engine.Outcome{}
		if raw := row.Output(); raw != nil {
			must(tb, json.Unmarshal(raw, &out))
		}
		job = *row
		return out.Status == status && row.State != rivertype.JobStateRunning
	})
	return job, out
}

// TestLostResponse: the destination loses the response to the first send. The job ends verified,
// with one effect.
func TestLostResponse(t *testing.T) {
	world := newWorld(t)
	must(t, world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}))
	s := inProcess(t, database(t, server(t)), world)
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	job, out := await(t, s.pool, id, rivertype.JobStateCompleted)
	if out.Status != ledger.Verified || out.Sends != 1 || job.Attempt != 1 || world.Changes("A-1") != 1 {
		t.Errorf("%+v at attempt %d with %d effects, want verified, one send, one attempt, one effect", out, job.Attempt, world.Changes("A-1"))
	}
}

// TestKills: a worker or the server is killed at each point of a job. Another attempt ends the job,
// and there is one effect.
func TestKills(t *testing.T) {
	shared := server(t)
	for _, p := range killtest.Points() {
		t.Run("worker/"+string(p), func(t *testing.T) {
			t.Parallel()
			stage, dsn := killtest.New(t), database(t, shared)
			pool, client := inserter(t, dsn)
			worker := stage.Start(t, dsnOf+"="+dsn)
			killed := make(chan struct{})
			stage.At(p, func() { worker.Kill(t); close(killed) })
			inserted, err := client.Insert(t.Context(), chargeArgs{Run: "run-1", Order: "A-1"}, nil)
			must(t, err)
			<-killed
			rescue(t, pool)
			stage.Start(t, dsnOf+"="+dsn)
			_, out := await(t, pool, inserted.Job.ID, rivertype.JobStateCompleted)
			if out.Status != ledger.Verified || stage.World.Changes("A-1") != 1 {
				t.Errorf("%+v with %d effects, want verified and one effect", out, stage.World.Changes("A-1"))
			}
		})
	}
	for _, p := range killtest.Points() {
		t.Run("server/"+string(p), func(t *testing.T) {
			t.Parallel()
			own := server(t)
			stage, dsn := killtest.New(t), database(t, own)
			pool, client := inserter(t, dsn)
			stage.Start(t, dsnOf+"="+dsn)
			killed := make(chan struct{})
			stage.At(p, func() {
				if err := own.Kill(); err != nil {
					t.Error(err)
				}
				close(killed)
			})
			inserted, err := client.Insert(t.Context(), chargeArgs{Run: "run-1", Order: "A-1"}, nil)
			must(t, err)
			<-killed
			must(t, own.Recover())
			_, out := await(t, pool, inserted.Job.ID, rivertype.JobStateCompleted)
			if out.Status != ledger.Verified || stage.World.Changes("A-1") != 1 {
				t.Errorf("%+v with %d effects, want verified and one effect", out, stage.World.Changes("A-1"))
			}
		})
	}
}

// inserter is a client that works no jobs.
func inserter(t *testing.T, dsn string) (*pgxpool.Pool, *river.Client[pgx.Tx]) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	must(t, err)
	t.Cleanup(pool.Close)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return pool, client
}

// rescue lets the hour pass after which River rescues the jobs of a worker that ended, and the time
// for which that worker was the leader.
func rescue(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), "UPDATE river_job SET attempted_at = attempted_at - interval '2 hours' WHERE state = 'running'")
	must(t, err)
	_, err = pool.Exec(t.Context(), "DELETE FROM river_leader")
	must(t, err)
}
