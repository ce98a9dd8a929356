//go:build unix

package river_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	readback "github.com/readback-go/readback/adapters/river"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger/postgres"
)

// BenchmarkJobs works jobs that each create an order, and prints jobs a second. River alone sends and
// reads back in its worker, without a ledger: the calls of the destination are as many. The server is
// one for River and the ledger, and syncs each commit to the folder of TMPDIR.
//
//	go test -run '^$' -bench . -benchtime 3000x -count 5
func BenchmarkJobs(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{})
	for _, workers := range []int{20, 100} {
		for _, with := range []string{"alone", "readback"} {
			b.Run(fmt.Sprintf("workers=%d/%s", workers, with), func(b *testing.B) { benchmark(b, server, workers, with == "readback") })
		}
	}
}

func benchmark(b *testing.B, server *pgtest.Server, workers int, with bool) {
	dsn := database(b, server)
	pool, err := pgxpool.New(b.Context(), dsn+" pool_max_conns=20")
	must(b, err)
	defer pool.Close()
	d := killtest.NewDistant(b)
	config := &river.Config{
		Workers: river.NewWorkers(), Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Logger: slog.New(slog.DiscardHandler),
	}
	river.AddWorker(config.Workers, sends{d: d})
	if with {
		l, err := postgres.Open(b.Context(), dsn, nil)
		must(b, err)
		defer func() { must(b, l.Close()) }()
		e := engine.New(l, killtest.Registry(b, d), nil)
		defer e.Close()
		config.Middleware = append(config.Middleware, readback.NewMiddleware(e, readback.Intent[chargeArgs](charge).Jobs()))
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	must(b, err)
	var jobs []river.InsertManyParams
	for n := range b.N {
		id := fmt.Sprintf("A-%d", n)
		jobs = append(jobs, river.InsertManyParams{Args: chargeArgs{Run: id, Order: id}})
	}
	_, err = client.InsertManyFast(b.Context(), jobs)
	must(b, err)
	must(b, server.Exec("postgres", "CHECKPOINT"))
	ended, cancel := client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: b.N})
	defer cancel()
	b.ResetTimer()
	must(b, client.Start(context.WithoutCancel(b.Context())))
	for range b.N {
		<-ended
	}
	b.StopTimer()
	ctx, stop := context.WithTimeout(context.WithoutCancel(b.Context()), 10*time.Second)
	defer stop()
	must(b, client.Stop(ctx))
	d.Report(b, "job")
}

// sends is a worker that does what can be done without a ledger: it sends and reads back.
type sends struct {
	river.WorkerDefaults[chargeArgs]
	d killtest.Distant
}

func (s sends) Work(ctx context.Context, job *river.Job[chargeArgs]) error {
	w, err := charge(job.Args)
	if err == nil {
		err = s.d.Unrecorded(ctx, w)
	}
	return err
}
