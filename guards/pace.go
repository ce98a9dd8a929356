package guards

import (
	"math"
	"time"

	"github.com/readback-go/readback/connectors"
)

const (
	// permitLife and permitShare bound how long after its time a permit may be used: a second, in
	// which the pre-state of most writes can be read, and a twentieth of the rate's period, so
	// that this costs no more than a twentieth of the rate. batchSpan is how far ahead a worker
	// takes permits. burstShare is the part of the calls that may be made at once.
	permitLife  = time.Second
	batchSpan   = 250 * time.Millisecond
	permitShare = 20
	burstShare  = 20
	// spreadMost bounds the interval between the retry times of the first and the last held
	// write.
	spreadMost = time.Minute
)

// pace is the schedule of a rate's permits: one per interval, a few of them ahead of their time
// (the generic cell rate algorithm). It is chosen so that no window of the rate's period ever
// sees more sends than the rate allows, although permits are used up to life late and burst of
// them early.
type pace struct {
	every time.Duration
	burst int
	life  time.Duration // a permit may be used this long after its time
	batch int           // more are not taken in advance
}

// paceOf is the pace of a rate; the zero pace, which bounds nothing, for none.
//
// Let a permit have the time v, used at u. It is used at most life after v and
// at most (burst-1)*every before it, so the uses in a window of length per have
// times v in one of length per+life+(burst-1)*every, which holds at most
// burst-1 + (per+life)/every of them: as many as calls, by the choice of every.
func paceOf(r connectors.Rate) pace {
	if r.Calls <= 0 || r.Per <= 0 {
		return pace{}
	}
	p := pace{life: min(permitLife, r.Per/permitShare), burst: max(1, r.Calls/burstShare)}
	each := float64(r.Per+p.life) / float64(r.Calls-p.burst+1)
	p.every = max(1, time.Duration(math.Ceil(each)))
	p.batch = max(1, int(min(p.life, batchSpan)/p.every))
	return p
}

// bounded reports whether there is a rate.
func (p pace) bounded() bool { return p.every > 0 }

// deal takes up to n permits that are due soon, when next is the earliest time of the next one.
// It returns when each may be used, the time of the one after them, and how long it is until
// then.
//
// A next that is further ahead than soon permits was written under another rate or a wrong clock,
// and is reset to what is possible.
func (p pace) deal(next, now time.Time, n int, soon time.Duration) (permits []time.Time, after time.Time, wait time.Duration) {
	ahead := time.Duration(p.burst-1) * p.every
	if most := now.Add(enterFor + readFor + ahead + p.every); next.After(most) {
		next = most
	}
	for {
		at := latest(next, now).Add(-ahead)
		if wait = max(at.Sub(now), 0); len(permits) >= n || wait > soon {
			return permits, next, wait
		}
		permits = append(permits, latest(at, now))
		next = latest(next, now).Add(p.every)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// spread staggers the retry times of held writes.
type spread struct{ last time.Time }

// next is when one more may ask again: after at least wait, and step after the one before it.
func (s *spread) next(now time.Time, wait, step time.Duration) time.Duration {
	at := latest(now.Add(wait), s.last.Add(step))
	if most := now.Add(wait + spreadMost); at.After(most) {
		at = most
	}
	s.last = at
	return at.Sub(now)
}
