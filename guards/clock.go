package guards

import (
	"sync"
	"time"
)

// clock estimates the ledger's time. A reading of it was made at some moment
// between asking and hearing; several readings narrow that down. What must not
// come too soon counts on the earliest it can be, what must not last too long
// on the latest.
type clock struct {
	mu     sync.Mutex
	base   time.Time     // on this process's steady clock
	lo, hi time.Duration // the ledger is ahead of base by this much
	since  time.Time     // of the present estimate; zero: none yet
}

func newClock() *clock { return &clock{base: time.Now()} }

// local is a time of this process on a clock that nobody sets.
func (c *clock) local(t time.Time) time.Time { return c.base.Round(0).Add(t.Sub(c.base)) }

// observe takes a reading that was asked for and came back at the given times.
func (c *clock) observe(asked, got, reading time.Time) {
	if reading.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lo, hi := reading.Sub(c.local(got)), reading.Sub(c.local(asked))
	if c.since.IsZero() || got.Sub(c.since) > clockKeeps || lo > c.hi || hi < c.lo {
		c.lo, c.hi, c.since = lo, hi, got
		return
	}
	c.lo, c.hi = max(c.lo, lo), min(c.hi, hi)
}

// early and late are the earliest and the latest that the ledger's clock can
// show now.
func (c *clock) early() time.Time { return c.read(func() time.Duration { return c.lo }) }
func (c *clock) late() time.Time  { return c.read(func() time.Duration { return c.hi }) }

func (c *clock) read(offset func() time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local(time.Now()).Add(offset())
}
