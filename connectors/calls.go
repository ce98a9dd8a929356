package connectors

import (
	"context"
	"sync/atomic"
)

type callsKey struct{}

// CountCalls returns a context that counts the calls to destinations which are made in it.
func CountCalls(ctx context.Context) context.Context {
	return context.WithValue(ctx, callsKey{}, new(atomic.Int64))
}

// Called counts one call: a request, a query, a call of a tool, whatever a limit of the destination
// counts. Connectors that make several calls for one read call it before each. A read for which it
// is not called counts as one call.
func Called(ctx context.Context) {
	if n, ok := ctx.Value(callsKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
}

// Calls returns how many calls were counted in a context of [CountCalls] so far.
func Calls(ctx context.Context) int {
	if n, ok := ctx.Value(callsKey{}).(*atomic.Int64); ok {
		return int(n.Load())
	}
	return 0
}
