//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/connectors"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
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
	ended func(reference string, err error)
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
		w.ended(job.Args.Order.Reference, nil)
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
	var ended waiters
	work, config := &riverWorker{d: d, ended: ended.end}, riverConfig(m.log)
	if tuned {
		work.pool = p
		config.FetchCooldown = river.FetchCooldownMin
	}
	s, err := riverSession(ctx, p, config, work, &ended, !tuned)
	if err != nil {
		return session{}, errors.Join(err, drop())
	}
	stop := s.close
	s.close = func() error { return errors.Join(stop(), drop()) }
	return s, nil
}

func riverConfig(log *slog.Logger) *river.Config {
	return &river.Config{
		Logger: log, Workers: river.NewWorkers(),
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
	}
}

// riverSession inserts a job for each write and waits for its end, of which River's events notify the waiters, or the
// worker itself. It closes the pool.
func riverSession(ctx context.Context, p *pgxpool.Pool, config *river.Config, work river.Worker[riverJob], ended *waiters, events bool) (session, error) {
	driver := riverpgxv5.New(p)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: config.Logger})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err == nil { // else River rescues the jobs of a killed worker after an hour
		_, err = p.Exec(ctx, "UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state IN ('running', 'scheduled', 'retryable')")
	}
	if err == nil {
		_, err = p.Exec(ctx, "DELETE FROM river_leader")
	}
	river.AddWorker(config.Workers, work)
	var c *river.Client[pgx.Tx]
	if err == nil {
		c, err = river.NewClient(driver, config)
	}
	if err != nil {
		p.Close()
		return session{}, err
	}
	undo := p.Close
	if events {
		jobs, cancel := c.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobCancelled}, ChanSize: 10_000})
		undo = func() { cancel(); p.Close() }
		go func() {
			for e := range jobs {
				var job riverJob
				if err := json.Unmarshal(e.Job.EncodedArgs, &job); err != nil {
					config.Logger.Error("River: arguments", "error", err)
				}
				var err error
				if e.Kind == river.EventKindJobCancelled {
					err = errors.New("the job was cancelled")
				}
				ended.end(job.Order.Reference, err)
			}
		}()
	}
	if err := c.Start(ctx); err != nil {
		undo()
		return session{}, err
	}
	return session{
		write: func(ctx context.Context, o order) error {
			inserted, err := c.Insert(ctx, riverJob{o}, nil)
			if err != nil || inserted.Job.State == rivertype.JobStateCompleted {
				return err
			}
			return ended.await(ctx, o.Reference)
		},
		close: func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			defer undo()
			return c.Stop(ctx)
		},
	}, nil
}

// waiters are the callers that wait for the end of a job. The end can come first. The zero value
// has none.
type waiters struct {
	mu  sync.Mutex
	all map[string]chan error
}

func (w *waiters) of(name string) chan error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]chan error{}
	}
	if w.all[name] == nil {
		w.all[name] = make(chan error, 1)
	}
	return w.all[name]
}

// end can be called more than once: jobs are worked at least once.
func (w *waiters) end(name string, err error) {
	select {
	case w.of(name) <- err:
	default:
	}
}

func (w *waiters) await(ctx context.Context, name string) error {
	select {
	case err := <-w.of(name):
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
