package verifytest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// long is added to the settle time for the most lenient judgement: the read then certainly
// shows everything that was ever applied.
const long = time.Hour

// claim is an intent to compare with the state of the destination.
type claim struct {
	what     string // the form within the scenario, "" for the only one
	declared intent.WriteIntent
	before   *connectors.Observation
	// was is the store's state before the write, for collateral changes.
	was []connectors.Record
	// wrong says why the state is wrong where the store under the key alone does not show it.
	// Default: the store must show it.
	wrong string
	// least is how many records the read must show before it is judged, where some of them are
	// not under the key.
	least int
	// once accepts the first read, which is known to show an old state.
	once bool
	// unsent: nothing was sent yet; the read is judged as a pre-state.
	unsent bool
}

// refuse checks a claim against a wrong state: it must not be accepted.
func (b *bench) refuse(c claim) {
	b.Helper()
	why := c.wrong
	if why == "" {
		why = b.wrong(c)
	}
	if why == "" {
		b.unseeded(fmt.Errorf("%s: the destination's own store is as declared", c.what))
		return
	}
	o, since := b.observe(c)
	if c.once && b.likeStore(c.declared, o) {
		b.unseeded(fmt.Errorf("%s: the read shows the present", c.what))
		return
	}
	got := ""
	for _, since := range []time.Duration{since, b.settled()} {
		j := b.judge(c, o, since)
		got = j.Verdict.String()
		if b.accepts(c, j) {
			b.report.accepted = append(b.report.accepted, fmt.Sprintf("%s: %s: accepted as %q (%s), and it is wrong: %s; the read shows %s",
				b.scenario, c.what, got, j.Reason, why, shown(o)))
			break
		}
	}
	b.report.tally.Wrong[b.scenario.state]++
	if b.report.verdicts[b.scenario.state] == nil {
		b.report.verdicts[b.scenario.state] = map[string]int{}
	}
	b.report.verdicts[b.scenario.state][got]++
}

// accept checks a claim against a right state: it must be verified, where anything can be.
func (b *bench) accept(c claim) {
	b.Helper()
	o, _ := b.observe(c)
	j := b.judge(c, o, b.settled())
	_, settles := b.f.Profile.Settle.Declared()
	right := j.Verdict == verify.Verified
	switch {
	case c.unsent: // nothing may block the send
		right = b.accepts(c, j) && !j.Conflict
	case j.Verdict == verify.Indeterminate: // it cannot be known
		right = o.Strength == connectors.Weak && !settles
	}
	if !right {
		b.report.refused = append(b.report.refused, fmt.Sprintf("%s: %s: called %q (%s, %+v), and it is right; the read shows %s",
			b.scenario, c.what, j.Verdict, j.Reason, j.Mismatches, shown(o)))
	}
	b.report.tally.Legitimate++
}

// observe reads until the read shows what is there, and returns how long ago that read began.
func (b *bench) observe(c claim) (connectors.Observation, time.Duration) {
	b.Helper()
	began := time.Now()
	if c.once {
		o, err := verify.Read(b.Context(), b.f.Connector, b.f.Profile, query(c.declared))
		if err != nil {
			b.Fatalf("read: %v; nothing was wrong but its age", err)
		}
		return o, time.Since(began)
	}
	var o connectors.Observation
	if !b.until(func() bool {
		o = b.shows(c.declared)
		return len(o.Records) >= c.least
	}) {
		b.Fatalf("after %v the read finds %d records, want %d", b.suite.Patience, len(o.Records), c.least)
	}
	return o, o.At.Sub(began)
}

// settled is a time after a send at which any read shows all of it.
func (b *bench) settled() time.Duration {
	settle, _ := b.f.Profile.Settle.Declared()
	return settle + long
}

func (b *bench) judge(c claim, o connectors.Observation, since time.Duration) verify.Judgement {
	k := verify.Case{Intent: c.declared, Profile: b.f.Profile, Stamp: c.declared.Stamp(), Before: c.before, Seen: o, Since: since}
	if c.unsent {
		k.Before = nil
		return b.verifier.before(k)
	}
	return b.verifier.judge(k)
}

// accepts reports whether a judgement lets the write pass: as done, or, before the send, as not
// blocked.
func (b *bench) accepts(c claim, j verify.Judgement) bool {
	if c.unsent {
		return j.Verdict == verify.Verified || j.Verdict == verify.Vacuous || j.Verdict == verify.Indeterminate
	}
	return j.Verdict == verify.Verified || j.Verdict == verify.Vacuous
}

// wrong returns why the store under the key is not as declared, "" when it is. It shares no
// code with package verify.
func (b *bench) wrong(c claim) string {
	stored, want := b.f.Records(c.declared.Key), c.declared.Want()
	if c.declared.Write == intent.Delete {
		want = 0
	}
	if len(stored) != want {
		return fmt.Sprintf("%d records are under the key, %d declared", len(stored), want)
	}
	for _, r := range stored {
		for _, wanted := range []intent.Fields{c.declared.Key, c.declared.Expect} {
			if odd := b.f.Differing(wanted, r.Fields); len(odd) > 0 {
				return fmt.Sprintf("the fields %q are not as declared", odd)
			}
		}
		for _, path := range c.declared.Absent {
			if _, there := intent.Lookup(r.Fields, path); there {
				return fmt.Sprintf("the field %q should not be there", path)
			}
		}
		for _, was := range c.was {
			if places := b.f.Changed(c.declared, was.Fields, r.Fields); was.Ref == r.Ref && len(places) > 0 {
				return fmt.Sprintf("the fields %q have changed, without an intent", places)
			}
		}
	}
	return ""
}

// shown describes a read's result for the test log.
func shown(o connectors.Observation) string {
	var all []string
	for _, r := range o.Records {
		all = append(all, fmt.Sprintf("%s (stamp %q) %v", r.Ref, r.Stamp, r.Fields))
	}
	return fmt.Sprintf("%d records %q", len(o.Records), all)
}

// copyOf returns an intent whose maps can be changed.
func copyOf(in intent.WriteIntent) intent.WriteIntent {
	in.Key, in.Expect, in.Payload = maps.Clone(in.Key), maps.Clone(in.Expect), maps.Clone(in.Payload)
	in.Absent, in.Ignore = slices.Clone(in.Absent), slices.Clone(in.Ignore)
	in.Compare = maps.Clone(in.Compare)
	return in
}

// without returns an intent that does not expect a field.
func without(in intent.WriteIntent, name string) intent.WriteIntent {
	in = copyOf(in)
	delete(in.Expect, name)
	return in
}

// saying returns an intent that expects another value of a field.
func saying(in intent.WriteIntent, name string, value any) intent.WriteIntent {
	in = copyOf(in)
	in.Expect[name] = value
	return in
}

// free lists the expected fields of an intent that are not in its key, in order.
func free(in intent.WriteIntent) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(in.Expect)), func(name string) bool {
		_, inKey := in.Key[name]
		return inKey
	})
}
