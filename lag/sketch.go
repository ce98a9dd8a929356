package lag

import (
	"errors"
	"fmt"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

const (
	// accuracy is the relative error of a sketch. It makes a read late by at most twice that,
	// which is negligible.
	accuracy = 0.01
	// maxBins bounds a sketch. At this accuracy, 1024 bins reach from five milliseconds to beyond
	// maxLag; smaller values share a bin.
	maxBins = 1024
	// maxWeight is how many writes a sketch remembers; above it all weights are halved, so that
	// old ones fade.
	maxWeight = 1000
)

// sketch is a distribution of lags, in seconds, as stored and shared. Its weights count writes.
type sketch struct{ *ddsketch.DDSketch }

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
func (s sketch) add(lag time.Duration, weight float64) {
	_ = s.AddWithCount(lag.Seconds(), weight) // fails only for a weight below 0
}

// merge adds another sketch.
func (s sketch) merge(other sketch) { _ = s.MergeWith(other.DDSketch) } // all have one scale

// fade halves all weights.
func (s sketch) fade() { _ = s.Reweight(0.5) } // fails only for factors below 0

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// encode is the sketch as bytes, without its scale.
func (s sketch) encode() []byte {
	text := []byte{}
	s.Encode(&text, true)
	return text
}

var errSketch = errors.New("not a sketch of lags")

// decodeSketch reads encode's output, which other actors may have changed.
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
		s.add(seconds(at), weight)
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
