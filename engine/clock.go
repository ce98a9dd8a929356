package engine

import (
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

// clock relates the ledger's clock, which can step, to the time that this process
// counts itself. Absence is concluded from time that has passed: a step forward
// must not count for it. A process knows of steps since it first heard the
// ledger's clock, and believes in no time before that.
//
// Time that the computer spends suspended is not counted: the ledger's clock then
// seems to have stepped.
type clock struct {
	mu    sync.Mutex
	began time.Time // when this process first heard the ledger's clock
	heard time.Time // what it heard
	// least and most are how far the ledger's clock can be ahead of this process's
	// count since began.
	least, most time.Duration
	steps       []step
}

// step is a difference between the two clocks that arose before the ledger's clock
// showed until.
type step struct {
	until time.Time
	ahead time.Duration // negative: the ledger's clock went back, or stood still
}

// hear is told what the ledger's clock showed in a call that began at asked and has
// just ended. A record that no ledger returned says nothing.
func (c *clock) hear(now, asked time.Time) {
	if now.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := time.Now()
	if c.began.IsZero() {
		c.began, c.heard, c.most = answered, now, answered.Sub(asked)
		return
	}
	passed := now.Sub(c.heard)
	least, most := passed-answered.Sub(c.began), passed-asked.Sub(c.began)
	switch {
	case least > c.most:
		c.stepped(step{now, most - c.least})
	case most < c.least:
		c.stepped(step{now, least - c.most})
	default:
		c.least, c.most = max(c.least, least), min(c.most, most)
		return
	}
	c.least, c.most = least, most
}

// stepped keeps a step. The oldest ones become one, which counts for longer than it
// should: that is the cautious side.
func (c *clock) stepped(s step) {
	if n := len(c.steps); n >= clockSteps {
		for i, a := range c.steps[:n-1] {
			if b := c.steps[i+1]; (a.ahead > 0) == (b.ahead > 0) {
				c.steps[i+1].ahead += a.ahead
				c.steps = append(c.steps[:i:i], c.steps[i+1:]...)
				break
			}
		}
	}
	c.steps = append(c.steps, s)
}

// atMost is how much of the time since the ledger's clock showed a moment has
// passed for sure: what this process counted. now is what that clock shows.
func (c *clock) atMost(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.unstepped(moment, now)
	if !moment.After(c.heard) && !c.began.IsZero() {
		d = min(d, time.Since(c.began))
	}
	return max(d, 0)
}

// byClock is the time since the ledger's clock showed a moment, as that clock has it,
// without the steps forward that this process knows of. A day that is over by it alone
// ends no wait for a send that was made a minute ago.
func (c *clock) byClock(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.unstepped(moment, now), 0)
}

func (c *clock) unstepped(moment, now time.Time) time.Duration {
	d := now.Sub(moment)
	for _, s := range c.steps {
		if s.until.After(moment) {
			d -= max(s.ahead, 0)
		}
	}
	return d
}

// sinceSend is how much time has passed for sure since the last send of a write
// ended. A lease that ended by the ledger's clock says nothing about the process
// that held it: where that clock stepped, its send can last for as long as the lease
// was to last by its own count.
func (c *clock) sinceSend(r ledger.Record, now time.Time) time.Duration {
	since := c.atMost(r.LastSend, now)
	if !r.LostSend.IsZero() {
		since = min(since, max(c.atMost(r.LostSend, now)-r.LostFor, 0))
	}
	return since
}

// atLeast is how much time can have passed since the ledger's clock showed a
// moment.
func (c *clock) atLeast(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := now.Sub(moment)
	for _, s := range c.steps {
		if s.until.After(moment) {
			d -= min(s.ahead, 0)
		}
	}
	return d
}
