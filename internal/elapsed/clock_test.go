package elapsed

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A ledger's clock that jitters by more than a call lasts (two hosts, or times cut to a
// millisecond) has steps without end: few are kept, and time is never believed to have
// passed that has not, nor does time stand still.
func TestStepsAreBounded(t *testing.T) {
	var c Clock
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := began
	for n := range 10_000 {
		at = at.Add(10 * time.Millisecond)
		now := at
		if n%2 == 1 {
			now = now.Add(5 * time.Millisecond)
		}
		c.Read(now, at.Add(-time.Millisecond), at)
	}
	const jitter = 10 * time.Millisecond // with twice what a call lasts
	if d := c.AtMost(began, at, at); d > at.Sub(began) || d < at.Sub(began)-jitter {
		t.Errorf("after %s it has counted %s", at.Sub(began), d)
	}
	if d := c.AtLeast(began, at); d < at.Sub(began) || d > at.Sub(began)+jitter {
		t.Errorf("after %s it has counted %s at least", at.Sub(began), d)
	}
	if len(c.steps) > maxSteps {
		t.Errorf("%d steps are kept, want at most %d", len(c.steps), maxSteps)
	}
}

// A time that was read before the clock stepped back is as far ahead as the clock was then; and a
// moment that the clock showed before it stepped back was longer ago than it seems.
func TestAStepForwardAndBack(t *testing.T) {
	var c Clock
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	read := func(after, ahead time.Duration) (now time.Time) {
		at := began.Add(after)
		c.Read(at.Add(ahead), at, at)
		return at.Add(ahead)
	}
	read(0, 0)
	ahead := read(time.Minute, time.Hour)
	read(2*time.Minute, 0)
	if d := c.AtMost(began.Add(time.Second), ahead, began.Add(2*time.Minute)); d > 2*time.Minute {
		t.Errorf("it has counted %s of two minutes", d)
	}
	if d := c.AtLeast(ahead, began.Add(2*time.Minute)); d < time.Minute {
		t.Errorf("it has counted %s of a minute", d)
	}
}

// Whatever the order in which a clock steps, a moment is stamped and a time is read: no more time
// has passed for sure, and no less can have passed, than has.
func TestStepsInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for trial := range 20_000 {
		var c Clock
		var at []time.Time                // of this process
		var ahead, clocks []time.Duration // of the ledger at those times
		for range 1 + random.IntN(4) {
			clocks = append(clocks, time.Duration(random.IntN(100))*time.Second)
		}
		n := 2 + random.IntN(12)
		if trial%100 == 0 {
			n += 2 * maxSteps
		}
		for i := range n {
			at = append(at, began.Add(time.Duration(i)*10*time.Second))
			ahead = append(ahead, clocks[random.IntN(len(clocks))])
			c.Read(at[i].Add(ahead[i]), at[i], at[i])
		}
		stamped := random.IntN(n)
		read := stamped + random.IntN(n-stamped)
		moment, now := at[stamped].Add(ahead[stamped]), at[n-1].Add(ahead[read])
		passed := at[n-1].Sub(at[stamped])
		if d := c.AtMost(moment, now, at[n-1]); d > passed {
			t.Fatalf("clocks ahead by %v, stamped at %d, read at %d: it has counted %s of %s", ahead, stamped, read, d, passed)
		}
		if d := c.AtLeast(moment, now); d < passed {
			t.Fatalf("clocks ahead by %v, stamped at %d, read at %d: it has counted %s of %s at least", ahead, stamped, read, d, passed)
		}
	}
}
