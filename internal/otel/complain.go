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

// say says it, unless something was said just now. A log that takes nothing more
// holds up at most the one who has its turn to say something.
func (c *complaints) say(what string, args ...any) {
	kept, mine := c.turn()
	if mine {
		c.log.Warn(what, append(args, "not said since the last time", kept)...)
	}
}

// turn reports whether it is time to say something, and how often it was not.
func (c *complaints) turn() (kept int, mine bool) {
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
