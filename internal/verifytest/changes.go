package verifytest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// oldStates are writes that are not there, or are not visible yet.
func oldStates(s connectortest.Harness) []scenario {
	var all []scenario
	for _, w := range s.Writes {
		all = append(all, scenario{OldVersion, "nothing-done/" + string(w), nil, func(b *bench) {
			in, before := b.prepared(w, 1)
			b.refuse(claim{declared: in, before: before})
		}})
		all = slices.Concat(all, vicious(s, OldVersion, fault.PhantomSuccess, w, func(b *bench, arm func() bool) { phantom(b, w, arm) }))
		if w != intent.Delete {
			all = slices.Concat(all, vicious(s, OldVersion, fault.LaggingRead, w, func(b *bench, arm func() bool) { lagging(b, w, arm) }))
		}
	}
	return append(all, vicious(s, OldVersion, fault.Rollback, intent.Create, func(b *bench, arm func() bool) {
		in, before := b.prepared(intent.Create, 1)
		if !arm() {
			return
		}
		b.must(in, before)
		if !b.until(func() bool { return len(b.f.Records(in.Key)) == 0 }) {
			b.Fatal("harness: the record has not gone from the store")
		}
		b.refuse(claim{declared: in, before: before})
	})...)
}

func phantom(b *bench, w intent.WriteType, arm func() bool) {
	in, before := b.prepared(w, 1)
	if !arm() {
		return
	}
	b.must(in, before)
	b.refuse(claim{declared: in, before: before})
}

// lagging: the write is there and the read shows the state before it, which a verifier must not
// accept.
func lagging(b *bench, w intent.WriteType, arm func() bool) {
	in, before := b.prepared(w, 1)
	b.calm()
	b.must(in, before)
	b.applied(in, before)
	if arm() {
		b.refuse(claim{declared: in, before: before, once: true, wrong: "the read is of a time before the write"})
	}
}

// collateralStates are writes that did what was requested, and more.
func collateralStates(s connectortest.Harness) []scenario {
	var all []scenario
	for _, w := range []intent.WriteType{intent.Update, intent.Upsert} {
		if slices.Contains(s.Writes, w) {
			all = append(all,
				scenario{Collateral, string(w) + "/more-than-declared", nil, func(b *bench) { moreThanDeclared(b, w) }},
				scenario{Collateral, string(w) + "/another-field", nil, func(b *bench) { anotherField(b, w) }},
				scenario{Collateral, string(w) + "/another-actor", []string{connectortest.LacksChange}, func(b *bench) { otherActor(b, w) }},
			)
		}
	}
	return all
}

// moreThanDeclared makes the whole change and judges it by a different part of its fields each
// time.
func moreThanDeclared(b *bench, w intent.WriteType) {
	in, before := b.prepared(w, 1)
	was := b.f.Records(in.Key)
	b.must(in, before)
	b.applied(in, before)
	for _, name := range free(in) {
		if len(in.Expect) > 1 {
			b.refuse(claim{what: "without " + name, declared: without(in, name), before: before, was: was})
		}
	}
	for i, path := range in.Absent {
		less := copyOf(in)
		less.Absent = slices.Delete(less.Absent, i, i+1)
		b.refuse(claim{what: "without absent " + path, declared: less, before: before, was: was})
	}
}

// anotherField makes the change together with one to a field that a create writes and the
// change does not name.
func anotherField(b *bench, w intent.WriteType) {
	made := b.intent(intent.Create, 1)
	for i, name := range free(made) {
		n := 1 + i
		in := b.intent(w, n)
		if _, named := in.Expect[name]; named || slices.Contains(in.Absent, "/"+name) {
			continue
		}
		in, before := b.prepared(w, n)
		was := b.f.Records(in.Key)
		value := b.another(b.intent(intent.Create, n), name)
		wider := saying(in, name, value)
		if err := b.write(wider, before); err != nil {
			b.unseeded(fmt.Errorf("with %s: %w", name, err))
			b.alter(in, name, value)
			continue
		}
		b.applied(wider, before)
		b.refuse(claim{what: "with " + name, declared: in, before: before, was: was})
	}
}

// another returns a value that a create of this record does not write in a field: of another
// record, or else in another form.
func (b *bench) another(in intent.WriteIntent, name string) any {
	other := b.intent(intent.Create, 101)
	if len(b.f.Differing(intent.Fields{name: in.Expect[name]}, other.Expect)) > 0 {
		return other.Expect[name]
	}
	// The last, since the first form of an object has an extra member, which is no difference
	// if the intent does not name that member. It has the same type, since the destination must
	// be able to store it.
	for _, f := range slices.Backward(formsOf(in, b.f.Profile, "/"+intent.Pointer(name), in.Expect[name])) {
		if !f.excused && f.value != "" && reflect.TypeOf(f.value) == reflect.TypeOf(in.Expect[name]) {
			return f.value
		}
	}
	return other.Expect[name]
}

// alter changes a field without the connector, where the destination does not change it itself.
func (b *bench) alter(in intent.WriteIntent, name string, value any) {
	if b.f.Alter == nil {
		return
	}
	before := b.shows(in)
	was := b.f.Records(in.Key)
	b.must(in, &before)
	b.applied(in, &before)
	if err := b.f.Alter(in.Key, intent.Fields{name: value}); err != nil {
		b.unseeded(fmt.Errorf("altered %s: %w", name, err))
		return
	}
	b.refuse(claim{what: "altered " + name, declared: in, before: &before, was: was})
}

// otherActor changes the record between our write and our read.
func otherActor(b *bench, w intent.WriteType) {
	if b.f.Change == nil {
		b.Fatal("harness: the fixture has no Change; give it or declare it in the suite's Lacks")
	}
	in, before := b.prepared(w, 1)
	was := b.f.Records(in.Key)
	b.must(in, before)
	b.applied(in, before)
	b.f.Change(in.Key)
	if len(b.f.Records(in.Key)) != 1 {
		b.unseeded(errors.New("the change leaves another number of records"))
		return
	}
	b.refuse(claim{what: "changed by another actor", declared: in, before: before, was: was})
}
