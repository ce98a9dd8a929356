package gate

import (
	"context"
	"hash/maphash"
)

// stripes is how many steps of a process can be gated at once.
const stripes = 256

// keyedMutex is a keyed mutex: callers within a process that want the same document run one after
// another, so that they do not all have to decide again. It is only for speed. Document versions
// give correctness.
type keyedMutex struct {
	seed  maphash.Seed
	slots []chan struct{}
}

func newKeyedMutex() keyedMutex {
	t := keyedMutex{seed: maphash.MakeSeed(), slots: make([]chan struct{}, stripes)}
	for i := range t.slots {
		t.slots[i] = make(chan struct{}, 1)
	}
	return t
}

// take acquires the mutex for name, and returns its release.
func (t keyedMutex) take(ctx context.Context, name string) (end func(), err error) {
	slot := t.slots[maphash.String(t.seed, name)%uint64(len(t.slots))]
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
