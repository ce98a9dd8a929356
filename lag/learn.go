package lag

import "time"

const (
	// trust is how many writes must have been seen before reads are placed by their lags. Before
	// that the standard pace gives narrow intervals.
	trust = 8
	// window is how many of the latest writes are refitted; older ones keep their last fit.
	window = 64
	// anchor is how many writes earlier knowledge counts for in a fit: enough to keep a shape
	// that later reads do not show, too few to override what they do show.
	anchor = 16
	// fitEvery is the part of the window that may be new before it is fitted again: a fit takes
	// some hundred microseconds.
	fitEvery = 8
	// probeFirst and probeMost bound how many first reads pass until one is made early on
	// purpose. The number doubles each time: new knowledge is uncertain.
	probeFirst, probeMost = 4, 64
	// likely is the least probability of success of a read at the usual moment. A success at a
	// lower probability was early.
	likely = 0.6
	// probeClose is the least fraction by which such a read is early.
	probeClose = 10
	// surprising is the highest probability of a success at an early read that counts as a
	// surprise, surprisingLate that of a failure at a late one.
	surprising, surprisingLate = 0.1, 0.01
	// tooEarly and tooLate are how many surprises in a row make the book forget everything. A
	// surprise of one in a hundred occurs three times in a row once in a million.
	tooEarly, tooLate = 2, 3
)

// learned is what is known about one path.
type learned struct {
	path    Key
	earlier sketch     // what the ledger has, and what has left the window
	fresh   sketch     // what has left the window and is not in the ledger
	recent  []interval // the window, oldest first
	// epoch counts how often everything was forgotten. Knowledge of an earlier epoch is not added
	// to a later one.
	epoch int64
	saved int64 // the epoch in the ledger

	plan  *plan
	since int // writes seen since the plan was made

	reads       int     // first reads placed since one was made early on purpose
	every       int     // how many pass until the next
	far         bool    // the kind of the latest of those: at half the time
	early, late float64 // surprises in a row, fading
}

func newLearned(path Key) *learned {
	return &learned{path: path, earlier: newSketch(), fresh: newSketch(), every: probeFirst}
}

// trusted reports whether enough was seen to place reads by it.
func (l *learned) trusted() bool {
	return float64(len(l.recent))+l.earlier.GetCount() >= trust
}

// planned is the current plan, up to a few writes old.
func (l *learned) planned() *plan {
	if l.plan == nil || l.since > len(l.recent)/fitEvery {
		l.plan, l.since = newPlan(fit(l.earlier.weights(anchor), l.recent)), 0
	}
	return l.plan
}

// first is the moment of the first read of a write, now being the time since its send. Now and
// then it is earlier than optimal, or the learned lag could never decrease: at the time when half
// of the writes should be visible, which halves the remaining uncertainty, or, every other time,
// at half the time, when hardly any should be.
func (l *learned) first(now time.Duration) time.Duration {
	at := l.planned().first(now)
	if at <= floor {
		return at
	}
	if l.reads++; l.reads < l.every && l.early == 0 {
		return at
	}
	l.reads, l.every = 0, min(2*l.every, probeMost)
	if l.early == 0 { // otherwise the surprising moment is tested again
		l.far = !l.far
	}
	if l.far {
		return max(now, at/2)
	}
	return max(now, min(l.plan.median, at-at/probeClose))
}

// learn adds one write and reports whether the lags have changed, in which case all but this one
// is forgotten.
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

// leave keeps the last fit of a write that has left the window.
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

// surprised judges one write by those before it, without the latest surprises. An early read that
// succeeds counts for more of them.
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
	case n.missed > 0 || seen <= likely: // an early read that failed, or an expected success
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
