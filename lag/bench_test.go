package lag_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/readback-go/readback/lag"
)

// BenchmarkReadBack compares the paces at which writes are read back, for lags
// of several sizes and shapes, after 200 writes. The moments are computed, not
// waited for, so the numbers are exact: reads/write, and the time until the
// effect is seen over the true lag (ms-late where there is none).
func BenchmarkReadBack(b *testing.B) {
	for _, shape := range slices.Sorted(maps.Keys(lags)) {
		for _, name := range []string{"learned", "backoff", "poll"} {
			b.Run(shape+"/"+name, func(b *testing.B) {
				book := lag.New(nil, nil)
				r := rand.New(rand.NewPCG(1, 2))
				run(name, book, 200, lags[shape], r)
				b.ResetTimer()
				t := run(name, book, max(b.N, 2000), lags[shape], r)
				b.StopTimer()
				b.ReportMetric(mean(t.reads), "reads/write")
				b.ReportMetric(median(t.reads), "median-reads/write")
				if len(t.over) > 0 {
					b.ReportMetric(mean(t.over), "×lag")
					b.ReportMetric(median(t.over), "median×lag")
				} else {
					b.ReportMetric(1000*mean(t.times), "ms-late")
				}
			})
		}
	}
}
