package guards

import (
	"sync"
	"time"
)

// clockKeeps is how long one reading of the ledger's clock is refined by others before it is
// dropped: by then clocks have drifted apart by a millisecond or so.
const clockKeeps = time.Minute

// clock estimates the ledger's time. A reading was made between its request and its response;
// several readings narrow that interval. Use the earliest possible time for what must not happen
// too soon, the latest for what must not last too long.
type clock struct {
	mu     sync.Mutex
	base   time.Time     // on this process's steady clock
	lo, hi time.Duration // the ledger is ahead of base by this much
	since  time.Time     // of the current estimate; zero: none yet
}

func newClock() *clock { return &clock{base: time.Now()} }

// local is a time of this process on a monotonic clock.
func (c *clock) local(t time.Time) time.Time { return c.base.Round(0).Add(t.Sub(c.base)) }

// observe adds a reading that was requested and returned at the given times.
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

// early and late are the earliest and the latest possible current time of the ledger's clock.
func (c *clock) early() time.Time { return c.read(func() time.Duration { return c.lo }) }
func (c *clock) late() time.Time  { return c.read(func() time.Duration { return c.hi }) }

func (c *clock) read(offset func() time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local(time.Now()).Add(offset())
}
