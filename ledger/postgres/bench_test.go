package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// The benchmarks measure a pair: reserve (durable), then settle (durable). Rates drift on shared
// machines; only the ratios to the bare pair, which the same driver makes in the same run, can be
// compared. A bare pair is one insert and one update of about the same size under the same
// indexes, one commit each, with statements prepared on the server.

// asked is an intent of ordinary size.
func asked(workflow string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: workflow, Step: "charge", Tool: "payments.create",
		Destination: "payments", Kind: "charge", Write: intent.Create, IdempotencyKey: "invoice:" + workflow,
		Key:    intent.Fields{"reference": workflow},
		Expect: intent.Fields{"amount": "120.00", "currency": "EUR", "customer": "cus_4711", "description": "Invoice " + workflow},
	}
}

func reservation(t testing.TB, w intent.WriteIntent) ledger.Reservation {
	t.Helper()
	rec, err := ledger.NewRecord(w)
	must(t, err)
	return ledger.Reservation{
		Record: rec, Owner: "worker", LeaseFor: time.Minute,
		Events: []ledger.Event{{Kind: ledger.EvAnnounced, SendFor: 30 * time.Second}},
	}
}

// pair is the normal path of one write, as the engine has it: two commits.
func pair(l *postgres.Ledger, res ledger.Reservation) error {
	rec, fresh, err := l.Reserve(context.Background(), res)
	if err != nil || !fresh {
		return fmt.Errorf("fresh %v, error %w", fresh, err)
	}
	_, err = l.Append(context.Background(), rec.ID, rec.Fence, settling...)
	return err
}

var settling = []ledger.Event{
	{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Code: "201", Ref: "ch_1"},
	{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"id":"ch_1","amount":"120.00","currency":"EUR"}`)},
	{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "verified"},
}

// spread runs pair(0) to pair(n-1) in a number of goroutines and returns the rate per second.
func spread(b *testing.B, callers, n int, pair func(i int) error) float64 {
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := pair(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

func BenchmarkPair(b *testing.B) {
	s := pgtest.Start(b, pgtest.Options{})
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			d := freshOn(b, s)
			l := d.open(nil)
			reservations := make([]ledger.Reservation, b.N)
			for i := range reservations {
				reservations[i] = reservation(b, asked(fmt.Sprint("w", i)))
			}
			took := make([]time.Duration, b.N)
			b.ResetTimer()
			rate := spread(b, callers, b.N, func(i int) error {
				start := time.Now()
				err := pair(l, reservations[i])
				took[i] = time.Since(start)
				return err
			})
			b.StopTimer()
			bare := spread(b, callers, b.N, d.barePairs(callers))
			slices.Sort(took)
			b.ReportMetric(rate, "pairs/s")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(rate/bare, "×bare")
			b.ReportMetric(float64(l.Stats().Commits)/float64(b.N), "commits/pair")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// barePairs makes pairs with the driver only, each caller on a connection of its own as far as
// the server has them.
func (d *database) barePairs(callers int) func(i int) error {
	d.t.Helper()
	config, err := pgxpool.ParseConfig(d.dsn())
	must(d.t, err)
	config.MaxConns = int32(min(callers, 32))
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(d.t, err)
	d.t.Cleanup(pool.Close)
	d.exec(`CREATE TABLE bare (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, operation TEXT NOT NULL,
			due BIGINT, state TEXT NOT NULL, body TEXT NOT NULL);
		CREATE INDEX bare_due ON bare (due) WHERE due IS NOT NULL;
		CREATE INDEX bare_operation ON bare (operation)`)
	body := fmt.Sprintf("%01600d", 0)
	return func(i int) error {
		id := fmt.Sprintf("wr_%032x", uint64(i)*0x9E3779B97F4A7C15)
		_, err := pool.Exec(context.Background(), "INSERT INTO bare (id, operation, due, state, body) VALUES ($1, $1, $2, 'sending', $3)", id, i, body)
		if err != nil {
			return err
		}
		_, err = pool.Exec(context.Background(), "UPDATE bare SET due = NULL, state = 'settled', body = $1 WHERE id = $2", body, id)
		return err
	}
}
