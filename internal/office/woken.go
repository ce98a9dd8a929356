package office

import (
	"context"
	"time"

	"github.com/readback-go/readback/ledger"
)

// glance is how often whoever follows looks by itself: not every ledger tells
// this process what another one did, and a page a second late is no harm.
const glance = time.Second

// Woken returns a channel that gets a value when something may have changed, and
// now and then by itself, until ctx ends.
func (o *Office) Woken(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	var rung <-chan struct{}
	if h, ok := o.parts.Ledger.(ledger.Herald); ok {
		rung = h.Told(ctx)
	}
	go func() {
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-rung:
				if !open {
					rung = nil
				}
			case <-tick.C:
			}
			select {
			case out <- struct{}{}:
			default: // it has not looked since the last one
			}
		}
	}()
	return out
}
