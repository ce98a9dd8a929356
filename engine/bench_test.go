package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// instant is a destination that costs nothing, so that only the engine and its ledger are
// measured. It counts.
type instant struct {
	mu           sync.Mutex
	records      map[string]connectors.Record
	sends, reads atomic.Int64
}

func (d *instant) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	d.sends.Add(1)
	id := r.Intent.Key["order_id"].(string)
	d.mu.Lock()
	defer d.mu.Unlock()
	fields := intent.Fields{"order_id": id}
	for name, v := range r.Intent.Expect {
		fields[name] = v
	}
	d.records[id] = connectors.Record{Ref: id, Stamp: r.Stamp, Fields: fields}
	return connectors.Receipt{Ref: id}, nil
}

func (d *instant) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	d.reads.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	if r, ok := d.records[q.Intent.Key["order_id"].(string)]; ok {
		seen.Records = []connectors.Record{r}
	}
	return seen, nil
}

// onDisk returns an engine on a ledger file with the instant destination.
func onDisk(tb testing.TB) (*engine.Engine, *sqlite.Ledger, *instant) {
	tb.Helper()
	book, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "ledger.db"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := book.Close(); err != nil {
			tb.Error(err)
		}
	})
	d := &instant{records: make(map[string]connectors.Record)}
	var reg connectors.Registry
	err = reg.Register("orders", connectors.Destination{Connector: d, Profiles: map[string]connectors.Profile{
		"order": {Stamped: true, Unique: []intent.WriteType{intent.Create}, Settle: connectors.Within(0), Horizon: connectors.Within(time.Minute)},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	e := engine.New(book, &reg, nil)
	tb.Cleanup(e.Close)
	return e, book, d
}

// TestHappyPathCostsOnDisk counts what the happy path costs on a real ledger.
func TestHappyPathCostsOnDisk(t *testing.T) {
	e, book, d := onDisk(t)
	before := book.Stats().Commits
	const writes = 20
	for i := range writes {
		out, err := e.Do(t.Context(), order(fmt.Sprint("A-", i), intent.Create))
		if err != nil || out.Status != ledger.Verified {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if commits := book.Stats().Commits - before; commits != 2*writes || d.sends.Load() != writes || d.reads.Load() != writes {
		t.Errorf("%d writes cost %d durable commits, %d sends, %d reads; want 2, 1 and 1 each", writes, commits, d.sends.Load(), d.reads.Load())
	}
}

// BenchmarkDo takes writes from intent to verified outcome. ×syncs is the time of one caller
// relative to two bare syncs of 256 bytes in the same run: the cost of the promise beyond
// the disk. commits/write falls below 1 where callers share them.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			bare := syncPair(b)
			e, book, _ := onDisk(b)
			begin := book.Stats().Commits
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						out, err := e.Do(b.Context(), order(fmt.Sprint("A-", i), intent.Create))
						if err != nil || out.Status != ledger.Verified {
							b.Errorf("%+v, %v", out, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			perWrite := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			b.ReportMetric(float64(book.Stats().Commits-begin)/float64(b.N), "commits/write")
			b.ReportMetric(float64(perWrite)/float64(bare), "×syncs")
		})
	}
}

// syncPair returns how long two durable appends of 256 bytes take.
func syncPair(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const rounds = 200
	line := make([]byte, 256)
	start := time.Now()
	for range 2 * rounds {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / rounds
}
