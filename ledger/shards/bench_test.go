package shards_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
)

// commitTime is how long the disk of a throttled server takes for one commit, of which it makes one at
// a time: 33 a second. It is long, so that the one machine of this benchmark is not the limit.
const commitTime = 30 * time.Millisecond

// throttled is a partition whose server is the limit.
type throttled struct {
	ledger.Partition
	disk sync.Mutex
}

func (p *throttled) Join(ctx context.Context, name string, home ledger.Partition) error {
	if h, ok := home.(*throttled); ok {
		home = h.Partition
	}
	return p.Partition.Join(ctx, name, home)
}

func (p *throttled) Reserve(ctx context.Context, res ledger.Reservation) (ledger.Record, bool, error) {
	p.disk.Lock()
	pause.For(ctx, commitTime)
	p.disk.Unlock()
	return p.Partition.Reserve(ctx, res)
}

// BenchmarkShards reserves writes of 64 tenants with 64 callers, in one database and in eight, where
// the server of each is the limit. ×one is how many times as many they take as one.
func BenchmarkShards(b *testing.B) {
	var one float64
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := template(b, n)
			names := map[string]string{}
			for i := range 64 {
				names[fmt.Sprint("tenant ", i)] = string(rune('a' + i%n))
			}
			var all []shards.Shard
			for _, s := range d.shards() {
				all = append(all, shards.Shard{Name: s.Name, Open: func(ctx context.Context) (ledger.Partition, error) {
					p, err := s.Open(ctx)
					return &throttled{Partition: p}, err
				}})
			}
			l, err := shards.Open(context.Background(), all, shards.Options{Tenants: names})
			must(b, err)
			defer func() { must(b, l.Close()) }()
			for tenant := range names {
				_, err := l.Place(b.Context(), tenant)
				must(b, err)
			}
			var next atomic.Int64
			var wait sync.WaitGroup
			b.ResetTimer()
			for c := range 64 {
				wait.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						rec, err := ledger.NewRecord(charge(fmt.Sprint("tenant ", c), fmt.Sprint("w", i)))
						if err == nil {
							_, _, err = l.Reserve(b.Context(), ledger.Reservation{Record: rec})
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wait.Wait()
			b.StopTimer()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "writes/s")
			if n == 1 {
				one = rate
			} else if one > 0 {
				b.ReportMetric(rate/one, "×one")
			}
		})
	}
}
