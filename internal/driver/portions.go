package driver

import (
	"context"
	"time"
)

// maxRest is the longest pause between two portions of a long job.
const maxRest = 250 * time.Millisecond

// InPortions does one portion of a long job after another until none is left, and pauses for as
// long as each took, so that callers without a place in a queue get at the ledger. When ctx ends,
// it stops between two portions.
func InPortions(ctx context.Context, next func() (more bool, err error)) error {
	for {
		began := time.Now()
		more, err := next()
		if err != nil || !more {
			return err
		}
		rest := time.NewTimer(min(time.Since(began), maxRest))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return ctx.Err()
		}
	}
}
