package lag_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/readback-go/readback/lag"
)

// BenchmarkReadBack compares the paces at which writes are read back, for lags of several sizes
// and shapes. Each round is a book of its own, with 200 writes that it learns from and 200 that
// count. The moments are computed, not waited for, so that the numbers measure only the paces:
// reads/write, and the time until the effect is seen over the true lag (ms-late if there is
// none).
func BenchmarkReadBack(b *testing.B) {
	for _, shape := range slices.Sorted(maps.Keys(lags)) {
		for _, name := range []string{"learned", "backoff", "poll"} {
			b.Run(shape+"/"+name, func(b *testing.B) {
				all := new(tally)
				for round := range b.N {
					book, r := lag.New(nil, nil), rand.New(rand.NewPCG(uint64(round), 2))
					run(name, book, 200, lags[shape], r)
					t := run(name, book, 200, lags[shape], r)
					all.reads, all.times, all.over = append(all.reads, t.reads...), append(all.times, t.times...), append(all.over, t.over...)
				}
				b.ReportMetric(mean(all.reads), "reads/write")
				b.ReportMetric(median(all.reads), "median-reads/write")
				if len(all.over) > 0 {
					b.ReportMetric(mean(all.over), "×lag")
					b.ReportMetric(median(all.over), "median×lag")
				} else {
					b.ReportMetric(1000*mean(all.times), "ms-late")
				}
			})
		}
	}
}
