package lag_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/policies"
)

// ordersPath is a path that tests learn about.
var ordersPath = lag.Key{Destination: "orders", Kind: "order", Path: "list"}

// pace returns how long after the send a write is read next; a number of reads were made and
// failed, the last one at the time since.
type pace func(since time.Duration, reads int) time.Duration

// paces begin a pace for each write.
var paces = map[string]func(*lag.Book) pace{
	"backoff": func(*lag.Book) pace { return backoff() },
	"poll": func(*lag.Book) pace {
		return func(since time.Duration, _ int) time.Duration { return since + time.Second }
	},
	"learned": func(b *lag.Book) pace {
		otherwise := backoff()
		return func(since time.Duration, reads int) time.Duration {
			if pause, ok := b.Next(ordersPath, since, reads); ok {
				return since + pause
			}
			return otherwise(since, reads)
		}
	},
}

// backoff is the engine's standard pace: at once, then with growing pauses.
func backoff() pace {
	steps := policies.ReadPace()
	return func(since time.Duration, reads int) time.Duration {
		if reads == 0 {
			return since
		}
		return since + policies.ReadPause(policies.Case{SinceSend: since}, steps)
	}
}

// tally is the cost of some writes.
type tally struct {
	reads []float64
	times []float64 // until the effect was seen, in seconds
	over  []float64 // the same over the true lag
}

func (t *tally) add(reads int, seen, lag time.Duration) {
	t.reads = append(t.reads, float64(reads))
	t.times = append(t.times, seen.Seconds())
	if lag > 0 {
		t.over = append(t.over, float64(seen)/float64(lag))
	}
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(max(len(all), 1))
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// write reads one write until it is seen whose effect is visible after the lag. No clock runs:
// reads are made at the moments that the pace names.
func write(p pace, b *lag.Book, visible time.Duration) (reads int, seen time.Duration) {
	missed := time.Duration(0)
	for at := p(0, 0); ; at = p(at, reads) {
		if reads++; at >= visible {
			b.Seen(ordersPath, missed, at)
			return reads, at
		}
		missed = max(at, 1) // 0 means that it was seen at the first read
	}
}

// lags are distributions of the true lag.
var lags = map[string]func(r *rand.Rand) time.Duration{
	"0":               fixed(0),
	"50ms":            fixed(50 * time.Millisecond),
	"300ms":           fixed(300 * time.Millisecond),
	"2s":              fixed(2 * time.Second),
	"50ms/jitter":     jittered(50*time.Millisecond, 0.1),
	"300ms/jitter":    jittered(300*time.Millisecond, 0.1),
	"2s/jitter":       jittered(2*time.Second, 0.1),
	"50ms/lognormal":  lognormal(50*time.Millisecond, 0.3),
	"300ms/lognormal": lognormal(300*time.Millisecond, 0.3),
	"2s/lognormal":    lognormal(2*time.Second, 0.3),
	"300ms/wide":      lognormal(300*time.Millisecond, 0.8),
	"mostly 0":        func(r *rand.Rand) time.Duration { return time.Duration(r.IntN(10)/9) * 300 * time.Millisecond },
	"two modes":       func(r *rand.Rand) time.Duration { return time.Duration(100+1400*r.IntN(2)) * time.Millisecond },
}

func fixed(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

// jittered is uniform within a part of d to both sides.
func jittered(d time.Duration, part float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(float64(d) * (1 + part*(2*r.Float64()-1))) }
}

// lognormal has the median d.
func lognormal(d time.Duration, sigma float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(float64(d) * math.Exp(sigma*r.NormFloat64())) }
}

// run makes writes one after the other.
func run(name string, b *lag.Book, writes int, of func(*rand.Rand) time.Duration, r *rand.Rand) *tally {
	t := new(tally)
	for range writes {
		visible := of(r)
		reads, seen := write(paces[name](b), b, visible)
		t.add(reads, seen, visible)
	}
	return t
}
