package mcpapi

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pulse is the interval of progress notifications, for a client that asked for them.
const pulse = 5 * time.Second

// Pulse sends progress notifications to a client that asked for them, until the returned
// function is called.
func Pulse(ctx context.Context, req *mcp.CallToolRequest, whole time.Duration, message string) func() {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		begun := time.Now()
		tick := time.NewTicker(pulse)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// A client that misses them gets the result, or asks for the outcome.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Message: message, Progress: time.Since(begun).Seconds(), Total: whole.Seconds(),
			})
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
