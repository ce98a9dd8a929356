package eval

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// judgeEffect weighs the claim that a write is there as declared: the target is as
// all of its writes together declare.
func (t *target) judgeEffect(m member) judged {
	claimed := "claimed " + m.status + ": "
	if !t.countHolds() {
		return judged{known: true, says: claimed + t.counted()}
	}
	if t.most == 0 || len(t.seen.records) == 0 {
		return judged{ok: true, known: true}
	}
	if t.unseen() {
		return judged{says: "the export shows none of its fields"}
	}
	found, known := t.fit()
	if len(found) > 0 {
		return judged{known: true, says: claimed + t.differ(found)}
	}
	return judged{ok: known, known: known, says: "a write that names its fields is not settled, and the record is as neither says"}
}

// fit lists how the records differ from the declaration. If it is unknown whether a write was
// made, they may be as with it or as without; known is false if they are neither, in fields that
// it names.
func (t *target) fit() (found []verify.Mismatch, known bool) {
	if !t.unsure {
		return t.differing(t.intent), true
	}
	sure := t.intent
	loose := func(path string) bool { return hidden(path, t.loose) }
	sure.Ignore = slices.Concat(sure.Ignore, t.loose)
	sure.Absent = slices.DeleteFunc(slices.Clone(sure.Absent), loose)
	if found := t.differing(sure); len(found) > 0 {
		return found, true
	}
	return nil, len(t.differing(t.intent)) == 0 || len(t.differing(t.either)) == 0
}

// differing lists how the records of a target differ from what is wanted.
func (t *target) differing(want intent.WriteIntent) []verify.Mismatch {
	var all []verify.Mismatch
	for _, r := range t.seen.records {
		all = append(all, verify.Diff(want, t.profile.Compare, r.Fields)...)
	}
	return all
}

// stampedWith lists the records that have a stamp.
func (t *target) stampedWith(stamp string) []connectors.Record {
	var all []connectors.Record
	for _, r := range t.seen.records {
		if stamp != "" && r.Stamp == stamp {
			all = append(all, r)
		}
	}
	return all
}

// judged is one claim against the world.
type judged struct {
	ok, known   bool // the claim is true; it could be decided
	over, abort bool // a stop, or a surrender, that was not needed
	says        string
}

// judge weighs one claim. Only what was read decides; what was claimed never does.
func (t *target) judge(m member) judged {
	if why := t.withheld(); why != "" {
		return judged{says: why}
	}
	switch statuses[m.status] {
	case claimsEffect:
		return t.judgeEffect(m)
	case claimsNothing, claimsAbort:
		return t.judgeNothing(m)
	case claimsHalt:
		own, known := t.ownEffect(m)
		return judged{ok: true, known: known, over: own, says: "claimed " + m.status + ", and the world is exactly as declared"}
	}
	return judged{says: "the claim " + m.status + " says nothing that could be wrong"}
}

// judgeNothing weighs the claim that a write left nothing.
func (t *target) judgeNothing(m member) judged {
	there, known := t.leftSomething(m)
	switch {
	case !known:
		return judged{says: "whether this write left something is unknown: its records do not show who changed them"}
	case there:
		return judged{known: true, says: "claimed " + m.status + ", and its effect is there"}
	}
	abort := statuses[m.status] == claimsAbort && t.repeatable(m.intent.Write)
	return judged{ok: true, known: true, abort: abort, says: "claimed " + m.status + ", it is not there, and to send it again would be harmless"}
}

// leftSomething reports whether an effect of a write is there.
func (t *target) leftSomething(m member) (there, known bool) {
	create := m.intent.Write == intent.Create
	switch {
	case m.intent.Write == intent.Delete: // it leaves no stamp
		gone := len(t.seen.records) < max(t.least, 1)
		return gone, !gone || t.based && t.least > 0
	case m.stamp != "" && (create && t.profile.Stamped || t.profile.StampsUpdates):
		return len(t.stampedWith(m.stamp)) > 0, true
	case create:
		// Without stamps: more records than the other writes explain are its.
		explained := t.most
		if len(t.members) == 1 {
			explained = 0
		}
		return len(t.seen.records) > explained, true
	}
	return false, false
}

// ownEffect reports whether the world is exactly as one write declares.
func (t *target) ownEffect(m member) (exact, known bool) {
	records := t.seen.records
	if m.intent.Write == intent.Create && t.profile.Stamped && m.stamp != "" {
		if len(t.members) > 1 {
			records = t.stampedWith(m.stamp)
		} else if len(records) != len(t.stampedWith(m.stamp)) {
			return false, true
		}
	}
	if m.intent.Write == intent.Delete {
		return len(records) == 0, true
	}
	if len(records) != m.intent.Want() {
		return false, true
	}
	for _, r := range records {
		if len(verify.Diff(m.intent, t.profile.Compare, r.Fields)) > 0 {
			return false, true
		}
	}
	return true, true
}

// repeatable reports whether a write that is not there could have been sent again
// without harm: the destination deduplicates it, it meets a unique key, or its
// absence can be shown.
func (t *target) repeatable(w intent.WriteType) bool {
	_, horizon := t.profile.Horizon.Declared()
	shown := horizon && t.seen.conclusive && !slices.Contains(t.profile.Irreversible, w)
	return slices.Contains(t.profile.Unique, w) || t.profile.NativeWindow[w] > 0 || shown
}

// verify: every claim of an effect, or of none, is true now.
func (w *weighing) verify(t *target) {
	c := &w.verified
	for _, m := range t.members {
		if m.status == "" {
			continue
		}
		w.claimed = true
		j := t.judge(m)
		n := t.named(j.says)
		n.Name, n.Declared = t.who(m), m.line.where()
		w.claims.add(j, n)
		if statuses[m.status] == claimsHalt || statuses[m.status] == claimsMaybe {
			continue // such an outcome makes no claim that could be false
		}
		c.Read++
		switch {
		case !j.known:
			c.unknown(n)
		default:
			c.rests(string(t.seen.strength), "")
			if !j.ok {
				c.wrong(n)
			}
		}
	}
}

// settleClaims decides the check verified.
func (w *weighing) settleClaims() (Check, *Claims) {
	c := w.verified
	if !w.claimed && len(w.b.strays) == 0 {
		c.Result, c.Why, c.Strength = NotChecked, "no outcome was claimed; want outcomes: a file of them, or an export of writes", "none"
		return c, nil
	}
	c.settle("claimed outcomes are true", "claimed outcomes are false: silent wrong effects")
	all := &w.claims
	for _, s := range []*Share{&all.SilentWrong, &all.OverHalting, &all.FalseAborts} {
		s.Of = all.Judged
		s.Low, s.High = wilson(s.Cases, s.Of, defaultConfidence)
	}
	return c, all
}

func (c *Claims) add(j judged, n Named) {
	if !j.known {
		c.Unjudged++
		return
	}
	c.Judged++
	switch {
	case !j.ok:
		c.SilentWrong.add(n)
	case j.over:
		c.OverHalting.add(n)
	case j.abort:
		c.FalseAborts.add(n)
	}
}

func (s *Share) add(n Named) {
	if s.Cases++; len(s.Named) < maxNamed {
		s.Named = append(s.Named, n.clipped())
	}
}
