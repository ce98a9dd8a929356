package gate

import (
	"math"
	"time"
)

// lendable reports whether the step may be leased now: no caller has it, it is not done, and
// nothing indicates that the effect exists or may exist.
func (s step) lendable(now time.Time) bool {
	return !s.completed() && !now.Before(s.Lent.Until) && s.Read.lets(s)
}

// lets reports whether the read result permits carrying the step out. A missing result permits it.
func (f *attemptRead) lets(s step) bool {
	return f == nil || f.Fence != s.Lent.Fence || f.Effect == effectAbsent
}

// lend leases the step to a caller, under the next fence.
func (s step) lend(id, holder string, length time.Duration, now time.Time) step {
	first := s.Lent.First
	if s.Lent.Fence == 0 {
		first = now
	}
	s.Lent = lent{ID: id, Holder: holder, Fence: s.Lent.Fence + 1, First: first, Until: now.Add(length)}
	return s
}

// lease is the caller's view of the lease.
func (s step) lease(granted bool) *Lease {
	l := &Lease{LeaseGranted: granted, LeaseID: s.Lent.ID, LeaseHolder: s.Lent.Holder, LeaseExpiresAt: s.Lent.Until}
	if granted {
		l.Fence = s.Lent.Fence
	}
	return l
}

// retryAfter is the number of seconds after which asking again can help, 0 if it cannot.
func (s step) retryAfter(now time.Time) int {
	switch {
	case s.completed():
		return 0
	case now.Before(s.Lent.Until):
		return seconds(s.Lent.Until.Sub(now))
	case s.Read != nil && s.Read.AskAfter != nil:
		return seconds(s.Read.AskAfter.Sub(now))
	}
	return 0
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
