package lag

import "time"

const (
	// price is the cost of a read, as a fraction of the usual lag: six tenths. If lags vary by a
	// tenth or two, the first read then comes when practically all effects are visible, at little
	// more than the lag itself. If the slow ones are slow by multiples, it comes when some eight
	// of ten are visible, and a second one follows. At a third of the lag, lags that vary by a
	// tenth sometimes took two reads.
	price = 0.6
	// candidates is how many moments a plan chooses from.
	candidates = 64
	// apart is the least time between two reads.
	apart = time.Millisecond
	// remains is how much weight must be left beyond a failed read for the next one to be placed
	// by it: half a write.
	remains = 0.5
)

// plan gives the best moments for reads, by one distribution. Its cost is the time until the
// effect is seen plus the price of each read. From the latest moment backwards, ahead[i] is the
// least remaining cost once the read at moment i has failed, times the probability that it does:
//
//	ahead[i] = min over j > i of left[i] × (at[j] − at[i] + price) + ahead[j]
type plan struct {
	fitted *fitted
	median time.Duration
	price  float64   // of one read, in seconds
	at     []float64 // moments that are worth a read, in seconds after the send
	left   []float64 // the fraction of the writes not visible at each of them
	ahead  []float64
}

func newPlan(f *fitted) *plan {
	p := &plan{fitted: f}
	half := 0
	for ; half < cells-1 && f.upTo[half+1] < f.count()/2; half++ {
	}
	p.median = edge(half)
	p.price = max(floor, time.Duration(price*float64(p.median))).Seconds()
	all, step := f.count(), 0.0
	for i, w := range f.weight {
		step += w
		if last := f.upTo[i+1] >= all*(1-negligible); step >= all/candidates || last {
			p.at = append(p.at, edge(i).Seconds())
			p.left = append(p.left, max(0, 1-f.upTo[i+1]/all))
			if step = 0; last {
				break
			}
		}
	}
	p.ahead = make([]float64, len(p.at))
	for i := len(p.at) - 2; i >= 0; i-- {
		_, p.ahead[i] = p.best(i+1, p.at[i], p.left[i])
	}
	return p
}

// best is the best moment for the next read, from the i-th on, for that fraction of the writes,
// at the time now, and its cost until all of them are seen; a moment below 0 if none is left.
func (p *plan) best(i int, now, part float64) (at, cost float64) {
	at = -1
	for ; i < len(p.at); i++ {
		if p.at[i] < now {
			continue
		}
		if c := part*(p.at[i]-now+p.price) + p.ahead[i]; at < 0 || c < cost {
			at, cost = p.at[i], c
		}
	}
	return at, cost
}

// first is the moment of the first read, not before now.
func (p *plan) first(now time.Duration) time.Duration {
	at, cost := p.best(0, now.Seconds(), 1)
	if at < 0 {
		return now // all is visible by now, as far as is known
	}
	if _, later := p.best(0, now.Seconds(), 1-p.fitted.below(now)); p.price+later < cost {
		return now
	}
	return seconds(at)
}

// next is the moment of the next read after one that failed just now; false if too little of the
// distribution is beyond it.
func (p *plan) next(now time.Duration) (time.Duration, bool) {
	left := 1 - p.fitted.below(now)
	if left*p.fitted.count() < remains {
		return 0, false
	}
	at, _ := p.best(0, (now + apart).Seconds(), left)
	return seconds(at), at >= 0
}
