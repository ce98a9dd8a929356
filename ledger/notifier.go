package ledger

import (
	"context"
	"sync"
)

// Notifier wakes the workers of one process. Drivers ring it when they have stored a write that
// [Wakes]. The zero value is valid.
type Notifier struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]bool
}

// Notify wakes all listeners. It never waits.
func (b *Notifier) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for subscriber := range b.subscribers {
		select {
		case subscriber <- struct{}{}:
		default: // it was woken already and has not read yet
		}
	}
}

// Woken implements [Ledger].
func (b *Notifier) Woken(ctx context.Context) <-chan struct{} {
	subscriber := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscribers == nil {
		b.subscribers = make(map[chan struct{}]bool)
	}
	b.subscribers[subscriber] = true
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers, subscriber)
	})
	return subscriber
}

// Wakes reports whether a record, as it was just stored, is work that any worker may take at
// once.
func Wakes(r Record) bool {
	return r.Owner == "" && r.QueuedBehind == "" && !r.Due.IsZero() && !r.Due.After(r.Now)
}
