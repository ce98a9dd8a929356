package verifytest

import (
	"cmp"
	"slices"

	"github.com/readback-go/readback/intent"
)

// legitimate collects the differences that are right.
func (h Harness) legitimate() []scenario {
	all := []scenario{
		{"", "other-form", nil, func(b *bench) { otherForms(b, true) }},
		{"", "more-than-declared", nil, moreFields},
		{"", "ignored", nil, ignored},
		{"", "nothing-there-before", nil, nothingBefore},
		{"", "our-own-earlier-send", nil, ownEarlier},
	}
	for _, w := range h.Suite.Writes {
		all = append(all, scenario{"", "as-written/" + string(w), nil, func(b *bench) { asWritten(b, w) }})
	}
	if slices.Contains(h.Suite.Writes, intent.Update) {
		all = append(all, scenario{"", "collateral-ignored", nil, collateralIgnored})
	}
	for _, d := range h.Legitimate {
		all = append(all, scenario{"", "declared/" + d.Name, nil, d.hold})
	}
	return all
}

// asWritten: the destination's own additions (ids, times, stamps) are no difference.
func asWritten(b *bench, w intent.WriteType) {
	in, before := b.prepared(w, 1)
	b.must(in, before)
	b.applied(in, before)
	b.accept(claim{what: "on what is there", declared: in, before: before})
	if w != intent.Upsert {
		return
	}
	fresh := b.intent(w, 2)
	none := b.see(fresh, 0)
	b.must(fresh, &none)
	b.applied(fresh, &none)
	b.accept(claim{what: "on nothing", declared: fresh, before: &none})
}

func moreFields(b *bench) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	b.applied(in, before)
	for _, name := range free(in) {
		if len(in.Expect) > 1 {
			b.accept(claim{what: "without " + name, declared: without(in, name), before: before})
		}
	}
}

// ignored: the intent ignores a field.
func ignored(b *bench) {
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	b.applied(in, before)
	for _, name := range free(in) {
		other := saying(in, name, "something else")
		other.Ignore = append(other.Ignore, string(intent.Pointer("").AppendToken(name)))
		b.accept(claim{what: name, declared: other, before: before})
	}
}

func nothingBefore(b *bench) {
	in, _ := b.prepared(intent.Create, 1)
	b.accept(claim{declared: in, unsent: true})
}

// ownEarlier: a record with our stamp is our own, whatever the ledger remembers.
func ownEarlier(b *bench) {
	if !b.f.Profile.Stamped {
		b.Log("the profile says that records have no stamp: their author is unknown")
		return
	}
	in, before := b.prepared(intent.Create, 1)
	b.must(in, before)
	b.applied(in, before)
	b.accept(claim{declared: in, unsent: true})
}

func collateralIgnored(b *bench) {
	in, before := b.prepared(intent.Update, 1)
	b.must(in, before)
	b.applied(in, before)
	for _, name := range free(in) {
		if len(in.Expect) > 1 {
			less := without(in, name)
			less.Ignore = append(less.Ignore, string(intent.Pointer("").AppendToken(name)))
			b.accept(claim{what: name, declared: less, before: before})
		}
	}
}

// hold checks a difference that the harness declares.
func (d Difference) hold(b *bench) {
	if d.Name == "" || d.Reason == "" {
		b.Fatalf("harness: Legitimate: %q (%q): want a name and a reason", d.Name, d.Reason)
	}
	b.Log(d.Reason)
	in, before := b.prepared(cmp.Or(d.Write, intent.Create), 1)
	written, declared := copyOf(in), copyOf(in)
	if d.Stored != nil {
		d.Stored(&written)
	}
	if d.Declared != nil {
		d.Declared(&declared)
	}
	b.must(written, before)
	b.applied(written, before)
	if d.After != nil {
		d.After(b.f, written)
	}
	b.accept(claim{what: d.Reason, declared: declared, before: before})
}
