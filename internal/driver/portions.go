package driver

import (
	"context"
	"time"
)

// maxRest is the longest pause between two portions of a long work.
const maxRest = 250 * time.Millisecond

// InPortions does one portion of a long work after another until there is none, and
// rests as long as each took: whoever has no place in a queue gets at the ledger
// then. It ends with ctx, between two portions.
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
