package engine

import (
	"sync"
	"time"

	"github.com/readback-go/readback/internal/elapsed"
	"github.com/readback-go/readback/ledger"
)

// clock is what this process counts itself beside the ledger's clock.
type clock struct {
	mu      sync.Mutex
	counted elapsed.Clock
}

// hear is told what the ledger's clock showed in a call that began at asked and has
// just ended.
func (c *clock) hear(now, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted.Read(now, asked, time.Now())
}

// byClock is the time since the ledger's clock showed a moment, as that clock has it,
// without the steps forward that this process knows of.
func (c *clock) byClock(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.ByClock(moment, now)
}

// sinceSend is how much time has passed for sure since the last send of a write
// ended.
func (c *clock) sinceSend(r ledger.Record, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.SinceSend(r, now, time.Now())
}

// atLeast is how much time can have passed since the ledger's clock showed a moment.
func (c *clock) atLeast(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.AtLeast(moment, now)
}
