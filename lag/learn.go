package lag

import (
	"time"

	"github.com/readback-go/readback/engine"
)

// learned is what is known about one path.
type learned struct {
	path    engine.LagPath
	earlier sketch     // what the ledger has, and what has left the window
	fresh   sketch     // what has left the window and the ledger does not have
	recent  []interval // the window, oldest first
	// epoch counts how often all was forgotten. What was learned in an earlier
	// one is not added to a later one.
	epoch int64
	saved int64 // the epoch in the ledger

	plan  *plan
	since int // writes seen since the plan was made

	looks       int     // first looks placed since one was made early on purpose
	every       int     // how many pass until the next
	far         bool    // what the latest of those was: at half the time
	early, late float64 // surprises in a row, fading
}

func newLearned(path engine.LagPath) *learned {
	return &learned{path: path, earlier: newSketch(), fresh: newSketch(), every: probeFirst}
}

// trusted reports whether enough was seen to place looks by it.
func (l *learned) trusted() bool {
	return float64(len(l.recent))+l.earlier.GetCount() >= trust
}

// planned is the plan for what is known now, give or take a few writes.
func (l *learned) planned() *plan {
	if l.plan == nil || l.since > len(l.recent)/fitEvery {
		l.plan, l.since = newPlan(fit(l.earlier.weights(anchor), l.recent)), 0
	}
	return l.plan
}

// first is the moment of the first look at a write, now being the time since
// its send. Now and then it is earlier than would be best, or what is known
// could never come down: where half of the writes should be visible, which
// halves what is still uncertain, or, every other time, at half the time, where
// hardly any should.
func (l *learned) first(now time.Duration) time.Duration {
	at := l.planned().first(now)
	if at <= floor {
		return at
	}
	if l.looks++; l.looks < l.every && l.early == 0 {
		return at
	}
	l.looks, l.every = 0, min(2*l.every, probeMost)
	if l.early == 0 { // else it is asked again what surprised
		l.far = !l.far
	}
	if l.far {
		return max(now, at/2)
	}
	return max(now, min(l.plan.median, at-at/probeClose))
}

// learn takes in one write and reports whether the lags have stopped being
// like those before, in which case all but this one is forgotten.
func (l *learned) learn(n interval) (forgot bool) {
	if l.trusted() && l.surprised(l.planned().fitted, n) {
		l.forget()
		forgot = true
	}
	if len(l.recent) == window {
		l.leave(l.recent[0])
		l.recent = l.recent[1:]
	}
	l.recent = append(l.recent, n)
	l.since++
	return forgot
}

// leave keeps of a write that has left the window how it was fitted.
func (l *learned) leave(n interval) {
	if n.saved {
		return // it is part of what the ledger has
	}
	f := l.planned().fitted
	f.place(n, l.earlier)
	f.place(n, l.fresh)
	if l.earlier.GetCount() > maxWeight {
		l.earlier.fade()
	}
}

// surprised judges one write by those before it, the latest surprises among
// them left out. An early look that succeeds is worth more of them.
func (l *learned) surprised(f *fitted, n interval) bool {
	seen, missed := f.below(n.seen), f.below(n.missed)
	if n.missed > 0 && 1-missed < surprisingLate+l.late/f.count() {
		l.late++
	} else {
		l.late /= 2
	}
	switch {
	case n.missed == 0 && n.seen > floor && seen < surprising+l.early/f.count():
		l.early++
	case n.missed > 0 || seen <= likely: // looked early in vain, or it was to be expected
		l.early = 0
	}
	if n.missed == 0 && seen <= likely {
		l.every = max(l.every/4, probeFirst)
	}
	return l.late >= tooLate || l.early >= tooEarly
}

// forget begins anew.
func (l *learned) forget() {
	fresh := newLearned(l.path)
	fresh.epoch, fresh.saved = l.epoch+1, l.saved
	*l = *fresh
}
