package lag

import (
	"math"
	"slices"
	"time"
)

const (
	// floor is the lag that counts as none: a read due so soon is made at once. It is also the
	// minimum price of a read, a round trip to a destination nearby.
	floor = 5 * time.Millisecond
	// rounds is the number of iterations of a fit: by then, values that one write in twenty
	// contradicts have a hundredth of the weight of uncontradicted ones.
	rounds = 100
	// still is how little weight moves in one iteration of a finished fit.
	still = 0.02
	// negligible is a fraction of a write that is not worth keeping.
	negligible = 1e-4
)

// A lag is never observed: an effect was absent at one read and present at the next. So a write
// gives an interval, and a distribution is fitted to many intervals: the weight of each is shared
// out among its lags by their current likelihood, repeatedly (expectation maximisation).

// interval holds the lag of one write: after missed, not after seen.
type interval struct {
	missed, seen time.Duration
	saved        bool // it is in a sketch in the ledger
}

var (
	lowest = scale.Index(floor.Seconds())
	cells  = scale.Index(maxLag.Seconds()) - lowest + 2 // the first one is no lag
)

// cell is the cell of a lag.
func cell(d time.Duration) int {
	if d <= floor {
		return 0
	}
	return min(1+scale.Index(d.Seconds())-lowest, cells-1)
}

// middle is the representative lag of a cell, and edge the longest in it.
func middle(i int) time.Duration {
	if i == 0 {
		return 0
	}
	return seconds(scale.Value(lowest + i - 1))
}

func edge(i int) time.Duration {
	if i == 0 {
		return 0
	}
	return seconds(scale.LowerBound(lowest + i))
}

// span is the cells that the lag may be in, the last one excluded: those of which the greater
// part is in the interval, and at least one.
func (n interval) span() (from, to int) {
	to = after(n.seen)
	if n.missed > 0 {
		from = after(n.missed)
	}
	from = min(from, cells-1)
	return from, max(to, from+1)
}

// after is the first cell of which the greater part is after a moment.
func after(d time.Duration) int {
	i := cell(d)
	if i == 0 && d < floor/2 || i > 0 && d < middle(i) {
		return i
	}
	return i + 1
}

// fitted is a distribution of lags.
type fitted struct {
	weight []float64 // by cell; counts writes
	upTo   []float64 // upTo[i] is the weight of the cells before i
}

// fit finds the distribution that the intervals and the prior, in weights by cell, make most
// likely. Without a prior, an interval begins with its weight spread evenly, and half of it on no
// lag where that is possible: assuming a short lag does little harm, for an early read shows more
// than a late one.
func fit(before []float64, recent []interval) *fitted {
	f := &fitted{weight: slices.Clone(before), upTo: make([]float64, cells+1)}
	f.sum(cells)
	known := slices.Clone(f.upTo)
	spans, end := make([][2]int, len(recent)), 0
	for k, n := range recent {
		from, to := n.span()
		spans[k], end = [2]int{from, to}, max(end, to)
		if known[to]-known[from] <= known[cells]*surprisingLate {
			f.spread(from, to, n.missed == 0)
		}
	}
	share := make([]float64, end+1)
	for range rounds {
		f.sum(end)
		clear(share)
		for _, s := range spans {
			if all := f.upTo[s[1]] - f.upTo[s[0]]; all > 0 {
				share[s[0]] += 1 / all
				share[s[1]] -= 1 / all
			}
		}
		times, moved := 0.0, 0.0
		for i, add := range share[:end] {
			times += add
			w := before[i] + f.weight[i]*max(times, 0)
			moved += math.Abs(w - f.weight[i])
			f.weight[i] = w
		}
		if moved < still {
			break
		}
	}
	f.sum(cells)
	return f
}

// spread gives the weight of one write to an interval, half of it to no lag where that is
// possible.
func (f *fitted) spread(from, to int, none bool) {
	weight := 1.0
	if none && to > 1 {
		weight /= 2
		f.weight[0] += weight
	}
	part := weight / float64(to-from)
	for i := from; i < to; i++ {
		f.weight[i] += part
	}
}

// sum updates the sums for the cells before the end.
func (f *fitted) sum(end int) {
	for i, w := range f.weight[:end] {
		f.upTo[i+1] = f.upTo[i] + w
	}
}

// count is how many writes the fit is based on.
func (f *fitted) count() float64 { return f.upTo[cells] }

// below is the fraction of the writes that are visible at a moment.
func (f *fitted) below(d time.Duration) float64 {
	if f.count() == 0 {
		return 0
	}
	return f.upTo[min(max(after(d), 1), cells)] / f.count()
}

// place shares out one write among its possible lags.
func (f *fitted) place(n interval, s sketch) {
	from, to := n.span()
	all := f.upTo[to] - f.upTo[from]
	for i := from; i < to && all > 0; i++ {
		if part := f.weight[i] / all; part > negligible {
			s.add(middle(i), part)
		}
	}
}

// weights is a sketch by cell, scaled down to at most that many writes.
func (s sketch) weights(most float64) []float64 {
	all := make([]float64, cells)
	times := 1 / math.Max(1, s.GetCount()/most)
	s.ForEach(func(at, weight float64) bool {
		all[cell(seconds(at))] += weight * times
		return false
	})
	return all
}
