package verifytest

import (
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// valueStates are wrong by the values in the record.
func valueStates(s connectortest.Harness) []scenario {
	all := []scenario{
		{WrongValue, "other-form", nil, func(b *bench) { otherForms(b, false) }},
		{WrongValue, "altered", nil, altered},
		{DroppedField, "left-out", nil, leftOut},
		{DroppedField, "null", []string{connectortest.LacksNullField}, nullField},
	}
	for _, w := range s.Writes {
		if w == intent.Create || w == intent.Update {
			all = slices.Concat(all,
				vicious(s, DroppedField, fault.DroppedField, w, func(b *bench, arm func() bool) { storedOtherwise(b, w, arm) }),
				vicious(s, WrongValue, fault.NormalisedField, w, func(b *bench, arm func() bool) { storedOtherwise(b, w, arm) }))
		}
	}
	return all
}

// otherForms writes one record and judges it by another form of each written value: by the
// wrong forms, or by those that the rules of the field excuse.
func otherForms(b *bench, excused bool) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	b.applied(in, before)
	for _, name := range free(in) {
		for _, f := range formsOf(in, b.f.Profile, "/"+intent.Pointer(name), in.Expect[name]) {
			c := claim{what: fmt.Sprintf("%s %s", name, f.name), declared: saying(in, name, f.value), before: before}
			switch {
			case f.excused && excused:
				b.accept(c)
			case !f.excused && !excused:
				b.refuse(c)
			}
		}
	}
}

// altered has another actor change our write before our read.
func altered(b *bench) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	b.applied(in, before)
	if b.f.Alter == nil {
		b.unseeded(fmt.Errorf("the fixture has no Alter"))
		return
	}
	for _, name := range free(in) {
		if err := b.f.Alter(in.Key, intent.Fields{name: b.another(in, name)}); err != nil {
			b.unseeded(fmt.Errorf("%s: %w", name, err))
			continue
		}
		b.refuse(claim{what: name, declared: in, before: before})
		if err := b.f.Alter(in.Key, intent.Fields{name: in.Expect[name]}); err != nil {
			b.Fatalf("harness: alter %s back: %v", name, err)
		}
	}
}

// storedOtherwise: the destination answers success and stores another value. Where a rule of
// the profile makes that right, the intent requires more exactness.
func storedOtherwise(b *bench, w intent.WriteType, arm func() bool) {
	in, before := b.prepared(w, 1)
	was := fmt.Sprint(b.f.Records(in.Key))
	if !arm() {
		return
	}
	b.must(in, before)
	if !b.until(func() bool { return fmt.Sprint(b.f.Records(in.Key)) != was }) {
		b.Fatal("harness: nothing was stored")
	}
	exact := copyOf(in)
	exact.Compare = map[string]intent.Comparison{}
	for name := range in.Expect {
		if b.f.Same == nil {
			exact.Compare["/"+name] = intent.Comparison{}
		}
	}
	b.refuse(claim{declared: exact, before: before})
}

// leftOut writes less than is declared, one field at a time.
func leftOut(b *bench) {
	first := b.intent(intent.Create, 1)
	for i, name := range free(first) {
		in, before := b.prepared(intent.Create, 1+i)
		if !b.seed(without(in, name), in.Stamp()) {
			continue
		}
		c := claim{what: name, declared: in, before: before}
		if in.Expect[name] == "" && b.emptyIsMissing(name) {
			b.accept(c)
		} else {
			b.refuse(c)
		}
	}
}

// emptyIsMissing reports whether the profile treats null, "" and not there as the same in a
// field.
func (b *bench) emptyIsMissing(name string) bool {
	return has(b.f.Profile.Compare["/"+name], rules(intent.RuleEmpty))
}

// nullField: null and not there are two different things.
func nullField(b *bench) {
	field := b.f.NullField
	if field == "" {
		b.Fatal("harness: the fixture has no NullField; give it or declare it in the suite's Lacks")
	}
	if b.emptyIsMissing(field) {
		b.unseeded(fmt.Errorf("the profile says that null and not there are the same in %s", field))
		return
	}
	in, before := b.prepared(intent.Create, 1)
	null := saying(in, field, nil)
	if b.seed(without(in, field), in.Stamp()) {
		b.refuse(claim{what: "null declared, not there", declared: null, before: before, wrong: "null was declared, and the field is not there"})
	}
	second, none := b.prepared(intent.Create, 2)
	if b.seed(saying(second, field, nil), second.Stamp()) {
		absent := without(second, field)
		absent.Absent = append(absent.Absent, "/"+field)
		b.refuse(claim{what: "not there declared, null", declared: absent, before: none})
	}
}
