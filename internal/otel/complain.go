package otel

import (
	"log/slog"
	"sync"
	"time"
)

// complainEvery is how often the log hears of trouble at most: a collector that
// is down fails every few seconds.
const complainEvery = time.Minute

// complaints go to the log, once in a while at most.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last time.Time
	kept int // not said since
}

// say logs a message, unless one was logged just now. A log that blocks holds up at most the
// caller that logs.
func (c *complaints) say(what string, args ...any) {
	kept, mine := c.allow()
	if mine {
		c.log.Warn(what, append(args, "suppressed", kept)...)
	}
}

// allow reports whether it is time to say something, and how often it was not.
func (c *complaints) allow() (kept int, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.last.IsZero() && now.Sub(c.last) < complainEvery {
		c.kept++
		return 0, false
	}
	kept, c.last, c.kept = c.kept, now, 0
	return kept, true
}

// Handle implements the API's error handler: it gets what the SDK itself cannot
// do.
func (c *complaints) Handle(err error) { c.say("telemetry", "error", err.Error()) }
