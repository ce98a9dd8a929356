package ledger

import (
	"context"
	"sync"
)

// Bell is the [Waker] of one process: drivers ring it when a write that they
// stored [Wakes]. The zero value works.
type Bell struct {
	mu   sync.Mutex
	ears map[chan struct{}]bool
}

// Ring wakes everybody who listens. It never waits.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ear := range b.ears {
		select {
		case ear <- struct{}{}:
		default: // it is awake, and has not looked yet
		}
	}
}

// Woken implements [Waker].
func (b *Bell) Woken(ctx context.Context) <-chan struct{} {
	ear := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ears == nil {
		b.ears = make(map[chan struct{}]bool)
	}
	b.ears[ear] = true
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.ears, ear)
	})
	return ear
}

// Wakes reports whether a record, as it was just stored, is work that anybody
// may take at once.
func Wakes(r Record) bool {
	return r.Owner == "" && r.Behind == "" && !r.Due.IsZero() && !r.Due.After(r.Now)
}
