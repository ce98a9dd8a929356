package lag

import "time"

// plan says when looks are best made, by one distribution. Its cost is the
// time until the effect is seen plus the price of each look. From the latest
// moment backwards, ahead[i] is the least cost still to come once the look at
// moment i has failed, times the probability that it does:
//
//	ahead[i] = min over j > i of left[i] × (at[j] − at[i] + price) + ahead[j]
type plan struct {
	price  float64   // of one look, in seconds
	weight float64   // how many writes it rests on
	at     []float64 // moments that are worth a look, in seconds after the send
	left   []float64 // the part of the writes not visible at each of them
	ahead  []float64
	all    []bin
}

func newPlan(all []bin) *plan {
	p := &plan{all: all}
	for _, b := range all {
		p.weight += b.weight
	}
	passed, step := 0.0, 0.0
	median := -1.0
	for i, b := range all {
		passed += b.weight
		if median < 0 && passed >= p.weight/2 {
			median = b.to.Seconds()
		}
		if step += b.weight; step < p.weight/candidates && i < len(all)-1 {
			continue
		}
		step = 0
		p.at = append(p.at, b.to.Seconds())
		p.left = append(p.left, max(0, 1-passed/p.weight))
	}
	p.price = max(price*median, floor.Seconds())
	p.ahead = make([]float64, len(p.at))
	for i := len(p.at) - 2; i >= 0; i-- {
		_, p.ahead[i] = p.best(i+1, p.at[i], p.left[i])
	}
	return p
}

// best is the moment from the i-th on at which to look next, for that part of
// the writes, at the time now, and what it costs until all of them are seen.
func (p *plan) best(i int, now, part float64) (at, cost float64) {
	at, cost = -1, -1
	for ; i < len(p.at); i++ {
		if p.at[i] < now {
			continue
		}
		if c := part*(p.at[i]-now+p.price) + p.ahead[i]; cost < 0 || c < cost {
			at, cost = p.at[i], c
		}
	}
	return at, max(cost, 0)
}

// first is the moment of the first look, not before now; false when all that
// is known lies before.
func (p *plan) first(now time.Duration) (time.Duration, bool) {
	at, cost := p.best(0, now.Seconds(), 1)
	if at < 0 {
		return now, len(p.at) > 0 // visible by now, as far as is known
	}
	left := 1 - below(p.all, now)
	if _, later := p.best(0, now.Seconds(), left); p.price+later < cost {
		return now, true
	}
	return seconds(at), true
}

// next is the moment of the next look after one that failed just now; false
// when too little of what is known lies beyond.
func (p *plan) next(now time.Duration) (time.Duration, bool) {
	left := 1 - below(p.all, now)
	if left*p.weight < remains {
		return 0, false
	}
	at, _ := p.best(0, (now + apart).Seconds(), left)
	return seconds(at), at >= 0
}
