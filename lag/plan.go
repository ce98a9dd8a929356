package lag

import "time"

// plan says when looks are best made, by one distribution. Its cost is the
// time until the effect is seen plus the price of each look. From the latest
// moment backwards, ahead[i] is the least cost still to come once the look at
// moment i has failed, times the probability that it does:
//
//	ahead[i] = min over j > i of left[i] × (at[j] − at[i] + price) + ahead[j]
type plan struct {
	fitted *fitted
	median time.Duration
	price  float64   // of one look, in seconds
	at     []float64 // moments that are worth a look, in seconds after the send
	left   []float64 // the part of the writes not visible at each of them
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

// best is the moment from the i-th on at which to look next, for that part of
// the writes, at the time now, and what it costs until all of them are seen;
// a moment below 0 when none is left.
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

// first is the moment of the first look, not before now.
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

// next is the moment of the next look after one that failed just now; false
// when too little of what is known lies beyond.
func (p *plan) next(now time.Duration) (time.Duration, bool) {
	left := 1 - p.fitted.below(now)
	if left*p.fitted.count() < remains {
		return 0, false
	}
	at, _ := p.best(0, (now + apart).Seconds(), left)
	return seconds(at), at >= 0
}
