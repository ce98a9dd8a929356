package service

import (
	"context"
	"time"
)

// glance is how often a follower polls by itself: not every ledger notifies this process
// of another one's changes, and a page may be a second late.
const glance = time.Second

// Woken returns a channel that gets a value when something may have changed, and at
// intervals, until ctx ends.
func (o *Service) Woken(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	changed := o.parts.Ledger.Changed(ctx)
	go func() {
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-changed:
				if !open {
					changed = nil
				}
			case <-tick.C:
			}
			select {
			case out <- struct{}{}:
			default: // the last value is still unread
			}
		}
	}()
	return out
}
