package lag

import (
	"time"

	"github.com/readback-go/readback/engine"
)

// learned is what is known about one path.
type learned struct {
	path  engine.LagPath
	known sketch // all of it
	fresh sketch // what the ledger does not have yet
	// epoch counts how often all was forgotten. What was learned in an earlier
	// one is not added to a later one.
	epoch int64
	saved int64 // the epoch in the ledger

	plan  *plan
	since int // writes seen since the plan was made

	looks       int // first looks placed since one was made early on purpose
	every       int // how many pass until the next
	half        bool
	early, late float64 // surprises in a row, fading
}

func newLearned(path engine.LagPath) *learned {
	return &learned{path: path, known: newSketch(), fresh: newSketch(), every: probeFirst}
}

// trusted reports whether enough was seen to place looks by it.
func (l *learned) trusted() bool { return l.known.GetCount() >= trust }

// planned is the plan for what is known now, give or take a few writes.
func (l *learned) planned() *plan {
	if l.plan == nil || float64(l.since) > 1+l.known.GetCount()/64 {
		l.plan, l.since = newPlan(l.known.bins()), 0
	}
	return l.plan
}

// first is the moment of the first look at a write, now being the time since
// its send.
func (l *learned) first(now time.Duration) (time.Duration, bool) {
	at, ok := l.planned().first(now)
	if !ok || at <= floor {
		return at, ok
	}
	if l.looks++; l.looks < l.every && l.early == 0 {
		return at, ok
	}
	l.looks = 0
	if l.half = !l.half; l.half {
		return max(now, at/2), ok
	}
	return max(now, at-at/10), ok
}

// seen learns from one write and reports whether the lags have stopped being
// like those before, in which case all but this one is forgotten.
func (l *learned) seen(missed, seen time.Duration) (forgot bool) {
	all := l.known.bins()
	if l.trusted() && l.surprised(all, missed, seen) {
		l.forget()
		all, forgot = nil, true
	}
	place(all, missed, seen, func(seconds, weight float64) {
		l.known.add(seconds, weight)
		l.fresh.add(seconds, weight)
	})
	if l.known.GetCount() > maxWeight {
		l.known.fade()
	}
	l.since++
	return forgot
}

// surprised judges one write by those before it.
func (l *learned) surprised(all []bin, missed, seen time.Duration) bool {
	switch {
	case missed > 0 && 1-below(all, missed) < surprisingLate:
		l.late++
	default:
		l.late /= 2
	}
	switch {
	case missed <= 0 && seen > 0 && below(all, seen) < surprising:
		l.early++
	case missed > 0 && below(all, missed) < surprising: // looked early, and in vain
		l.early, l.every = 0, min(2*l.every, probeMost)
	}
	return l.late >= tooLate || l.early >= tooEarly
}

// forget begins anew.
func (l *learned) forget() {
	fresh := newLearned(l.path)
	fresh.epoch, fresh.saved = l.epoch+1, l.saved
	*l = *fresh
}
