package audit_test

import (
	"context"
	"fmt"
	"path/filepath"
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
