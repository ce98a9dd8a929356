package lag

import (
	"math"
	"slices"
	"time"
)

// A lag is never seen: an effect was not there yet at one look and was there
// at the next. So what is known of a write is an interval, and what is known
// of many is fitted to their intervals: the weight of each is shared out among
// the lags in it by what all of them together make likely, again and again
// (expectation and maximisation).

// interval holds the lag of one write: after missed, not after seen.
type interval struct {
	missed, seen time.Duration
	saved        bool // it is in a sketch of the ledger
}

var (
	lowest = scale.Index(floor.Seconds())
	cells  = scale.Index(maxLag.Seconds()) - lowest + 2 // the first one is no lag
)

// cell is where a lag belongs.
func cell(d time.Duration) int {
	if d <= floor {
		return 0
	}
	return min(1+scale.Index(d.Seconds())-lowest, cells-1)
}

// middle is the lag that stands for a cell, and edge the longest in it.
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

// span is the cells that the lag may be in, the last one not included: those
// that lie in the interval for their greater part, and at least one.
func (n interval) span() (from, to int) {
	to = after(n.seen)
	if n.missed > 0 {
		from = after(n.missed)
	}
	from = min(from, cells-1)
	return from, max(to, from+1)
}

// after is the first cell that lies after a moment for its greater part.
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

// fit finds the distribution that the intervals and what was known before, in
// weights by cell, make most likely. Where nothing was known, an interval
// begins with its weight spread evenly, and half of it on no lag where that is
// possible: to believe in a short lag does little harm, for to look too early
// shows more than to look too late.
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

// spread gives the weight of one write to an interval, half of it to no lag
// where that is possible.
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

// sum brings the sums up to date for the cells before the end.
func (f *fitted) sum(end int) {
	for i, w := range f.weight[:end] {
		f.upTo[i+1] = f.upTo[i] + w
	}
}

// count is how many writes it rests on.
func (f *fitted) count() float64 { return f.upTo[cells] }

// below is the part of the writes that are visible at a moment.
func (f *fitted) below(d time.Duration) float64 {
	if f.count() == 0 {
		return 0
	}
	return f.upTo[min(max(after(d), 1), cells)] / f.count()
}

// place shares the one write out among the lags that it may have had.
func (f *fitted) place(n interval, s sketch) {
	from, to := n.span()
	all := f.upTo[to] - f.upTo[from]
	for i := from; i < to && all > 0; i++ {
		if part := f.weight[i] / all; part > negligible {
			s.add(middle(i), part)
		}
	}
}

// weights is a sketch by cell, scaled down to at most so many writes.
func (s sketch) weights(most float64) []float64 {
	all := make([]float64, cells)
	times := 1 / math.Max(1, s.GetCount()/most)
	s.ForEach(func(at, weight float64) bool {
		all[cell(seconds(at))] += weight * times
		return false
	})
	return all
}
