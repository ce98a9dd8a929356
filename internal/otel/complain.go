package otel

import (
	"log/slog"
	"sync"
	"time"
)

// complaints go to the log, once in a while at most.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last time.Time
	kept int // not said since
}

func (c *complaints) say(what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.last.IsZero() && now.Sub(c.last) < complainEvery {
		c.kept++
		return
	}
	c.log.Warn(what, append(args, "not said since the last time", c.kept)...)
	c.last, c.kept = now, 0
}

// Handle implements the API's error handler: it gets what the SDK itself cannot
// do.
func (c *complaints) Handle(err error) { c.say("telemetry", "error", err.Error()) }
