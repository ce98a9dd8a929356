package workflow

import (
	"context"
	"hash/maphash"
)

// turns makes callers within a process that want the same paper go one after
// another, so that they need not all but one decide again. It is about speed
// alone: what keeps papers right are their versions.
type turns struct {
	seed  maphash.Seed
	slots []chan struct{}
}

func newTurns() turns {
	t := turns{seed: maphash.MakeSeed(), slots: make([]chan struct{}, stripes)}
	for i := range t.slots {
		t.slots[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for its turn, and returns what ends it.
func (t turns) take(ctx context.Context, name string) (end func(), err error) {
	slot := t.slots[maphash.String(t.seed, name)%uint64(len(t.slots))]
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
