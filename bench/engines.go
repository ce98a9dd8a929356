//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	dbosadapter "github.com/readback-go/readback/adapters/dbos"
	restateadapter "github.com/readback-go/readback/adapters/restate"
	riveradapter "github.com/readback-go/readback/adapters/river"
	temporaladapter "github.com/readback-go/readback/adapters/temporal"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	restate "github.com/restatedev/sdk-go"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// What is the same for every engine: how fast a step is repeated, and the longest that one attempt
// of a plain step may take.
const (
	firstRetry, lastRetry = 100 * time.Millisecond, time.Second
	longestAttempt        = 3 * time.Second
)

// trial is what a worker runs: one workflow for each order, by an engine alone or with readback.
type trial struct {
	Engine      string
	With        bool   // readback
	Reads       bool   // alone, the step reads the order once after it is made
	Destination string // the URL of the orders
	Database    string // of DBOS or River
	Ledger      string // of readback
	Address     string // of Temporal, or Restate's ingress
	Admin       string // of Restate
	Service     string // where the worker serves Restate
	Batch       string // of this trial's workflows at a server that others use too
	Orders      int
}

// reference is that of an order: the same in every trial, so that the faults by chance are too.
func reference(i int) string { return fmt.Sprintf("order-%d", i) }

// underTest are the engines, by name. Each runs a workflow or a job of one step for an order. The step is
// charge, or with an engine of readback a write.
var underTest = map[string]func(ctx context.Context, t trial, log *slog.Logger, by step) (session, error){
	"Temporal": temporalTrial, "River": riverTrial, "DBOS": dbosTrial, "Restate": restateTrial,
}

// step is what the one step of a workflow does.
type step struct {
	charge func(context.Context, order) error // nil with readback
	engine *engine.Engine                     // nil alone
	ledger ledger.Ledger
}

// openTrial starts a worker in this process. Its session's write begins the workflow of an order, if it has
// not begun, and waits for its end; the error is the workflow's.
func openTrial(ctx context.Context, t trial, log *slog.Logger) (session, error) {
	shop := &http.Client{Timeout: longestAttempt, Transport: &http.Transport{MaxIdleConnsPerHost: 300}}
	charge := func(ctx context.Context, o order) error { return charge(ctx, shop, t, o) }
	if !t.With {
		return underTest[t.Engine](ctx, t, log, step{charge: charge})
	}
	l, err := postgres.Open(ctx, t.Ledger, nil)
	if err != nil {
		return session{}, err
	}
	c, err := orders.NewConnector(t.Destination, declared(t.Reads), nil)
	if err != nil {
		return session{}, errors.Join(err, l.Close())
	}
	var reg connectors.Registry
	err = reg.Register("orders", connectors.Destination{Connector: c, Profiles: map[string]connectors.Profile{orders.Kind: declared(t.Reads).Profile()}})
	if err != nil {
		return session{}, errors.Join(err, l.Close())
	}
	// The lease is short, so that a killed worker's writes are taken over soon.
	e := engine.New(l, &reg, &engine.Options{Slack: time.Second, Recheck: horizon, Logger: log})
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	worked := make(chan error, 1)
	go func() { worked <- e.Work(working, nil) }() // what no workflow asks for any more, such as rechecks
	closed := func() error { stop(); err := <-worked; e.Close(); return errors.Join(err, l.Close()) }
	s, err := underTest[t.Engine](ctx, t, log, step{engine: e, ledger: l})
	if err != nil {
		return session{}, errors.Join(err, closed())
	}
	closeEngine := s.close
	s.close = func() error { return errors.Join(closeEngine(), closed()) }
	return s, nil
}

// horizon bounds how late a request can be applied and how late an effect can disappear: the faults of the table
// keep it.
const horizon = 2 * time.Second

// declared is the destination: strong reads, and stamps. Under faults it knows neither keys nor unique orders. For the
// rates orders are unique and none is taken back, so that each is read once, after it was made.
func declared(once bool) orders.Options {
	o := orders.Plain.Options()
	o.Horizon, o.Rollback = connectors.Within(horizon), connectors.Within(horizon)
	o.Recheck = connectors.Bound{} // when the rollback has passed
	o.SendTimeout, o.ReadTimeout = longestAttempt, longestAttempt
	if once {
		o.Unique, o.Rollback = true, connectors.Bound{}
	}
	return o
}

const cents = 12_000

// charge is what the step does without readback: it makes the order, and fails where it is not known that it was
// made, so that the engine repeats it.
func charge(ctx context.Context, shop *http.Client, t trial, o order) error {
	body, err := json.Marshal(map[string]any{"order": map[string]any{
		"order_id": o.Reference, "amount_cents": cents, "customer": o.Customer, "description": o.Description,
	}})
	if err != nil {
		return err
	}
	if err := call(ctx, shop, http.MethodPost, t.Destination+"/orders", body); err != nil || !t.Reads {
		return err
	}
	return call(ctx, shop, http.MethodGet, t.Destination+"/orders?order_id="+url.QueryEscape(o.Reference), nil)
}

func call(ctx context.Context, c *http.Client, method, to string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return errors.New(answer.Status)
	}
	return nil
}

// write is the step with readback.
func (o order) write() intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: tenant, Tool: "charge", IdempotencyKey: o.Reference, Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key:    intent.Fields{"order_id": o.Reference},
		Expect: intent.Fields{"amount_cents": json.Number(fmt.Sprint(cents)), "customer": o.Customer, "description": o.Description},
	}
}

const tenant = "acme"

func temporalTrial(ctx context.Context, t trial, log *slog.Logger, by step) (session, error) {
	retries := &sdk.RetryPolicy{InitialInterval: firstRetry, MaximumInterval: lastRetry}
	flow := func(ctx workflow.Context, o order) error {
		if by.engine != nil {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{HeartbeatTimeout: longestAttempt, RetryPolicy: retries})
			_, err := temporaladapter.Do(ctx, "charge", o.write())
			return err
		}
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: longestAttempt, RetryPolicy: retries})
		return workflow.ExecuteActivity(ctx, "charge", o).Get(ctx, nil)
	}
	return temporalSession(ctx, log, t.Address, t.Batch, flow, func(w worker.Worker) {
		if by.engine != nil {
			temporaladapter.Register(w, by.engine)
		} else {
			w.RegisterActivityWithOptions(by.charge, activity.RegisterOptions{Name: "charge"})
		}
	})
}

// soon repeats a job of River as the others repeat a step.
type soon struct{}

func (soon) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(min(firstRetry<<min(len(job.Errors), 10), lastRetry))
}

func riverTrial(ctx context.Context, t trial, log *slog.Logger, by step) (session, error) {
	p, err := poolOf(ctx, t.Database)
	if err != nil {
		return session{}, err
	}
	config := riverConfig(log)
	config.RetryPolicy, config.JobTimeout, config.MaxAttempts = soon{}, 10*time.Second, 1000
	config.FetchCooldown, config.FetchPollInterval = river.FetchCooldownMin, firstRetry
	if by.engine != nil {
		config.Middleware = []rivertype.Middleware{riveradapter.NewMiddleware(by.engine, riveradapter.Intent[riverJob](func(job riverJob) (intent.WriteIntent, error) {
			w := job.Order.write()
			w.Workflow = job.Order.Reference
			return w, nil
		}).Jobs())}
	}
	work := river.WorkFunc(func(ctx context.Context, job *river.Job[riverJob]) error { return by.charge(ctx, job.Args.Order) })
	return riverSession(ctx, p, config, work, new(waiters), true)
}

func dbosTrial(ctx context.Context, t trial, log *slog.Logger, by step) (session, error) {
	return dbosSession(ctx, dbos.Config{DatabaseURL: t.Database, Logger: log}, func(ctx dbos.Context, o order) (string, error) {
		if by.engine != nil {
			_, err := dbosadapter.Write(ctx, by.engine, "charge", o.write())
			return o.Reference, err
		}
		return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) { return o.Reference, by.charge(ctx, o) },
			dbos.WithStepName("charge"), dbos.WithStepMaxRetries(100), dbos.WithStepBaseInterval(firstRetry), dbos.WithStepMaxInterval(lastRetry))
	})
}

func restateTrial(ctx context.Context, t trial, log *slog.Logger, by step) (session, error) {
	writes := &restateadapter.Writes{Service: "orders-" + t.Batch, Engine: by.engine, Ledger: by.ledger}
	// By default Restate calls a killed worker again after half a second, and each time after twice as long.
	again := restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(firstRetry), restate.WithMaxRetryInterval(lastRetry))
	return restateSession(ctx, log, t.Address, t.Admin, t.Service, restate.NewService(writes.Service, again).Handler("charge",
		restate.NewServiceHandler(func(ctx restate.Context, o order) (string, error) {
			if by.engine != nil {
				w := o.write()
				w.Workflow = o.Reference // by default the server does not pass the idempotency key on
				_, err := writes.Do(ctx, "charge", w)
				return o.Reference, err
			}
			return restate.Run(ctx, func(ctx restate.RunContext) (string, error) { return o.Reference, by.charge(ctx, o) },
				restate.WithName("charge"), restate.WithInitialRetryInterval(firstRetry), restate.WithMaxRetryInterval(lastRetry))
		})))
}

// trialOf is the environment variable with the trial of a worker's process.
const trialOf = "READBACK_BENCH_TRIAL"

// report is one line of a worker: the workflow of an order has ended.
type report struct {
	Order string
	Error string `json:",omitempty"`
}

// workerMain runs the trial in the environment until the process is killed or interrupted.
func workerMain(ctx context.Context, out io.Writer) (is bool, err error) {
	text := os.Getenv(trialOf)
	if text == "" {
		return false, nil
	}
	var t trial
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return true, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	s, err := openTrial(ctx, t, log)
	if err != nil {
		return true, err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range t.Orders {
		wg.Go(func() {
			o := newOrder(reference(i))
			err := s.write(ctx, o)
			if ctx.Err() != nil {
				return
			}
			r := report{Order: o.Reference}
			if err != nil {
				r.Error = err.Error()
				log.Error("the workflow failed", "order", o.Reference, "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			_ = json.NewEncoder(out).Encode(r) // the table's program may have ended
		})
	}
	wg.Wait()
	<-ctx.Done()
	return true, nil
}
