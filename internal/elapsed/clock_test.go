package elapsed

import (
	"testing"
	"time"
)

// A ledger's clock that jitters by more than a call lasts (two hosts, or times cut to a
// millisecond) has steps without end: few are kept, and time is never believed to have
// passed that has not.
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
	if d := c.AtMost(began, at, at); d > at.Sub(began) {
		t.Errorf("after %s it has counted %s", at.Sub(began), d)
	}
	if d := c.AtLeast(began, at); d < at.Sub(began) {
		t.Errorf("after %s it has counted %s at least", at.Sub(began), d)
	}
	if len(c.steps) > maxSteps {
		t.Errorf("%d steps are kept, want at most %d", len(c.steps), maxSteps)
	}
}
