package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The benchmarks measure a pair: reserve (durable), then settle (durable). Rates drift on shared
// machines; only the ratios to the bare pair, which the same driver makes in the same run, can be
// compared. A bare pair is one insert and one update of about the same size under the same
// indexes, one commit each.

// asked is an intent of ordinary size.
func asked(workflow string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: workflow, Step: "charge", Tool: "payments.create",
		Destination: "payments", Kind: "charge", Write: intent.Create, IdempotencyKey: "invoice:" + workflow,
		Key:    intent.Fields{"reference": workflow},
		Expect: intent.Fields{"amount": "120.00", "currency": "EUR", "customer": "cus_4711", "description": "Invoice " + workflow},
	}
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
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			l := open(b, filepath.Join(b.TempDir(), "ledger.db"), nil)
			reservations := make([]ledger.Reservation, b.N)
			for i := range reservations {
				reservations[i] = reservation(b, asked(fmt.Sprint("w", i)))
			}
			b.ResetTimer()
			took := make([]time.Duration, b.N)
			rate := spread(b, callers, b.N, func(i int) error {
				start := time.Now()
				err := pair(l, reservations[i])
				took[i] = time.Since(start)
				return err
			})
			b.StopTimer()
			slices.Sort(took)
			bare := spread(b, callers, b.N, barePairs(b))
			b.ReportMetric(rate, "pairs/s")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(rate/bare, "×bare")
			b.ReportMetric(float64(l.Stats().Commits)/float64(b.N), "commits/pair")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func reservation(t testing.TB, w intent.WriteIntent) ledger.Reservation {
	t.Helper()
	rec, err := ledger.NewRecord(w)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Reservation{
		Record: rec, Owner: "worker", LeaseFor: time.Minute,
		Events: []ledger.Event{{Kind: ledger.EvAnnounced, SendFor: 30 * time.Second}},
	}
}

// pair is the normal path of one write, as the engine has it: two commits.
func pair(l *sqlite.Ledger, res ledger.Reservation) error {
	rec, fresh, err := l.Reserve(context.Background(), res)
	if err != nil || !fresh {
		return fmt.Errorf("fresh %v, error %w", fresh, err)
	}
	_, err = l.Append(context.Background(), rec.ID, rec.Fence,
		ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Code: "201", Ref: "ch_1"},
		ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"id":"ch_1","amount":"120.00","currency":"EUR"}`)},
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "verified"})
	return err
}

// barePairs makes pairs with the driver only.
func barePairs(b *testing.B) func(i int) error {
	b.Helper()
	conn, err := zombiezen.OpenConn(filepath.Join(b.TempDir(), "bare.db"), zombiezen.OpenReadWrite, zombiezen.OpenCreate)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	for _, q := range []string{
		"PRAGMA journal_mode = wal", "PRAGMA synchronous = full",
		`CREATE TABLE bare (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, operation TEXT NOT NULL,
			due INTEGER, state TEXT NOT NULL, body TEXT NOT NULL) STRICT`,
		"CREATE INDEX bare_due ON bare (due) WHERE due IS NOT NULL",
		"CREATE INDEX bare_operation ON bare (operation)",
	} {
		if err := sqlitex.ExecuteTransient(conn, q, nil); err != nil {
			b.Fatal(err)
		}
	}
	insert := conn.Prep("INSERT INTO bare (id, operation, due, state, body) VALUES (?, ?, ?, 'sending', ?)")
	update := conn.Prep("UPDATE bare SET due = NULL, state = 'settled', body = ? WHERE id = ?")
	body := fmt.Sprintf("%01600d", 0)
	var mu sync.Mutex
	step := func(s *zombiezen.Stmt) error {
		_, err := s.Step()
		return errors.Join(err, s.Reset())
	}
	return func(i int) error {
		id := fmt.Sprintf("wr_%032x", uint64(i)*0x9E3779B97F4A7C15)
		mu.Lock()
		insert.BindText(1, id)
		insert.BindText(2, id)
		insert.BindInt64(3, int64(i))
		insert.BindText(4, body)
		err := step(insert)
		mu.Unlock()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		update.BindText(1, body)
		update.BindText(2, id)
		return step(update)
	}
}
