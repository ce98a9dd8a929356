// Package pause waits, as long as there is somebody to wait for.
package pause

import (
	"context"
	"time"
)

// For waits for d, and reports whether it was not cut short by the end of ctx.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
