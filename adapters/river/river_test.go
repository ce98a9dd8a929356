//go:build unix

package river_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
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

func TestMain(m *testing.M) { killtest.Main(m, work) }

var must = killtest.Must

// work is the process of a worker: River with the middleware, and the ledger in the same database.
func work(stage killtest.Inside) error {
	ctx := context.Background()
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	s, err := open(ctx, os.Getenv(dsnOf), reg, nil)
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

// database makes a database with River's tables.
func database(tb testing.TB, s *pgtest.Server) string {
	tb.Helper()
	dsn := killtest.Database(tb, s)
	pool, err := pgxpool.New(tb.Context(), dsn)
	must(tb, err)
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	must(tb, err)
	_, err = migrator.Migrate(tb.Context(), rivermigrate.DirectionUp, nil)
	must(tb, err)
	return dsn
}

// inProcess starts River and an engine in the test's process, with a destination in it.
func inProcess(tb testing.TB, dsn string, d killtest.Destination, risks ...policies.RiskRule) *system {
	tb.Helper()
	s, err := open(tb.Context(), dsn, killtest.Registry(tb, d), risks)
	must(tb, err)
	tb.Cleanup(func() { s.close(tb) })
	must(tb, s.start(tb.Context()))
	return s
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

// awaitSnoozed waits until a job is snoozed with an outcome.
func (s *system) awaitSnoozed(tb testing.TB, id int64, status ledger.Status, times int) engine.Outcome {
	tb.Helper()
	var out engine.Outcome
	killtest.Until(tb, fmt.Sprintf("job %d snoozed %d times", id, times), func() bool {
		job, err := s.client.JobGet(tb.Context(), id)
		must(tb, err)
		var metadata struct {
			Output  engine.Outcome `json:"output"`
			Snoozes int            `json:"snoozes"`
		}
		must(tb, json.Unmarshal(job.Metadata, &metadata))
		if job.State == rivertype.JobStateRunning || metadata.Snoozes < times {
			return false
		}
		if out = metadata.Output; out.Status != status || job.Attempt != 0 {
			tb.Fatalf("%+v after attempt %d, want %s and no counted attempt", out, job.Attempt, status)
		}
		return true
	})
	return out
}

func (s *system) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	_, err := s.pool.Exec(tb.Context(), sql, args...)
	must(tb, err)
}

func (s *system) decide(tb testing.TB, id ledger.ID, word engine.Word) engine.Outcome {
	tb.Helper()
	reviewer := engine.As(tb.Context(), engine.Principal{Name: "ann", Role: engine.RoleReviewer})
	out, err := s.engine.Resolve(reviewer, "acme", id, engine.Decision{Word: word, By: "ann", Reason: "asked by phone"})
	must(tb, err)
	return out
}

// TestLostResponse: the destination loses the response to the first send. The job ends verified,
// with one effect.
func TestLostResponse(t *testing.T) {
	world := killtest.World(t)
	must(t, world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}))
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	job, out := await(t, s.pool, id, rivertype.JobStateCompleted)
	if out.Status != ledger.Verified || out.Sends != 1 || job.Attempt != 1 || world.Changes("A-1") != 1 {
		t.Errorf("%+v at attempt %d with %d effects, want verified, one send, one attempt, one effect", out, job.Attempt, world.Changes("A-1"))
	}
}

// TestKills: a worker or the server is killed at each point of a job. Another attempt ends the job,
// and there is one effect.
func TestKills(t *testing.T) {
	killtest.PostgresKills(t, func(t *testing.T, stage *killtest.Stage, pg *pgtest.Server, kill func(func(), ...string)) {
		dsn := database(t, pg)
		pool, client := inserter(t, dsn)
		inserted, err := client.Insert(t.Context(), chargeArgs{Run: "run-1", Order: "A-1"}, nil)
		must(t, err)
		kill(func() { rescue(t, pool) }, dsnOf+"="+dsn)
		_, out := await(t, pool, inserted.Job.ID, rivertype.JobStateCompleted)
		if out.Status != ledger.Verified || stage.World.Changes("A-1") != 1 {
			t.Errorf("%+v with %d effects, want verified and one effect", out, stage.World.Changes("A-1"))
		}
	})
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

// TestDecisionDaysLater: a write waits for a reviewer for days. No worker is occupied and no attempt
// is counted: the job is tried more often than its maximum of attempts. The days are the snoozes,
// which are moved back in the database, as River's scheduler finds them then. The decision wakes the
// job.
func TestDecisionDaysLater(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world, policies.RiskRule{Tool: "charge"})
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	var held engine.Outcome
	for pass := range river.MaxAttemptsDefault + 5 {
		held = s.awaitSnoozed(t, id, ledger.StatusHeld, pass+1)
		s.exec(t, "UPDATE river_job SET created_at = created_at - interval '6 hours', scheduled_at = scheduled_at - interval '6 hours', state = 'available' WHERE id = $1", id)
	}
	s.awaitSnoozed(t, id, ledger.StatusHeld, river.MaxAttemptsDefault+6)
	must(t, readback.Wake(t.Context(), s.client, held.ID)) // one too many: it is still held
	s.awaitSnoozed(t, id, ledger.StatusHeld, river.MaxAttemptsDefault+7)
	s.exec(t, "UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour' WHERE id = $1", id)
	s.decide(t, held.ID, engine.WordApprove)
	must(t, readback.Wake(t.Context(), s.client, held.ID))
	job, out := await(t, s.pool, id, rivertype.JobStateCompleted)
	if out.ID != held.ID || out.Status != ledger.Verified || job.Attempt != 1 || world.Changes("A-1") != 1 {
		t.Errorf("%+v at attempt %d with %d effects, want verified at attempt 1 and one effect", out, job.Attempt, world.Changes("A-1"))
	}
	must(t, readback.Wake(t.Context(), s.client, held.ID)) // the job is completed and stays so
	if job, err := s.client.JobGet(t.Context(), id); err != nil || job.State != rivertype.JobStateCompleted {
		t.Errorf("%+v, %v", job, err)
	}
}

// TestFails: what has ended without its effect cancels the job, with the text of the outcome, and no
// attempt follows.
func TestFails(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world, policies.RiskRule{Tool: "charge", Destination: "orders", Kind: "none"})
	for name, c := range map[string]struct {
		args chargeArgs
		set  func()
		want string
	}{
		"refused by the destination": {chargeArgs{Run: "run-1", Order: "A-1"}, func() {
			must(t, world.Set(orders.Fault{Kind: orders.Refused, Times: 1, Key: "A-1"}))
		}, "422"},
		"the arguments have no name":      {chargeArgs{Order: "A-2"}, nil, "workflow"},
		"the destination has no such key": {chargeArgs{Run: "run-3"}, nil, "order_id"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.set != nil {
				c.set()
			}
			job, out := await(t, s.pool, s.insert(t, c.args), rivertype.JobStateCancelled)
			if len(job.Errors) != 1 || !strings.Contains(job.Errors[0].Error, c.want) || world.Changes(c.args.Order) != 0 {
				t.Errorf("%+v, %+v, want one error with %q and no effect", job.Errors, out, c.want)
			}
		})
	}
}

// TestInsertedAgain: a program inserts a job again. It has another ID, and the effect is there once:
// by the name in its arguments, and by the idempotency key where the name is another one too.
func TestInsertedAgain(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	for name, again := range map[string]chargeArgs{
		"the same name":                     {Run: "run-A", Order: "A"},
		"another name, one idempotency key": {Run: "run-B2", Order: "B", Key: "charge:B"},
	} {
		t.Run(name, func(t *testing.T) {
			first := again
			first.Run = "run-" + again.Order
			_, one := await(t, s.pool, s.insert(t, first), rivertype.JobStateCompleted)
			_, two := await(t, s.pool, s.insert(t, again), rivertype.JobStateCompleted)
			if two.ID != one.ID || two.Status != ledger.Verified || world.Changes(again.Order) != 1 {
				t.Errorf("%+v and %+v with %d effects, want one write with one effect", one, two, world.Changes(again.Order))
			}
		})
	}
}

// TestInsertedUnderAnotherName: a program inserts a job again under another name and without an
// idempotency key. Nothing is sent, since the order is there: verified where it is as requested, else
// the job is cancelled and names the first write.
func TestInsertedUnderAnotherName(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	_, first := await(t, s.pool, s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"}), rivertype.JobStateCompleted)
	_, out := await(t, s.pool, s.insert(t, chargeArgs{Run: "run-2", Order: "A-1"}), rivertype.JobStateCompleted)
	if out.ID == first.ID || out.Status != ledger.Verified || out.Sends != 0 {
		t.Errorf("%+v, want verified without a send", out)
	}
	_, err := world.Edit(world.Records("A-1")[0].ID, intent.Fields{"status": "refunded"})
	must(t, err)
	job, out := await(t, s.pool, s.insert(t, chargeArgs{Run: "run-3", Order: "A-1"}), rivertype.JobStateCancelled)
	if out.Sends != 0 || world.Changes("A-1") != 1 || len(job.Errors) != 1 || !strings.Contains(job.Errors[0].Error, string(first.ID)) {
		t.Errorf("%+v, %+v with %d effects, want no send, one effect and the name of the first write", out, job.Errors, world.Changes("A-1"))
	}
}

// TestReview: a reviewer abandons a write, because another actor made the order. Its job is cancelled
// as soon as it is woken.
func TestReview(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	_, err := world.Seed(intent.Fields{"order_id": "A-1", "status": "open"}, "")
	must(t, err)
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	out := s.awaitSnoozed(t, id, ledger.StatusReview, 1)
	s.decide(t, out.ID, engine.WordAbandon)
	must(t, readback.Wake(t.Context(), s.client, out.ID))
	job, out := await(t, s.pool, id, rivertype.JobStateCancelled)
	if len(job.Errors) != 1 || !strings.Contains(job.Errors[0].Error, out.Text) || out.Status != ledger.Abandoned || world.Changes("A-1") != 0 {
		t.Errorf("%+v, %+v with %d effects, want that the write was abandoned", out, job.Errors, world.Changes("A-1"))
	}
}

// TestIdentityChanged: the name of a job is another one at its second attempt, as where it is made
// from the job's ID. Nothing is sent, and the error names both.
func TestIdentityChanged(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	await(t, s.pool, id, rivertype.JobStateCompleted)
	s.exec(t, `UPDATE river_job SET args = args || '{"run": "run-2"}', state = 'available', finalized_at = NULL WHERE id = $1`, id)
	job, _ := await(t, s.pool, id, rivertype.JobStateCancelled)
	if world.Changes("A-1") != 1 || len(job.Errors) != 1 {
		t.Fatalf("%d effects, %+v", world.Changes("A-1"), job.Errors)
	}
	for _, part := range []string{engine.ErrIdentityChanged.Error(), "river:run-1", "river:run-2"} {
		if !strings.Contains(job.Errors[0].Error, part) {
			t.Errorf("no %q in %q", part, job.Errors[0].Error)
		}
	}
}

// TestOneIdentityTwice: two programs use one name for two writes. The second is refused, and names
// what differs. Another workflow engine with the same name makes a write of its own.
func TestOneIdentityTwice(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	_, out := await(t, s.pool, s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"}), rivertype.JobStateCompleted)
	job, _ := await(t, s.pool, s.insert(t, chargeArgs{Run: "run-1", Order: "A-2"}), rivertype.JobStateCancelled)
	if world.Changes("A-1") != 1 || world.Changes("A-2") != 0 || len(job.Errors) != 1 || !strings.Contains(job.Errors[0].Error, "digest") {
		t.Errorf("%d and %d effects, %+v, want 1 and 0, and an error about the digest", world.Changes("A-1"), world.Changes("A-2"), job.Errors)
	}
	other := killtest.Order("A-3")
	other.Workflow, other.Step, other.Tool = engine.WorkflowName("dbos", "run-1"), "charge", "charge"
	two, err := s.engine.Do(t.Context(), other)
	if err != nil || two.ID == out.ID || two.Status != ledger.Verified {
		t.Errorf("%+v, %v, want a write that is not %s", two, err, out.ID)
	}
}

// TestInsertTx: a job and its write are inserted together or not at all, and the write does not
// need the job.
func TestInsertTx(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	i := readback.Inserter[chargeArgs]{Client: s.client, Intent: charge}
	insert := func(a chargeArgs, end func(pgx.Tx) error) int64 {
		tx, err := s.pool.Begin(t.Context())
		must(t, err)
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // after a commit it has no effect
		r, err := i.InsertTx(t.Context(), tx, a, nil)
		must(t, err)
		must(t, end(tx))
		return r.Job.ID
	}
	insert(chargeArgs{Run: "run-1", Order: "A-1"}, func(tx pgx.Tx) error { return tx.Rollback(t.Context()) })
	defer killtest.Background(t, func(ctx context.Context) error { return s.engine.Work(ctx, nil) })()
	must(t, world.Set(orders.Fault{Kind: orders.LostAnswer}))
	id := insert(chargeArgs{Run: "run-2", Order: "A-2"}, func(tx pgx.Tx) error { return tx.Commit(t.Context()) })
	if _, out := await(t, s.pool, id, rivertype.JobStateCompleted); out.Status != ledger.Verified {
		t.Errorf("%+v, want verified", out)
	}
	insert(chargeArgs{Run: "run-3", Order: "A-3"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "DELETE FROM river_job WHERE args->>'run' = 'run-3'") // it is lost
		must(t, err)
		return tx.Commit(t.Context())
	})
	killtest.Until(t, "written without its job", func() bool { return world.Changes("A-3") > 0 })
	if got := fmt.Sprint(world.Changes("A-1"), world.Changes("A-2"), world.Changes("A-3")); got != "0 1 1" {
		t.Errorf("effects %s, want 0 1 1", got)
	}
}

// TestInsertTxLater: the write of a job that is scheduled, pending or skipped as a duplicate is not made
// before its job runs.
func TestInsertTxLater(t *testing.T) {
	world := killtest.World(t)
	s := inProcess(t, database(t, killtest.Postgres(t)), world)
	i := readback.Inserter[chargeArgs]{Client: s.client, Intent: charge}
	insert := func(a chargeArgs, opts river.InsertOpts) int64 {
		var id int64
		must(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			r, err := i.InsertTx(t.Context(), tx, a, &opts)
			if err == nil {
				id = r.Job.ID
			}
			return err
		}))
		return id
	}
	later := insert(chargeArgs{Run: "run-1", Order: "A-1"}, river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour)})
	insert(chargeArgs{Run: "run-2", Order: "A-2"}, river.InsertOpts{Pending: true})
	once := river.InsertOpts{Queue: "unworked", UniqueOpts: river.UniqueOpts{ByQueue: true}}
	if first, second := insert(chargeArgs{Run: "run-3", Order: "A-3"}, once), insert(chargeArgs{Run: "run-4", Order: "A-4"}, once); first != second {
		t.Fatalf("jobs %d and %d, want that the second is skipped", first, second)
	}
	var enqueued int
	must(t, s.pool.QueryRow(t.Context(), "SELECT count(*) FROM ledger_outbox").Scan(&enqueued))
	if enqueued != 1 {
		t.Errorf("%d writes are enqueued, want that of run-3", enqueued)
	}
	_, err := s.client.JobRetry(t.Context(), later)
	must(t, err)
	await(t, s.pool, later, rivertype.JobStateCompleted)
	if world.Changes("A-1") != 1 {
		t.Errorf("%d effects, want one", world.Changes("A-1"))
	}
}

// TestRescueOfARunningJob: River takes a job that still runs for one whose worker has ended. The
// attempts are two, and the effect is one.
func TestRescueOfARunningJob(t *testing.T) {
	gate := killtest.NewGate(killtest.World(t))
	s := inProcess(t, database(t, killtest.Postgres(t)), gate)
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	<-gate.Entered
	s.exec(t, "UPDATE river_job SET state = 'available' WHERE id = $1", id)
	killtest.Until(t, "rescued", func() bool {
		job, err := s.client.JobGet(t.Context(), id)
		must(t, err)
		return job.Attempt == 2
	})
	close(gate.Open)
	_, out := await(t, s.pool, id, rivertype.JobStateCompleted)
	if out.Status != ledger.Verified || out.Sends != 1 || gate.Changes("A-1") != 1 {
		t.Errorf("%+v with %d effects, want verified, one send, one effect", out, gate.Changes("A-1"))
	}
}

// TestCancel: a job is cancelled while its request is at the destination. Its output says that the write
// is in progress, and the write ends without the job.
func TestCancel(t *testing.T) {
	gate := killtest.NewGate(killtest.World(t))
	s := inProcess(t, database(t, killtest.Postgres(t)), gate)
	id := s.insert(t, chargeArgs{Run: "run-1", Order: "A-1"})
	<-gate.Entered
	_, err := s.client.JobCancel(t.Context(), id)
	must(t, err)
	if _, out := await(t, s.pool, id, rivertype.JobStateCancelled); out.Status != ledger.InProgress {
		t.Errorf("%+v, want in progress", out)
	}
	close(gate.Open)
	killtest.Until(t, "verified without its job", func() bool {
		all, err := s.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"})
		must(t, err)
		return len(all) == 1 && all[0].Status() == ledger.Verified
	})
	if gate.Changes("A-1") != 1 {
		t.Errorf("%d effects, want one", gate.Changes("A-1"))
	}
}

// TestNothingKnown: the last attempt of a job whose ledger cannot be reached is not discarded.
func TestNothingKnown(t *testing.T) {
	s := inProcess(t, database(t, killtest.Postgres(t)), killtest.World(t))
	s.engine.Close()
	r, err := s.client.Insert(t.Context(), chargeArgs{Run: "run-1", Order: "A-1"}, &river.InsertOpts{MaxAttempts: 1})
	must(t, err)
	job, _ := await(t, s.pool, r.Job.ID, rivertype.JobStateScheduled)
	if job.Attempt != 0 || time.Until(job.ScheduledAt) < time.Second {
		t.Errorf("attempt %d, next at %v", job.Attempt, job.ScheduledAt)
	}
}
