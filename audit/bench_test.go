package audit_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
)

// The cost of sealing for writers: lives of two commits, by 16 callers, without it and with a
// sealer in parallel. Rates drift on shared machines;
// the ratio within one run counts.
func BenchmarkSealed(b *testing.B) {
	for _, how := range []string{"off", "sealed"} {
		b.Run(how, func(b *testing.B) {
			l := open(b, filepath.Join(b.TempDir(), "ledger.db"))
			ctx, end := context.WithCancel(context.Background())
			var beside sync.WaitGroup
			if how != "off" {
				s := audit.New(l, audit.Options{Logger: quiet})
				if _, err := s.Seal(ctx); err != nil {
					b.Fatal(err)
				}
				beside.Go(func() { _ = s.Work(ctx) })
			}
			began := time.Now()
			var callers sync.WaitGroup
			for c := range 16 {
				callers.Go(func() {
					for i := c; i < b.N; i += 16 {
						life(b, l, "a", fmt.Sprint("w", i))
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "lives/s")
			end()
			beside.Wait()
		})
	}
}

// How many entries of a chain one second checks, and the memory that is in use meanwhile: entries
// are read page by page.
func BenchmarkVerify(b *testing.B) {
	l := open(b, filepath.Join(b.TempDir(), "ledger.db"))
	const callers = 64
	var writing sync.WaitGroup
	for c := range callers {
		writing.Go(func() {
			for i := c; i < b.N; i += callers {
				life(b, l, "a", fmt.Sprint("w", i))
			}
		})
	}
	writing.Wait()
	s := audit.New(l, audit.Options{Logger: quiet})
	entries := 0
	for more := true; more; {
		n, err := s.Seal(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		entries, more = entries+n, n > 0
	}
	b.ResetTimer()
	r, err := audit.Verify(b.Context(), l, audit.VerifyOptions{})
	took := b.Elapsed()
	if err != nil || !r.OK() || r.Unsealed > 0 || entries < b.N {
		b.Fatalf("%d entries: %+v, %v", entries, r, err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(entries)/took.Seconds(), "entries/s")
	b.ReportMetric(float64(m.HeapSys)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}
