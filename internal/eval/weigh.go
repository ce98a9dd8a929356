package eval

import (
	"slices"

	"github.com/readback-go/readback/connectors"
)

// weighing is what the checks of declared records have come to so far. No target is
// held by it.
type weighing struct {
	b                           *bound
	exactly, expected, verified Check
	claims                      Claims
	claimed                     bool
	effects, reads, masked      int
	// counted are the records of creates, and for which item each counts.
	counted map[digest]uint32
}

func (b *bound) weighing(found func(string, bool, Named)) *weighing {
	w := &weighing{b: b, counted: map[digest]uint32{},
		exactly:  Check{Name: "exactly", About: "as many records under each key as declared"},
		expected: Check{Name: "expected", About: "every expected field as declared"},
		verified: Check{Name: "verified", About: "every outcome that was claimed is still true"}}
	for _, c := range []*Check{&w.exactly, &w.expected, &w.verified} {
		c.onFinding = found
	}
	return w
}

// target weighs one target by what was read of it.
func (w *weighing) target(t *target) {
	asked := w.b.f.checks
	if asked.Exactly {
		w.exact(t)
	}
	if asked.Expected {
		w.expect(t)
	}
	if asked.Verified {
		w.verify(t)
	}
	w.effects += len(t.seen.records)
	w.reads += t.seen.reads
	w.masked += t.masked
}

// tally is what a target that is as declared adds to the counts. Of a million such
// targets the tallies are few.
type tally struct {
	effects, exactly, expected, verified, judged, unjudged, masked int
	claimed                                                        bool
}

// clean reports whether a list that shows all records of a target is enough to find it as
// declared. A list may show fewer fields than a read: only a read can show that a field is
// missing or that something is wrong. The results of an operation with several writes are counted
// from reads. It changes nothing of b.
func (b *bound) clean(t *target, records []connectors.Record) (tally, bool) {
	t.seen = seen{records: records, strength: connectors.Strong, conclusive: true}
	if len(records) > 0 && slices.ContainsFunc(t.members, func(m member) bool { return len(m.intent.Absent) > 0 }) {
		return tally{}, false
	}
	if slices.ContainsFunc(t.members, func(m member) bool { o, _ := b.operation(m); return o != nil }) {
		return tally{}, false
	}
	w := b.weighing(nil)
	w.target(t)
	for _, c := range []Check{w.exactly, w.expected, w.verified} {
		if c.Wrong+c.Unchecked > 0 {
			return tally{}, false
		}
	}
	if c := w.claims; c.SilentWrong.Cases+c.OverHalting.Cases+c.FalseAborts.Cases > 0 {
		return tally{}, false
	}
	return tally{w.effects, w.exactly.Read, w.expected.Read, w.verified.Read, w.claims.Judged, w.claims.Unjudged, w.masked, w.claimed}, true
}

// add adds a tally, and notes the list that it rests on.
func (w *weighing) add(t tally, l connectors.Listing) {
	for _, one := range []struct {
		c       *Check
		checked int
	}{{&w.exactly, t.exactly}, {&w.expected, t.expected}, {&w.verified, t.verified}} {
		if one.checked > 0 {
			one.c.Read += one.checked
			one.c.rests(string(l.Strength), l.Path)
		}
	}
	w.effects += t.effects
	w.claims.Judged += t.judged
	w.claims.Unjudged += t.unjudged
	w.masked += t.masked
	w.claimed = w.claimed || t.claimed
}
