//go:build unix

package dbos_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	readback "github.com/readback-go/readback/adapters/dbos"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger/postgres"
)

// BenchmarkWorkflows runs workflows of one step, which creates an order, and prints
// workflows a second. DBOS alone sends and reads back in the step, without a ledger: the calls of the
// destination are as many. The server is one for DBOS and the ledger, and syncs each commit to the
// folder of TMPDIR.
//
//	go test -run '^$' -bench . -benchtime 3000x -count 5
func BenchmarkWorkflows(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{})
	for _, callers := range []int{4, 64} {
		for _, with := range []string{"alone", "readback"} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, with), func(b *testing.B) { benchmark(b, server, callers, with == "readback") })
		}
	}
}

func benchmark(b *testing.B, server *pgtest.Server, callers int, with bool) {
	dsn := killtest.Database(b, server)
	d := killtest.NewDistant(b)
	l, err := postgres.Open(b.Context(), dsn, nil)
	must(b, err)
	defer func() { must(b, l.Close()) }()
	e := engine.New(l, killtest.Registry(b, d), nil)
	defer e.Close()
	c, err := dbos.NewContext(context.WithoutCancel(b.Context()), dbos.Config{AppName: "readback-bench", DatabaseURL: dsn, Logger: slog.New(slog.DiscardHandler)})
	must(b, err)
	workflow := func(ctx dbos.Context, o order) (engine.Outcome, error) {
		if with {
			return readback.Write(ctx, e, "charge", o.intent())
		}
		return dbos.RunAsStep(ctx, func(ctx context.Context) (engine.Outcome, error) {
			return engine.Outcome{}, d.Unrecorded(ctx, o.intent())
		}, dbos.WithStepName("charge"))
	}
	dbos.RegisterWorkflow(c, workflow, dbos.WithWorkflowName("charge"))
	must(b, dbos.Launch(c))
	defer func() { must(b, dbos.Shutdown(c, 10*time.Second)) }()
	must(b, server.Exec("postgres", "CHECKPOINT"))
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for range callers {
		running.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				id := fmt.Sprintf("A-%d", n)
				h, err := dbos.RunWorkflow(c, workflow, order{ID: id, Key: id}, dbos.WithWorkflowID(id))
				if err == nil {
					_, err = h.GetResult()
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.StopTimer()
	d.Report(b, "workflow")
}
