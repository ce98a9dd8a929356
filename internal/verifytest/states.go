package verifytest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

// wrongStates collects all tables.
func wrongStates(s connectortest.Harness) []scenario {
	return slices.Concat(countStates(s), valueStates(s), foreignStates(), elsewhereStates(s), oldStates(s), collateralStates(s))
}

// vicious is a scenario for each form of a fault.
func vicious(s connectortest.Harness, state State, v fault.Kind, w intent.WriteType, do func(b *bench, arm func() bool)) []scenario {
	variants := s.Variants[v]
	if len(variants) == 0 {
		variants = []string{""}
	}
	var all []scenario
	for _, variant := range variants {
		name := fmt.Sprintf("%s/%s", v, w)
		if variant != "" {
			name += "/" + variant
		}
		all = append(all, scenario{state, name, []string{string(v)}, func(b *bench) {
			do(b, func() bool { return b.set(v, variant) })
		}})
	}
	return all
}

// countStates are wrong by the number of records: a check of fields alone accepts them all.
func countStates(s connectortest.Harness) []scenario {
	all := []scenario{
		{Duplicate, "sent-twice", nil, sentTwice},
		{Duplicate, "one-too-few", nil, oneTooFew},
		{Duplicate, "stamp-on-another", []string{connectortest.LacksFindStamp}, stampOnAnother},
	}
	return append(all, vicious(s, Duplicate, fault.DuplicateBehindOurBack, intent.Create, func(b *bench, arm func() bool) {
		in, before := b.prepared(intent.Create, 1)
		if !arm() {
			return
		}
		b.must(in, before)
		if !b.until(func() bool { return len(b.f.Records(in.Key)) == 2 }) {
			b.Fatal("harness: there is no second record in the store")
		}
		b.refuse(claim{declared: in, before: before})
	})...)
}

// sentTwice is the double send that readback exists to prevent.
func sentTwice(b *bench) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	if slices.Contains(b.f.Profile.Unique, intent.Create) {
		b.unseeded(errors.New("the profile says that a second create meets the same record"))
		return
	}
	if b.seed(in, in.Stamp()) {
		b.refuse(claim{declared: in, before: before})
	}
}

func oneTooFew(b *bench) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	in.Count = 2
	if _, err := verify.Read(b.Context(), b.f.Connector, b.f.Profile, query(in)); err != nil {
		b.unseeded(fmt.Errorf("the connector does not serve it: %w", err))
		return
	}
	b.refuse(claim{declared: in, before: before})
}

// stampOnAnother: our write is there twice, once under a key that is not ours.
func stampOnAnother(b *bench) {
	if !b.f.Profile.Stamped {
		b.unseeded(errors.New("the profile says that records bear no stamp"))
		return
	}
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	if b.seed(by(in, b.intent(intent.Create, 2)), in.Stamp()) {
		b.refuse(claim{declared: in, before: before, least: 2, wrong: "a record under another key has the same stamp"})
	}
}

// foreignStates are records that another actor made.
func foreignStates() []scenario {
	return []scenario{
		{Foreign, "another-tenants", nil, func(b *bench) {
			foreign(b, func(in intent.WriteIntent) bool { return b.seed(anothers(in), anothers(in).Stamp()) })
		}},
		{Foreign, "without-stamp", []string{connectortest.LacksSeed}, func(b *bench) { foreign(b, b.foreignSeed) }},
		{Foreign, "beside-ours", []string{connectortest.LacksSeed}, besideOurs},
	}
}

// foreignSeed has the fixture create a record, if it can.
func (b *bench) foreignSeed(in intent.WriteIntent) bool {
	b.Helper()
	if b.f.Seed == nil {
		b.Fatal("harness: the fixture has no Seed; give it or declare it in the suite's Lacks")
	}
	there := len(b.f.Records(in.Key))
	b.f.Seed(in)
	return b.grew(in, there)
}

// foreign judges a record that looks like ours: before the send, and after it where the stamp
// can distinguish it.
func foreign(b *bench, seed func(in intent.WriteIntent) bool) {
	in, before := b.prepared(intent.Create, 1)
	if !seed(in) {
		return
	}
	const wrong = "the record is another actor's"
	b.refuse(claim{what: "before the send", declared: in, unsent: true, wrong: wrong})
	if !b.f.Profile.Stamped {
		b.unseeded(errors.New("after the send: records have no stamp, so the author of this one is unknown"))
		return
	}
	b.refuse(claim{what: "after the send", declared: in, before: before, wrong: wrong})
}

func besideOurs(b *bench) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	if slices.Contains(b.f.Profile.Unique, intent.Create) {
		b.unseeded(errors.New("the profile says that the key is unique"))
		return
	}
	if b.foreignSeed(in) {
		b.refuse(claim{declared: in, before: before})
	}
}

// elsewhereStates are right values in wrong places.
func elsewhereStates(s connectortest.Harness) []scenario {
	all := []scenario{
		{Swapped, "values", nil, swappedValues},
		{Swapped, "stamps", nil, swappedStamps},
		{WrongRecord, "another-key", nil, anotherKey},
		{WrongRecord, "another-key-our-stamp", nil, anotherKeyOurStamp},
	}
	for _, w := range []intent.WriteType{intent.Update, intent.Delete} {
		if slices.Contains(s.Writes, w) {
			all = append(all, scenario{WrongRecord, string(w) + "-of-another", nil, func(b *bench) { changeOfAnother(b, w) }})
		}
	}
	return all
}

// withValuesOf returns an intent that writes the values of another one, under its own key.
func withValuesOf(in, other intent.WriteIntent) intent.WriteIntent {
	in = copyOf(in)
	in.Payload = other.Payload
	for name, v := range other.Expect {
		if _, inKey := other.Key[name]; !inKey {
			in.Expect[name] = v
		}
	}
	return in
}

func swappedValues(b *bench) {
	one, none := b.prepared(intent.Create, 1)
	two, nothing := b.prepared(intent.Create, 2)
	if !b.seed(withValuesOf(one, two), one.Stamp()) || !b.seed(withValuesOf(two, one), two.Stamp()) {
		return
	}
	b.refuse(claim{what: "first", declared: one, before: none})
	b.refuse(claim{what: "second", declared: two, before: nothing})
}

func swappedStamps(b *bench) {
	if !b.f.Profile.Stamped {
		b.unseeded(errors.New("the profile says that records bear no stamp"))
		return
	}
	one, none := b.prepared(intent.Create, 1)
	two, nothing := b.prepared(intent.Create, 2)
	if !b.seed(by(two, one), two.Stamp()) || !b.seed(by(one, two), one.Stamp()) {
		return
	}
	const wrong = "the record under the key has the stamp of another write"
	b.refuse(claim{what: "first", declared: one, before: none, wrong: wrong})
	b.refuse(claim{what: "second", declared: two, before: nothing, wrong: wrong})
}

// anotherKey: everything expected is there, in a record that was not requested.
func anotherKey(b *bench) {
	one, none := b.prepared(intent.Create, 1)
	two := b.intent(intent.Create, 2)
	if b.seed(withValuesOf(two, one), two.Stamp()) {
		b.refuse(claim{declared: one, before: none})
	}
}

func anotherKeyOurStamp(b *bench) {
	one, none := b.prepared(intent.Create, 1)
	two := b.intent(intent.Create, 2)
	if !b.seed(by(one, withValuesOf(two, one)), one.Stamp()) {
		return
	}
	_, notFound := b.suite.Lacks[connectortest.LacksFindStamp]
	least := 1
	if notFound || !b.f.Profile.Stamped {
		least = 0
	}
	b.refuse(claim{declared: one, before: none, least: least})
}

// changeOfAnother: the update, or the delete, changed record 2 and not record 1.
func changeOfAnother(b *bench, w intent.WriteType) {
	one, before := b.prepared(w, 1)
	two, beforeTwo := b.prepared(w, 2)
	was := b.f.Records(one.Key)
	b.must(two, beforeTwo)
	b.applied(two, beforeTwo)
	b.refuse(claim{declared: one, before: before, was: was})
}

// applied waits until the store differs from its state before a write.
func (b *bench) applied(in intent.WriteIntent, before *connectors.Observation) {
	b.Helper()
	if !b.until(func() bool {
		now := b.f.Records(in.Key)
		return len(now) != len(before.Records) || slices.ContainsFunc(now, func(r connectors.Record) bool {
			return len(b.f.Differing(in.Expect, r.Fields)) == 0
		})
	}) {
		b.Fatalf("after %v the %s is not in the store", b.suite.Patience, in.Write)
	}
}
