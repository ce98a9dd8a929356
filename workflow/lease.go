package workflow

import (
	"math"
	"time"
)

// lendable reports whether the step may be lent now: nobody has it, it is not
// done, and nothing says that the effect is there or may be.
func (s step) lendable(now time.Time) bool {
	return !s.completed() && !now.Before(s.Lent.Until) && s.Found.lets(s)
}

// lets reports whether what was found lets somebody carry the step out. Nothing
// found says nothing against it.
func (f *found) lets(s step) bool {
	return f == nil || f.Fence != s.Lent.Fence || f.Effect == effectAbsent
}

// lend gives the step to a caller, under the next fence.
func (s step) lend(id, holder string, length time.Duration, now time.Time) step {
	first := s.Lent.First
	if s.Lent.Fence == 0 {
		first = now
	}
	s.Lent = lent{ID: id, Holder: holder, Fence: s.Lent.Fence + 1, First: first, Until: now.Add(length)}
	return s
}

// lease is what a caller is told about it.
func (s step) lease(granted bool) *Lease {
	l := &Lease{LeaseGranted: granted, LeaseID: s.Lent.ID, LeaseHolder: s.Lent.Holder, LeaseExpiresAt: s.Lent.Until}
	if granted {
		l.Fence = s.Lent.Fence
	}
	return l
}

// retryAfter is in how many seconds asking again can help, 0 when it cannot.
func (s step) retryAfter(now time.Time) int {
	switch {
	case s.completed():
		return 0
	case now.Before(s.Lent.Until):
		return seconds(s.Lent.Until.Sub(now))
	case s.Found != nil && s.Found.AskAfter != nil:
		return seconds(s.Found.AskAfter.Sub(now))
	}
	return 0
}

// seconds are whole seconds, at least one, that are not less.
func seconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
