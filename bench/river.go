//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/connectors"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River fetches jobs at most every 100 ms and records completed ones in batches, four times a
// second or as soon as there are a hundred. Both are made for throughput, and a caller who
// waits for the end of one job waits for both.
var riverDefault = contender{
	name: "River, as it comes", store: postgresStore, module: "github.com/riverqueue/river",
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		return riverOn(ctx, m, d, false)
	},
}

// The shortest wait that River's options allow: jobs are fetched as often as it lets them, and
// the worker completes a job in a transaction of its own.
var riverTuned = contender{
	name: "River, tuned to wait less", store: postgresStore, module: "github.com/riverqueue/river",
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		return riverOn(ctx, m, d, true)
	},
}

type riverJob struct {
	Order order `json:"order"`
}

func (riverJob) Kind() string { return "charge" }

// InsertOpts makes jobs unique by their order, as the keys of the others are.
func (riverJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type riverWorker struct {
	river.WorkerDefaults[riverJob]
	d     *destination
	pool  *pgxpool.Pool // nil where River completes the job
	ended func(reference string)
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverJob]) error {
	w.d.send(job.Args.Order.Reference, connectors.Record{})
	if w.pool == nil {
		return nil
	}
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err == nil {
		w.ended(job.Args.Order.Reference)
	}
	return err
}

func riverOn(ctx context.Context, m *machine, d *destination, tuned bool) (session, error) {
	dsn, drop, err := m.database()
	if err != nil {
		return session{}, err
	}
	p, err := poolOf(ctx, dsn)
	if err != nil {
		return session{}, errors.Join(err, drop())
	}
	undo := func() error { p.Close(); return drop() }
	driver := riverpgxv5.New(p)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: m.log})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return session{}, errors.Join(err, undo())
	}
	var waiting waiters
	work := &riverWorker{d: d, ended: waiting.end}
	config := &river.Config{
		Logger: m.log, Workers: river.NewWorkers(),
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
	}
	if tuned {
		work.pool = p
		config.FetchCooldown = river.FetchCooldownMin
	}
	river.AddWorker(config.Workers, work)
	c, err := river.NewClient(driver, config)
	if err != nil {
		return session{}, errors.Join(err, undo())
	}
	if !tuned {
		events, cancel := c.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 10_000})
		undo = func() error { cancel(); p.Close(); return drop() }
		go func() {
			for e := range events {
				var job riverJob
				if err := json.Unmarshal(e.Job.EncodedArgs, &job); err != nil {
					m.log.Error("River: arguments", "error", err)
				}
				waiting.end(job.Order.Reference)
			}
		}()
	}
	if err := c.Start(ctx); err != nil {
		return session{}, errors.Join(err, undo())
	}
	return session{
		write: func(ctx context.Context, o order) error {
			if _, err := c.Insert(ctx, riverJob{o}, nil); err != nil {
				return err
			}
			return waiting.await(ctx, o.Reference)
		},
		close: func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return errors.Join(c.Stop(ctx), undo())
		},
	}, nil
}

// waiters are the callers that wait for the end of a job. The end can come first. The zero value
// has none.
type waiters struct {
	mu  sync.Mutex
	all map[string]chan struct{}
}

func (w *waiters) of(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]chan struct{}{}
	}
	if w.all[name] == nil {
		w.all[name] = make(chan struct{}, 1)
	}
	return w.all[name]
}

// end can be called more than once: jobs are worked at least once.
func (w *waiters) end(name string) {
	select {
	case w.of(name) <- struct{}{}:
	default:
	}
}

func (w *waiters) await(ctx context.Context, name string) error {
	select {
	case <-w.of(name):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
