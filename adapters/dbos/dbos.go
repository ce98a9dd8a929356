package dbos

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

const (
	name = "dbos" // the engine's, in names of workflows
	// attempt is how long one step of DBOS waits for a write.
	attempt = time.Minute
	// maxRetry bounds the pause before the ledger is asked again, where nothing is known.
	maxRetry = 5 * time.Minute
	// maxWait bounds one wait for a decision. Every wait leaves three rows in the workflow's
	// history. A workflow that waits for another one's write must ask again while that write's
	// idempotency key still blocks: for a day after its end, by default.
	maxWait = 12 * time.Hour
)

// Named returns the intent of a step of a workflow, as [Write] makes it. Where several applications
// share a tenant, [intent.WriteIntent.Workflow] is the name of the application. Tool is the step
// unless it is set.
func Named(workflowID, step string, w intent.WriteIntent) intent.WriteIntent {
	parts := []string{workflowID}
	if w.Workflow != "" {
		parts = []string{w.Workflow, workflowID}
	}
	w.Workflow, w.Step, w.Tool = engine.WorkflowName(name, parts...), step, cmp.Or(w.Tool, step)
	return w
}

// done is the result of one attempt, as DBOS records it. Text is why there is no outcome.
type done struct {
	engine.Step
	Text string
}

// Write makes the write of a step and waits for its outcome: while it is in progress, and until a
// reviewer has decided. It sleeps and receives, so it is called by a workflow and never by a step.
// Two steps of a workflow have two names.
//
// The error has the outcome's text where the write has ended without its effect, and the reason
// where it was refused; it is the same in every replay. It is DBOS's own where DBOS interrupts the
// workflow: the write continues then.
func Write(ctx dbos.Context, e *engine.Engine, step string, w intent.WriteIntent) (engine.Outcome, error) {
	id, err := dbos.GetWorkflowID(ctx)
	if err != nil {
		return engine.Outcome{}, err
	}
	for pause := time.Second; ; {
		d, err := dbos.RunAsStep(ctx, func(ctx context.Context) (done, error) {
			return try(ctx, e, id, step, w), nil
		}, dbos.WithStepName("readback:"+step))
		if err != nil {
			return d.Outcome, err
		}
		switch d.Next {
		case engine.NextResult:
			return d.Outcome, nil
		case engine.NextFail:
			return d.Outcome, errors.New(d.Text)
		case engine.NextDecision:
			wait := max(d.After, min(time.Since(d.Outcome.Created)/2, maxWait))
			if _, err = dbos.Recv[string](ctx, topic(d.Outcome.ID), wait); errors.Is(err, dbos.ErrTimeout) {
				err = nil
			}
		case engine.NextLater:
			_, err = dbos.Sleep(ctx, d.After)
		default:
			_, err = dbos.Sleep(ctx, pause)
			pause = min(2*pause, maxRetry)
		}
		if err != nil {
			return d.Outcome, err
		}
	}
}

// try makes one attempt within a step. Its errors are results: DBOS records an error without its
// type, and would repeat the step by a limit of its own.
func try(ctx context.Context, e *engine.Engine, id, step string, w intent.WriteIntent) done {
	w, count, err := identified(ctx, e, id, step, w)
	if err != nil {
		return done{engine.Step{Next: engine.NextRetry}, err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	s, err := e.Step(ctx, w, count)
	if err != nil {
		return done{s, err.Error()}
	}
	return done{s, s.Outcome.Text}
}

// identified returns the intent of a step under its name, and how often it may have been tried. A
// fork has the write of the workflow that it comes from, unless that ended without its effect: then it
// makes one of its own.
func identified(ctx context.Context, e *engine.Engine, id, step string, w intent.WriteIntent) (named intent.WriteIntent, count int, err error) {
	ids, whole, err := lineage(ctx, id)
	if err != nil {
		return w, 0, err
	}
	if count = 1; !whole { // an earlier write may have a name that is not known
		count = 2
	}
	if len(ids) == 1 {
		return Named(id, step, w), count, nil
	}
	now, end := context.WithCancel(ctx)
	end() // nothing is waited for
	for i, one := range ids {
		named = Named(one, step, w)
		made, err := e.Wait(now, w.Tenant, ledger.IDOf(named.StructuralKey()), true)
		switch {
		case errors.Is(err, ledger.ErrNotFound) && i == len(ids)-1: // the original may be about to make it
			return named, count, nil
		case errors.Is(err, ledger.ErrNotFound):
		case err != nil:
			return w, 0, err
		case i == 0 || made.Status.Group() != ledger.NotDone:
			return named, count, nil
		}
	}
	return Named(id, step, w), count, nil
}

// lineage returns the ID of a workflow, and those of the workflows that it was forked from, the next
// one first. Whole is false where DBOS has deleted one of them, so that those before it are unknown.
func lineage(ctx context.Context, id string) (ids []string, whole bool, err error) {
	c, ok := ctx.(dbos.Context)
	if !ok {
		return nil, false, errors.New("the context is not of a step of DBOS")
	}
	for {
		ids = append(ids, id)
		found, err := dbos.ListWorkflows(c, dbos.WithFilterWorkflowIDs(id), dbos.WithFilterLoadInput(false), dbos.WithFilterLoadOutput(false))
		if err != nil {
			return nil, false, err
		}
		if len(found) == 0 || found[0].ForkedFrom == "" {
			return ids, len(found) > 0, nil
		}
		id = found[0].ForkedFrom
	}
}

// EnqueueIn enqueues the write of a step within a transaction of the workflow
// ([dbos.RunAsTransaction]): the write is made if and only if the transaction commits, and DBOS
// records the step in it. The data source is the ledger's database, whose workers
// ([engine.Engine.Work]) make the write. A later [Write] of the same step and intent waits for its
// outcome. A fork enqueues under the name of its original, so that a write that is there is not
// enqueued again.
func EnqueueIn(ctx context.Context, tx dbos.Tx, o postgres.Outbox, step string, w intent.WriteIntent) (ledger.ID, error) {
	c, ok := ctx.(dbos.Context)
	if !ok {
		return "", errors.New("EnqueueIn needs the context of a transaction of DBOS")
	}
	id, err := dbos.GetWorkflowID(c)
	if err != nil {
		return "", err
	}
	ids, _, err := lineage(ctx, id)
	if err != nil {
		return "", err
	}
	return o.Enqueue(ctx, querier{tx: tx}, Named(ids[len(ids)-1], step, w))
}

// querier is a transaction of DBOS as the outbox uses it: for queries of one row.
type querier struct {
	pgx.Tx
	tx dbos.Tx
}

func (q querier) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	return q.tx.QueryRow(ctx, query, args...)
}

// Wake resumes the workflow that waits for a write, and its forks. The arguments are the members
// workflow and write of a message of readback's webhooks, and its webhook-id, with which a message
// that is delivered twice wakes once. A workflow that is not woken continues when its wait ends.
//
// Wake returns nil where there is nothing to wake: the workflow is another engine's, or was deleted,
// or its ID is too long to be read from the name.
func Wake(c dbos.Client, workflow string, id ledger.ID, webhookID string) error {
	parts := engine.WorkflowParts(name, workflow)
	if parts == nil {
		return nil
	}
	err := dbos.Send(c, parts[len(parts)-1], string(id), topic(id), dbos.WithIdempotencyKey(webhookID), dbos.WithSendToForks())
	if errors.Is(err, dbos.ErrNonExistentWorkflow) {
		return nil
	}
	return err
}

// topic is where a workflow receives that a write has changed.
func topic(id ledger.ID) string { return "readback:" + string(id) }
