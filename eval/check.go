package eval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// named names a target.
func (t *target) named(says string) Named {
	n := Named{Name: t.name, Says: says, Declared: t.line.where()}
	if len(t.members) > 0 {
		n.Name = t.who(t.members[0])
	}
	for _, r := range t.seen.records {
		if r.Ref != "" {
			n.Refs = append(n.Refs, r.Ref)
		}
	}
	return n
}

// untold says why nothing can be said of a target, "" where something can.
func (t *target) untold() string {
	switch {
	case t.seen.err != nil:
		return "it could not be read: " + t.seen.err.Error()
	case !t.seen.firm:
		return cmp.Or(t.seen.why, "nobody knows how old the read is")
	}
	return ""
}

// counted says in words how many records a target should have, and has.
func (t *target) counted() string {
	want := fmt.Sprint(t.least)
	if t.most > t.least {
		want = fmt.Sprintf("%d to %d", t.least, t.most)
	}
	says := fmt.Sprintf("%d there, %s declared", len(t.seen.records), want)
	if strangers := t.strangers(); strangers > 0 {
		says += fmt.Sprintf("; %d without a stamp of a write that is to have left one", strangers)
	}
	if t.based && !t.oneOfEach() {
		says += "; not one of each write: by their stamps one of them has more, another one less"
	}
	return says
}

// creates reports whether a record of its own is declared, which explains no other
// effect.
func (t *target) creates() bool {
	return t.least > 0 && slices.ContainsFunc(t.members, func(m member) bool { return m.intent.Write == intent.Create })
}

// exactly: exactly N effects per key.
func (b *bound) exactly() Check {
	c := Check{Name: "exactly", About: "as many records under each key as declared"}
	counted := map[string]string{}
	for _, t := range b.targets {
		c.Looked++
		if why := t.untold(); why != "" {
			c.unknown(t.named(why))
			continue
		}
		c.rests(string(t.seen.strength), "")
		switch twin := t.countedFor(counted); {
		case !t.countHolds():
			c.wrong(t.named(t.counted()))
		case twin != "":
			c.wrong(t.named("its record is that of " + twin + ": one record for two declared ones"))
		}
	}
	b.operations(&c)
	c.settle("keys have as many records as declared", "keys have another number of records than declared")
	return c
}

// countedFor notes for which target each record of a create counts, and names
// another one for which it counted before: keys that differ for us (in case, say)
// may be the same for the destination.
func (t *target) countedFor(counted map[string]string) (twin string) {
	if !t.creates() {
		return ""
	}
	for _, r := range t.seen.records {
		name := t.profile.Destination + "/" + t.profile.Kind + " " + r.Ref
		if r.Ref == "" {
			continue
		}
		if first, there := counted[name]; there {
			twin = first
			continue
		}
		counted[name] = t.name
	}
	return twin
}

// differ says the first of several differences, without values that are marked.
func differ(all []verify.Mismatch, marks []string) string {
	m := all[0]
	says := fmt.Sprintf("%s %s", m.Path, m.Problem)
	if (m.Problem == verify.Differs || m.Problem == verify.Changed) && !hidden(m.Path, marks) {
		says = fmt.Sprintf("%s is %s, want %s", m.Path, shown(m.Got), shown(m.Want))
	}
	if len(all) > 1 {
		says += fmt.Sprintf(", and %d more", len(all)-1)
	}
	return says
}

func shown(v any) string {
	text, err := intent.Canonical(v)
	if err != nil {
		return "a value that is no JSON"
	}
	const most = 80
	return clip(string(text), most)
}

// unseen reports whether there is nothing to compare, since an export hides all of
// what was declared.
func (t *target) unseen() bool {
	if t.masked == 0 || len(t.intent.Absent) > 0 {
		return false
	}
	for name := range t.intent.Expect {
		if !slices.Contains(t.intent.Ignore, string(intent.Pointer("").AppendToken(name))) {
			return false
		}
	}
	return true
}

// expected: every expected field as declared.
func (b *bound) expected() Check {
	c := Check{Name: "expected", About: "every expected field as declared"}
	for _, t := range b.targets {
		if len(t.intent.Expect)+len(t.intent.Absent) == 0 || t.most == 0 {
			continue
		}
		c.Looked++
		switch why := t.untold(); {
		case why != "":
			c.unknown(t.named(why))
			continue
		case t.unsure:
			c.unknown(t.named("a write that names its fields is not settled"))
			continue
		case t.unseen():
			c.unknown(t.named("the export shows none of its fields"))
			continue
		case len(t.seen.records) == 0 && t.least == 0:
			continue
		case len(t.seen.records) == 0:
			c.wrong(t.named("it is not there"))
			continue
		}
		c.rests(string(t.seen.strength), "")
		if found := t.differing(t.intent); len(found) > 0 {
			c.wrong(t.named(t.differ(found)))
		}
	}
	c.settle("keys have the declared fields", "keys have records that differ from what was declared")
	return c
}

// listing is one scope as it was read.
type listing struct {
	scope scopeForm
	connectors.Listing
	profile connectors.Profile
	firm    bool
	why     string // why it is not firm
	err     error
}

func (l listing) name() string {
	name := l.scope.Destination.Value + "/" + l.scope.Kind.Value
	if within := l.scope.within(); within != nil {
		name += " in " + shown(map[string]any(within))
	}
	return name
}

// gap says why the list may lack something, "" where it lacks nothing.
func (l listing) gap() string {
	switch {
	case l.err != nil:
		return l.err.Error()
	case !l.Complete:
		return "the list is not complete: " + l.Why
	case !l.firm:
		return l.why
	}
	return ""
}

// ours reports whether a listed record bears a stamp of readback.
func ours(r connectors.Listed) bool { return connectors.IsStamp(r.Stamp) }

// inTime: within the time that is asked for. unknown: the record does not say.
func (l listing) inTime(r connectors.Listed) (in, unknown bool) {
	if l.Timed || l.scope.From.IsZero() && l.scope.Until.IsZero() {
		return true, false
	}
	s := connectors.Scope{From: l.scope.From.Time, Until: l.scope.Until.Time}
	in, sure := s.Of(r)
	return in, !sure
}

// unaccounted: no record in scope that nobody declared.
func (b *bound) unaccounted(lists []listing) Check {
	c := Check{Name: "unaccounted", About: "no record in scope that nobody declared"}
	known := b.known()
	for _, l := range lists {
		all := l.scope.Of.Value == ofAll
		if !all && l.err == nil && !l.profile.Stamped {
			l.err = fmt.Errorf("its records bear no stamp, so that ours cannot be told; ask for all")
		}
		for _, r := range l.Records {
			in, unknown := l.inTime(r)
			if !in || !all && !ours(r) || l.err != nil {
				continue
			}
			c.Looked++
			anywhere, here := b.declared(l, r)
			switch {
			case known.has(l, r), here, known.isElsewhere(l, r):
			case anywhere:
				c.unknown(strange(l, r, misplaced))
			case unknown:
				c.unknown(strange(l, r, "nobody declared it, and the destination does not say when it was made: it may be older"))
			default:
				c.wrong(strange(l, r, "nobody declared it"))
			}
		}
		b.gaps(&c, l)
	}
	return b.settled(c, "records in scope are all declared", "records that nobody declared")
}

// gaps notes what a list may lack.
func (b *bound) gaps(c *Check, l listing) {
	if gap := l.gap(); gap != "" {
		c.Looked++
		c.unknown(Named{Name: l.name(), Says: gap})
		return
	}
	c.rests(string(l.Strength), l.Path)
}

func strange(l listing, r connectors.Listed, says string) Named {
	n := Named{Name: l.scope.Destination.Value + "/" + l.scope.Kind.Value + " " + r.Ref, Says: says, Refs: []string{r.Ref}}
	if r.Stamp != "" {
		n.Says += "; it bears the stamp " + clip(r.Stamp, 60)
	}
	return n
}

// accounted are the records that declared effects explain: by their refs, by
// their keys as text, and those whose keys are compared by rules.
type accounted struct {
	refs map[string]bool
	keys map[string]bool
	// elsewhere are those of writes that are not meant here.
	elsewhere map[string]bool
	forms     map[string][][]string // the members of keys, by place
	likely    map[string][]*target
}

func (b *bound) known() accounted {
	a := accounted{refs: map[string]bool{}, keys: map[string]bool{}, elsewhere: map[string]bool{}, forms: map[string][][]string{}, likely: map[string][]*target{}}
	for _, t := range b.targets {
		place := t.profile.Destination + "/" + t.profile.Kind
		for _, r := range t.seen.records {
			if r.Ref != "" {
				a.refs[place+" "+r.Ref] = true
			}
		}
		if t.profile.FreshKeys {
			continue // many records share such a key
		}
		form := a.form(place, t.intent.Key)
		a.keys[recordName(t.profile.Destination, t.profile.Kind, t.intent.Key)] = true
		if slices.ContainsFunc(form, func(name string) bool {
			path := string(intent.Pointer("").AppendToken(name))
			return len(t.profile.Compare[path])+len(t.intent.Compare[path]) > 0
		}) {
			a.likely[place] = append(a.likely[place], t)
		}
	}
	for _, w := range b.f.others {
		place := w.intent.Destination + "/" + w.intent.Kind
		if _, p, err := b.reg.Lookup(w.intent.Destination, w.intent.Kind); err == nil && !p.FreshKeys {
			a.form(place, w.intent.Key)
			a.elsewhere[recordName(w.intent.Destination, w.intent.Kind, w.intent.Key)] = true
		}
	}
	return a
}

// form notes of which members the keys of a place are made.
func (a accounted) form(place string, key intent.Fields) []string {
	form := slices.Sorted(maps.Keys(key))
	if !slices.ContainsFunc(a.forms[place], func(f []string) bool { return slices.Equal(f, form) }) {
		a.forms[place] = append(a.forms[place], form)
	}
	return form
}

// has reports whether a declared effect explains a record: it was found by its
// key or stamp, or has its key.
func (a accounted) has(l listing, r connectors.Listed) bool {
	place := l.scope.Destination.Value + "/" + l.scope.Kind.Value
	if a.refs[place+" "+r.Ref] || a.key(a.keys, l, r) {
		return true
	}
	return slices.ContainsFunc(a.likely[place], func(t *target) bool {
		asked := intent.WriteIntent{Key: t.intent.Key, Compare: t.intent.Compare}
		return len(verify.Diff(asked, t.profile.Compare, r.Fields)) == 0
	})
}

// key reports whether a record has one of some keys.
func (a accounted) key(among map[string]bool, l listing, r connectors.Listed) bool {
	for _, form := range a.forms[l.scope.Destination.Value+"/"+l.scope.Kind.Value] {
		key := intent.Fields{}
		for _, name := range form {
			key[name] = r.Fields[name]
		}
		if among[recordName(l.scope.Destination.Value, l.scope.Kind.Value, key)] {
			return true
		}
	}
	return false
}

// isElsewhere reports whether a record has the key of a write that the export has
// and that is not meant here.
func (a accounted) isElsewhere(l listing, r connectors.Listed) bool {
	return a.key(a.elsewhere, l, r)
}

// undeclared: nothing bears a stamp of ours but what was declared.
func (b *bound) undeclared(lists []listing) Check {
	c := Check{Name: "undeclared", About: "nothing was sent that was not declared: every stamp of ours is that of a declared write"}
	if len(b.stamps) == 0 && len(b.targets) > 0 {
		c.Result, c.Why, c.Strength = NotChecked, "the declared effects name no stamps; want an export of intents, or stamp: in each effect", "none"
		return c
	}
	for _, s := range b.strays {
		c.Looked++
		c.wrong(Named{Name: s, Says: "an outcome is claimed for it, and nobody declared it"})
	}
	for _, l := range lists {
		if l.err == nil && !l.profile.Stamped {
			l.err = fmt.Errorf("its records bear no stamp: what was sent cannot be told from the world")
		}
		for _, r := range l.Records {
			in, unknown := l.inTime(r)
			if !in || !ours(r) || l.err != nil {
				continue
			}
			c.Looked++
			anywhere, here := b.declared(l, r)
			switch {
			case here:
			case anywhere:
				c.unknown(strange(l, r, misplaced))
			case unknown:
				c.unknown(strange(l, r, "no declared write has this stamp, and the destination does not say when it was made: it may be older"))
			default:
				c.wrong(strange(l, r, "no declared write has this stamp"))
			}
		}
		b.gaps(&c, l)
	}
	return b.settled(c, "records bear stamps, all of them of declared writes", "things that nobody declared")
}

// settled decides a check of lists: one that lacks nothing and shows nothing was
// looked at all the same.
func (b *bound) settled(c Check, good, bad string) Check {
	c.settle(good, bad)
	if c.Looked == 0 && c.Unchecked == 0 {
		c.Result, c.Why = Pass, "there is no such record"
	}
	return c
}
