package river

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

const (
	// occupied is how long a job waits for its write before it is snoozed. River's JobTimeout
	// does not bound a middleware.
	occupied = 10 * time.Second
	// lastRetry is the pause before a job's last attempt is repeated, where nothing is known:
	// River would discard the job, and its write continues.
	lastRetry = time.Minute
)

// Intent returns the write of a job. Workflow is the name of the operation, taken from the
// arguments. Step and Tool are the job's kind unless they are set.
type Intent[T river.JobArgs] func(args T) (intent.WriteIntent, error)

// Jobs are the jobs of one kind whose writes a [Middleware] makes.
type Jobs struct {
	kind string
	of   func(encoded []byte) (intent.WriteIntent, error)
}

// Jobs returns the jobs whose arguments are of type T.
func (i Intent[T]) Jobs() Jobs {
	var kind T
	return Jobs{kind.Kind(), func(encoded []byte) (intent.WriteIntent, error) {
		var args T
		if err := json.Unmarshal(encoded, &args); err != nil {
			return intent.WriteIntent{}, err
		}
		return i(args)
	}}
}

// Middleware makes the writes of some kinds of jobs. Their workers are not called; other jobs
// pass.
type Middleware struct {
	river.MiddlewareDefaults
	engine *engine.Engine
	jobs   map[string]Jobs
}

var _ rivertype.WorkerMiddleware = (*Middleware)(nil)

// NewMiddleware returns a middleware for [river.Config]. Of two Jobs of one kind the last counts.
func NewMiddleware(e *engine.Engine, jobs ...Jobs) *Middleware {
	m := &Middleware{engine: e, jobs: map[string]Jobs{}}
	for _, j := range jobs {
		m.jobs[j.kind] = j
	}
	return m
}

// Work implements [rivertype.WorkerMiddleware].
func (m *Middleware) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	j, ours := m.jobs[job.Kind]
	if !ours {
		return doInner(ctx)
	}
	w, err := j.of(job.EncodedArgs)
	return work(ctx, m.engine, job, w, err)
}

// Worker returns a worker whose jobs are writes.
func Worker[T river.JobArgs](e *engine.Engine, i Intent[T]) river.Worker[T] {
	return river.WorkFunc(func(ctx context.Context, job *river.Job[T]) error {
		w, err := i(job.Args)
		return work(ctx, e, job.JobRow, w, err)
	})
}

// work makes one attempt at a job. The outcome is the job's output.
func work(ctx context.Context, e *engine.Engine, job *rivertype.JobRow, w intent.WriteIntent, err error) error {
	if err != nil {
		return river.JobCancel(fmt.Errorf("the write of job %d: %w", job.ID, err))
	}
	ctx, cancel := context.WithTimeout(ctx, occupied)
	defer cancel()
	s, err := e.Step(ctx, named(w, job.Kind), job.Attempt)
	if err == nil {
		if err := river.RecordOutput(ctx, s.Outcome); err != nil {
			return err
		}
	}
	switch {
	case s.Next == engine.NextLater, s.Next == engine.NextDecision:
		return river.JobSnooze(s.After)
	case s.Next == engine.NextResult:
		return nil
	case s.Next == engine.NextFail && err == nil:
		return river.JobCancel(errors.New(s.Outcome.Text))
	case s.Next == engine.NextFail:
		return river.JobCancel(err)
	case job.Attempt >= job.MaxAttempts:
		return river.JobSnooze(lastRetry)
	}
	return err
}

// named completes the name of a job's write.
func named(w intent.WriteIntent, kind string) intent.WriteIntent {
	w.Workflow = engine.WorkflowName("river", w.Workflow)
	w.Step, w.Tool = cmp.Or(w.Step, kind), cmp.Or(w.Tool, kind)
	return w
}

// Inserter inserts jobs together with their writes. It needs River and the ledger in one
// database, and workers of the ledger ([engine.Engine.Work]), which make the writes: the job waits
// for the outcome, and the write does not depend on it.
type Inserter[T river.JobArgs] struct {
	Client *river.Client[pgx.Tx]
	Intent Intent[T]
	// Outbox is where the write is enqueued. Default: the ledger of the search path, without
	// keys.
	Outbox postgres.Outbox
}

// InsertTx is [river.Client.InsertTx] for a job and its write: both are inserted if and only if the
// transaction commits. The write of a job that is not to run now, because opts schedule it or make
// it pending, is made when the job runs. That of a job which River skips as a duplicate is not
// enqueued. The errors are those of River and of [postgres.Outbox.Enqueue]; after an error the
// caller rolls the transaction back.
func (i Inserter[T]) InsertTx(ctx context.Context, tx pgx.Tx, args T, opts *river.InsertOpts) (*rivertype.JobInsertResult, error) {
	w, err := i.Intent(args)
	if err != nil {
		return nil, err
	}
	r, err := i.Client.InsertTx(ctx, tx, args, opts)
	if err != nil || r.UniqueSkippedAsDuplicate || r.Job.State != rivertype.JobStateAvailable {
		return r, err
	}
	if _, err := i.Outbox.Enqueue(ctx, tx, named(w, args.Kind())); err != nil {
		return nil, err
	}
	return r, nil
}

// Wake runs the jobs that wait for a write now. Call it with the ID in a message of readback's
// webhooks, or in an outcome of [engine.Engine.Subscribe]. A job that is not woken runs when its
// snooze ends. A wake-up too many has no effect: the job gets the outcome as it is.
func Wake[TTx any](ctx context.Context, c *river.Client[TTx], id ledger.ID) error {
	waits, err := json.Marshal(map[string]any{rivertype.MetadataKeyOutput: map[string]any{"id": id}})
	if err != nil {
		return err
	}
	found, err := c.JobList(ctx, river.NewJobListParams().Metadata(string(waits)).
		States(rivertype.JobStateAvailable, rivertype.JobStateRetryable, rivertype.JobStateScheduled))
	if err != nil {
		return err
	}
	for _, job := range found.Jobs {
		if _, err := c.JobRetry(ctx, job.ID); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return err
		}
	}
	return nil
}
