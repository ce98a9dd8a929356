package access

import (
	"time"

	"golang.org/x/time/rate"
)

// buckets are token buckets by name. Their number is bounded, and a bucket is forgotten
// when it has been idle long enough to be full again. They are not safe for concurrent
// use.
type buckets struct {
	pace  rate.Limit
	burst int
	most  int // young ones, and old ones

	young, old map[string]*rate.Limiter
	since      time.Time // of young
	// rest is shared by all names that come while buckets are full.
	rest *rate.Limiter
}

func newBuckets(pace rate.Limit, burst, most int) *buckets {
	return &buckets{pace: pace, burst: burst, most: most, young: map[string]*rate.Limiter{}, rest: rate.NewLimiter(pace, burst)}
}

// of is the bucket of a name.
func (b *buckets) of(name string, now time.Time) *rate.Limiter {
	// After this long a bucket is full again.
	span := time.Duration(float64(b.burst) / float64(b.pace) * float64(time.Second))
	if !within(now, b.since, span) {
		b.old, b.young, b.since = b.young, map[string]*rate.Limiter{}, now
	}
	l, ok := b.young[name]
	if ok {
		return l
	}
	if l, ok = b.old[name]; !ok {
		l = rate.NewLimiter(b.pace, b.burst)
	}
	if len(b.young) >= b.most {
		return b.rest
	}
	b.young[name] = l
	return l
}

// missing is how long it takes until a bucket holds one more request, 0 if it does now.
func missing(l *rate.Limiter, now time.Time) time.Duration {
	have := l.TokensAt(now)
	if have >= 1 {
		return 0
	}
	return max(time.Duration((1-have)/float64(l.Limit())*float64(time.Second)), time.Second)
}
