package eval

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// resamples is how many times a bootstrap draws: the usual number for the
	// ends of a 95 % interval.
	resamples = 2000
	// bootstrapSeed makes a report the same whenever it is made of the same
	// numbers.
	bootstrapSeed = 1
)

// z is the quantile of the normal distribution for a two-sided confidence in
// percent.
func z(confidence int) float64 {
	return distuv.UnitNormal.Quantile(0.5 + float64(confidence)/200)
}

// wilson is the Wilson score interval of a proportion. Of no cases nothing is
// known: 0 to 1.
func wilson(cases, of, confidence int) (low, high float64) {
	if of == 0 {
		return 0, 1
	}
	n, p, q := float64(of), float64(cases)/float64(of), z(confidence)
	middle := p + q*q/(2*n)
	reach := q * math.Sqrt(p*(1-p)/n+q*q/(4*n*n))
	scale := 1 + q*q/n
	low, high = max((middle-reach)/scale, 0), min((middle+reach)/scale, 1)
	if cases == 0 { // exactly, without rounding
		low = 0
	}
	if cases == of {
		high = 1
	}
	return low, high
}

// newcombe is the interval of the difference of two proportions, the second from
// the first, by Newcombe's method 10: the Wilson intervals of both, put together.
func newcombe(a, b measure, confidence int) (low, high float64) {
	p, q := a.value(), b.value()
	lowA, highA := wilson(a.cases, a.of, confidence)
	lowB, highB := wilson(b.cases, b.of, confidence)
	return p - q - math.Hypot(p-lowA, highB-q), p - q + math.Hypot(highA-p, q-lowB)
}

// bootstrap is the percentile interval of the difference of two means, or of one
// mean where the other has no samples. Equal samples give an equal interval.
func bootstrap(a, b []float64, confidence int) (low, high float64) {
	random := rand.New(rand.NewPCG(bootstrapSeed, uint64(len(a))))
	drawn := func(from []float64) float64 {
		sum := 0.0
		for range from {
			sum += from[random.IntN(len(from))]
		}
		return sum / float64(max(len(from), 1))
	}
	all := make([]float64, resamples)
	for i := range all {
		all[i] = drawn(a) - drawn(b)
	}
	slices.Sort(all)
	tail := (1 - float64(confidence)/100) / 2
	return stat.Quantile(tail, stat.Empirical, all, nil), stat.Quantile(1-tail, stat.Empirical, all, nil)
}

// quantile is one of sorted samples, 0 of none.
func quantile(p float64, sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return stat.Quantile(p, stat.Empirical, sorted, nil)
}

// thinned keeps so many of sorted samples, evenly over their quantiles.
func thinned(sorted []float64) []float64 {
	if len(sorted) <= maxSamples {
		return sorted
	}
	kept := make([]float64, maxSamples)
	for i := range kept {
		kept[i] = stat.Quantile((float64(i)+0.5)/maxSamples, stat.Empirical, sorted, nil)
	}
	return kept
}
