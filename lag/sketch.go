package lag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// sketch is a distribution of lags, in seconds. Its weights count writes.
type sketch struct{ *ddsketch.DDSketch }

// bin is the weight of the lags between two others.
type bin struct {
	from, to time.Duration // both 0 for no lag
	at       float64       // what the sketch calls it
	weight   float64
}

var scale = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(accuracy)
	if err != nil {
		panic(err) // the accuracy is a constant
	}
	return m
}()

func bins() store.Store { return store.NewCollapsingLowestDenseStore(maxBins) }

func newSketch() sketch {
	return sketch{ddsketch.NewDDSketchFromStoreProvider(scale, bins)}
}

// add gives weight to a lag.
func (s sketch) add(seconds, weight float64) {
	if seconds <= floor.Seconds() {
		seconds = 0
	}
	_ = s.AddWithCount(seconds, weight) // fails for what is negative or no number alone
}

// merge adds another sketch.
func (s sketch) merge(other sketch) { _ = s.MergeWith(other.DDSketch) } // all have one scale

// fade halves all weights.
func (s sketch) fade() { _ = s.Reweight(0.5) } // fails for factors below 0 alone

// bins returns what has weight, in order.
func (s sketch) bins() []bin {
	var all []bin
	half := math.Sqrt((1 + accuracy) / (1 - accuracy))
	s.ForEach(func(at, weight float64) bool {
		if weight > 0 {
			all = append(all, bin{from: seconds(at / half), to: seconds(at * half), at: at, weight: weight})
		}
		return false
	})
	slices.SortFunc(all, func(a, b bin) int { return cmp.Compare(a.at, b.at) })
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// below is the part of the weight at lags up to d.
func below(all []bin, d time.Duration) float64 {
	total, part := 0.0, 0.0
	for _, b := range all {
		total += b.weight
		part += b.weight * b.within(-1, d)
	}
	if total == 0 {
		return 0
	}
	return part / total
}

// within is the part of the bin that lies after one moment and not after
// another.
func (b bin) within(after, until time.Duration) float64 {
	if b.from == b.to {
		if b.from > after && b.from <= until {
			return 1
		}
		return 0
	}
	overlap := min(b.to, until) - max(b.from, after)
	return max(0, float64(overlap)/float64(b.to-b.from))
}

// place says where the one write belongs whose lag lies after missed and not
// after seen: where the distribution says, or, where it says nothing, evenly
// between them, or at no lag when it was there at the first look. Each place
// is given to add. To believe the least lag that fits does no harm: looking
// too early shows more than looking too late.
func place(all []bin, missed, seen time.Duration, add func(seconds, weight float64)) {
	if seen <= floor {
		add(0, 1)
		return
	}
	after := missed
	if missed <= 0 {
		after = -1 // no lag at all is possible too
	}
	known := 0.0
	for _, b := range all {
		known += b.weight * b.within(after, seen)
	}
	even := 0.0
	switch {
	case known > 0 && missed > 0 && seen-missed <= seen/2:
		even = blur
	case known > 0:
	case missed <= 0:
		add(0, 1)
		return
	default:
		even = 1
	}
	for _, b := range all {
		if w := b.weight * b.within(after, seen); w > 0 {
			add(b.at, (1-even)*w/known)
		}
	}
	for i := range spread {
		if even > 0 {
			part := (float64(i) + 0.5) / spread
			add((missed + time.Duration(part*float64(seen-missed))).Seconds(), even/spread)
		}
	}
}

// encode is the sketch as bytes, without its scale.
func (s sketch) encode() []byte {
	text := []byte{}
	s.Encode(&text, true)
	return text
}

var errSketch = errors.New("not a sketch of lags")

// decodeSketch reads what encode wrote, whoever may have changed it since.
func decodeSketch(text []byte) (s sketch, err error) {
	defer func() { // the library trusts its input
		if p := recover(); p != nil {
			s, err = sketch{}, fmt.Errorf("%w: %v", errSketch, p)
		}
	}()
	raw, err := ddsketch.DecodeDDSketch(text, bins, scale)
	if err != nil {
		return sketch{}, fmt.Errorf("%w: %w", errSketch, err)
	}
	s = newSketch()
	raw.ForEach(func(at, weight float64) bool {
		if !(at >= 0 && at <= 2*maxLag.Seconds() && weight >= 0 && weight <= 4*maxWeight) {
			err = fmt.Errorf("%w: weight %v at %v s", errSketch, weight, at)
			return true
		}
		s.add(at, weight)
		return false
	})
	if err == nil && !(s.GetCount() <= 4*maxWeight) {
		err = fmt.Errorf("%w: weight %v", errSketch, s.GetCount())
	}
	if err != nil {
		return sketch{}, err
	}
	return s, nil
}
