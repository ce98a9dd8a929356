package verify_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// far is a destination with slow calls.
type far struct {
	connectors.Connector
	takes time.Duration
}

func (f far) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	time.Sleep(f.takes)
	return f.Connector.Write(ctx, r)
}

func (f far) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	time.Sleep(f.takes)
	return f.Connector.Read(ctx, q)
}

// farBulk is one with bulk reads.
type farBulk struct{ far }

func (f farBulk) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	time.Sleep(f.takes)
	return f.Connector.(connectors.BulkReader).ReadMany(ctx, qs)
}

// writers makes the given number of concurrent writes through an engine and returns how many
// calls the destination got for reading them back, and how long the slowest took.
func writers(tb testing.TB, bulk bool, round, many int) (reads int, slowest time.Duration) {
	tb.Helper()
	o := orders.Unique.Options()
	o.Bulk = bulk
	world, err := orders.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	d := world.Destination()
	d.Connector = far{d.Connector, 20 * time.Millisecond}
	if bulk {
		d.Connector = farBulk{d.Connector.(far)}
	}
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		tb.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	defer e.Close()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range many {
		wg.Go(func() {
			id := fmt.Sprint("A-", round, "-", i)
			began := time.Now()
			out, err := e.Do(tb.Context(), intent.WriteIntent{
				Tenant: "acme", Workflow: "wf", Step: id, Tool: "orders.create", Destination: "orders", Kind: orders.Kind,
				Write: intent.Create, Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"currency": "USD"},
			})
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(began))
			if err != nil || out.Status != ledger.Verified {
				tb.Errorf("%+v, %v", out, err)
			}
		})
	}
	wg.Wait()
	_, reads = world.Count()
	return reads, slowest
}

// 256 concurrent writes are read back with at most a tenth of a call each, and none waits
// longer for it than a call takes.
func TestEngineJoinsItsReads(t *testing.T) {
	const many, call = 256, 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		alone, _ := writers(t, false, 0, many)
		joined, slowest := writers(t, true, 1, many)
		t.Logf("%d writes at once: %d calls to read them back one by one, %d joined; the slowest took %s with calls of %s", many, alone, joined, slowest, call)
		if alone != many || joined > 10 || slowest > 3*call {
			t.Errorf("%d calls one by one and %d joined, the slowest after %s; want %d, at most 10, and %s", alone, joined, slowest, many, 3*call)
		}
	})
}

// BenchmarkJoinedReads makes 256 concurrent writes, with bulk reads and without. calls/write is
// the cost of reading back; ×time is the time until the slowest write is verified with bulk
// reads, relative to that without.
func BenchmarkJoinedReads(b *testing.B) {
	const many = 256
	var alone, joined int
	var slow, fast time.Duration
	for round := range b.N {
		n, took := writers(b, false, round, many)
		alone, slow = alone+n, slow+took
		n, took = writers(b, true, round, many)
		joined, fast = joined+n, fast+took
	}
	b.ReportMetric(float64(alone)/float64(many*b.N), "calls/write-alone")
	b.ReportMetric(float64(joined)/float64(many*b.N), "calls/write-joined")
	b.ReportMetric(float64(fast)/float64(slow), "×time")
}
