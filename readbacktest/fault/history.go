package fault

import (
	"slices"
	"time"
)

// Origin is the actor that made an effect.
type Origin string

// The origins.
const (
	ByRequest Origin = "request" // a request that arrived, in time or late
	ByOther   Origin = "other"   // another actor
	ByItself  Origin = "itself"  // the destination: a duplicate, a rollback, a trigger
)

// History is one record through time, its oldest state first: reads that lag return an earlier
// state. The zero value of T means that the record is absent.
type History[T any] []State[T]

// State is the state of a record from a moment on.
type State[T any] struct {
	At    time.Time
	Value T
}

// AsOf returns the state of the record at a moment.
func (h History[T]) AsOf(at time.Time) (v T) {
	for _, s := range slices.Backward(h) {
		if !s.At.After(at) {
			return s.Value
		}
	}
	return v
}
