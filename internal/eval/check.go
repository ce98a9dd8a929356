package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/verify"
)

// named names a target.
func (t *target) named(says string) Named {
	n := Named{Name: t.shown(), Says: says, Declared: t.line.where()}
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

// withheld is why a target is undecided, "" if it is not.
func (t *target) withheld() string {
	switch {
	case t.seen.err != nil:
		return "it could not be read: " + t.seen.err.Error()
	case !t.seen.conclusive:
		return cmp.Or(t.seen.why, "the age of the read is unknown")
	}
	return ""
}

// counted describes how many records a target should have, and has.
func (t *target) counted() string {
	want := fmt.Sprint(t.least)
	if t.most > t.least {
		want = fmt.Sprintf("%d to %d", t.least, t.most)
	}
	says := fmt.Sprintf("%d there, %s declared", len(t.seen.records), want)
	if foreign := t.foreign(); foreign > 0 {
		says += fmt.Sprintf("; %d without a stamp of a write that is to have left one", foreign)
	}
	if t.based && !t.oneOfEach() {
		says += "; not one of each write: by their stamps one of them has more, another one less"
	}
	return says
}

// notYet is why a recent write is not judged.
const notYet = "it was written within the settle time, so reads may not show it yet"

// creates reports whether a record of its own is declared, which explains no other
// effect.
func (t *target) creates() bool {
	return t.least > 0 && slices.ContainsFunc(t.members, func(m member) bool { return m.intent.Write == intent.Create })
}

// exact: exactly N effects per key.
func (w *weighing) exact(t *target) {
	c := &w.exactly
	c.Read++
	if why := t.withheld(); why != "" {
		c.unknown(t.named(why))
		return
	}
	c.rests(string(t.seen.strength), "")
	switch other := w.countedFor(t); {
	case t.recent && len(t.seen.records) < t.least:
		c.unknown(t.named(notYet))
	case !t.countHolds():
		n := t.named(t.counted())
		switch {
		case len(t.seen.records) < t.least:
			n.Problem = problemMissing
		case len(t.seen.records) > t.most:
			n.Problem = problemDuplicated
		}
		c.wrong(n)
	case other != "":
		c.wrong(t.named("its record is that of " + other + ": one record for two declared ones"))
	}
}

// countedFor records for which target each record of a create counts, and returns another one for
// which it counted before: keys that differ for us (in case, say) may be equal for the
// destination.
func (w *weighing) countedFor(t *target) (other string) {
	if !t.creates() {
		return ""
	}
	for _, r := range t.seen.records {
		if r.Ref == "" {
			continue
		}
		name := digestOf(t.place.String(), r.Ref)
		if first, there := w.counted[name]; there {
			other = w.b.nameOfItem(first)
			continue
		}
		w.counted[name] = t.first
	}
	return other
}

// differ describes the first of several differences, without values that are marked.
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
	return visible.Clip(string(text), most)
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

// expect: every expected field as declared.
func (w *weighing) expect(t *target) {
	c := &w.expected
	if len(t.intent.Expect)+len(t.intent.Absent) == 0 || t.most == 0 {
		return
	}
	c.Read++
	switch why := t.withheld(); {
	case why != "":
		c.unknown(t.named(why))
		return
	case t.unsure:
		c.unknown(t.named("a write that names its fields is not settled"))
		return
	case t.unseen():
		c.unknown(t.named("the export shows none of its fields"))
		return
	case len(t.seen.records) == 0 && t.least == 0:
		return
	case len(t.seen.records) == 0 && t.recent:
		c.unknown(t.named(notYet))
		return
	case len(t.seen.records) == 0:
		n := t.named("it is not there")
		n.Problem = problemMissing
		c.wrong(n)
		return
	}
	c.rests(string(t.seen.strength), "")
	if found := t.differing(t.intent); len(found) > 0 {
		if t.recent {
			c.unknown(t.named(notYet))
			return
		}
		n := t.named(t.differ(found))
		n.Problem = problemAltered
		for _, m := range found {
			if !slices.Contains(n.Fields, m.Path) {
				n.Fields = append(n.Fields, m.Path)
			}
		}
		c.wrong(n)
	}
}

// listing is one scope as it was read.
type listing struct {
	scope scopeForm
	connectors.Listing
	profile    connectors.Profile
	conclusive bool
	why        string // why it is not conclusive
	err        error
}

func (l listing) name() string {
	name := l.scope.Destination.Value + "/" + l.scope.Kind.Value
	if within := l.scope.within(); within != nil {
		name += " in " + shown(map[string]any(within))
	}
	return name
}

// gap is why the list may be incomplete, "" if it is complete.
func (l listing) gap() string {
	switch {
	case l.err != nil:
		return l.err.Error()
	case !l.Complete:
		return "the list is not complete: " + l.Why
	case !l.conclusive:
		return l.why
	}
	return ""
}

// ours reports whether a listed record has a stamp of readback.
func ours(r connectors.Listed) bool { return connectors.IsStamp(r.Stamp) }

// inTime: within the requested time. unknown: the record does not show it.
func (l listing) inTime(r connectors.Listed) (in, unknown bool) {
	if l.scope.always() {
		return true, false
	}
	s := connectors.Scope{From: l.scope.From.Time, Until: l.scope.Until.Time}
	in, sure := s.Of(r)
	return in, !sure
}

// gaps notes what a list may lack.
func (b *bound) gaps(c *Check, l listing) {
	if gap := l.gap(); gap != "" {
		c.Read++
		c.unknown(Named{Name: l.name(), Says: gap})
		return
	}
	c.rests(string(l.Strength), l.Path)
}

func strange(l listing, r connectors.Listed, says string) Named {
	n := Named{Name: l.scope.Destination.Value + "/" + l.scope.Kind.Value + " " + r.Ref, Says: says, Refs: []string{r.Ref}}
	if r.Stamp != "" {
		n.Says += "; it has the stamp " + visible.Clip(r.Stamp, 60)
	}
	return n
}

// settled decides a check of lists: a complete list without findings also counts as checked.
func (b *bound) settled(c Check, good, bad string) Check {
	c.settle(good, bad)
	if c.Read == 0 && c.Unchecked == 0 {
		c.Result, c.Why = Pass, "there is no such record"
	}
	return c
}
