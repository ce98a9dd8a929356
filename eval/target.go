package eval

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// target is one record, or several under one key, that is read back: what all
// declared writes together leave there.
type target struct {
	name    string
	line    line // of the first write or effect
	conn    connectors.Connector
	profile connectors.Profile
	// intent is what reads ask for and fields are compared with.
	intent intent.WriteIntent
	// least and most bound the number of records.
	least, most int
	// unsure says that a write of which nobody knows names fields here, loose which
	// ones (their outermost members), either what is wanted if all such were made.
	unsure bool
	loose  []string
	either intent.WriteIntent
	// based says that it follows from what was declared how many records there are:
	// an effect says so, or a write that was surely made. Else there may be one
	// from before.
	based     bool
	unchanged intent.Fields
	members   []member
	masked    int
	seen      seen
}

// member is one declared write of a target, and what was claimed of it.
type member struct {
	intent intent.WriteIntent
	stamp  string // "" where none is known
	status string // "" where nothing was claimed
	line   line
	key    string // its idempotency key
}

// who names a member for a report.
func (t *target) who(m member) string {
	name := t.name
	if m.key != "" {
		name += " (" + m.key + ")"
	}
	return name
}

// bound is an evaluation whose destinations are known.
type bound struct {
	f       *File
	reg     *connectors.Registry
	targets []*target
	// strays are claims about writes that nobody declared.
	strays []string
	stamps stamps // of all declared writes
	// elsewhere are the stamps of writes that the export has and that are not
	// meant here: those of other workflows, times and tenants. They were declared.
	elsewhere stamps
	lines     map[string]bool // names of all targets
}

// bind looks everything up that the file names. The error is an [InvalidError].
func bind(f *File, reg *connectors.Registry) (*bound, error) {
	b := &bound{f: f, reg: reg, stamps: stamps{}, elsewhere: stamps{}, lines: map[string]bool{}}
	var ps problems
	for _, e := range f.effects {
		b.effect(&ps, e)
	}
	b.writes(&ps)
	scopes := slices.Concat(f.checks.Unaccounted, f.checks.Undeclared)
	if f.checks.Collateral != nil {
		scopes = slices.Concat(scopes, f.checks.Collateral.Scopes)
	}
	for _, s := range scopes {
		if _, _, err := reg.Lookup(s.Destination.Value, s.Kind.Value); err != nil {
			at := s.Destination.Place
			field := "destination"
			if strings.HasPrefix(err.Error(), "/kind") {
				at, field = s.Kind.Place, "kind"
			}
			ps.say(f.path, at.Line, s.At.Field+"."+field, "%s", told(err))
		}
	}
	for _, w := range f.others {
		conn, _, _ := reg.Lookup(w.intent.Destination, w.intent.Kind) // nil where it is not known
		b.elsewhere.add(w.intent.Stamp(), w.intent.Destination, conn)
	}
	b.claims()
	for _, t := range b.targets {
		for _, m := range t.members {
			if m.stamp != "" {
				b.stamps.add(m.stamp, t.profile.Destination, t.conn)
			}
		}
		b.lines[t.name] = true
	}
	return b, ps.err()
}

// told is an error of a lookup without the place in an intent, which stands
// beside it.
func told(err error) string {
	text := err.Error()
	for _, place := range []string{"/destination: ", "/kind: "} {
		text = strings.TrimPrefix(text, place)
	}
	return text
}

// lookup finds where something is, and says by which member it cannot be found.
func (b *bound) lookup(ps *problems, l line, w intent.WriteIntent) (connectors.Connector, connectors.Profile, bool) {
	conn, profile, err := b.reg.Lookup(w.Destination, w.Kind)
	if err != nil {
		field := "destination"
		if strings.HasPrefix(err.Error(), "/kind") {
			field = "kind"
		}
		ps.say(l.file, l.n, field, "%s", told(err))
		return nil, profile, false
	}
	if c, ok := conn.(connectors.Checker); ok {
		// What is sent may be refused for much that nobody asks here: only the key
		// must be one that can be looked for.
		if err := c.Check(w); err != nil && strings.Contains(err.Error(), "/key") {
			_, after, _ := strings.Cut(err.Error(), "/key")
			field, why, _ := strings.Cut(after, ":")
			ps.say(l.file, l.n, "key"+strings.ReplaceAll(field, "/", "."), "%s", strings.TrimSpace(why))
			return nil, profile, false
		}
	}
	return conn, profile, true
}

func (b *bound) effect(ps *problems, e placed) {
	w := intent.WriteIntent{Tenant: "evaluation", Workflow: b.f.name, Tool: "evaluation",
		Destination: e.Destination, Kind: e.Kind, Key: e.Key, Write: intent.Create,
		Expect: joined(e.Unchanged, e.Expect), Absent: e.Absent, Ignore: e.Ignore, Compare: e.Compare}
	conn, profile, ok := b.lookup(ps, e.line, w)
	if !ok {
		return
	}
	w.Expect = joined(nil, e.Expect)
	b.targets = append(b.targets, &target{name: recordName(e.Destination, e.Kind, e.Key), line: e.line, conn: conn, profile: profile,
		intent: w, least: e.count(), most: e.count(), based: true, unchanged: e.Unchanged,
		members: []member{{intent: w, stamp: e.Stamp, line: e.line, key: e.IdempotencyKey}}})
}

// writes makes targets of declared writes, those of one record together, in the
// order in which they were declared.
func (b *bound) writes(ps *problems) {
	groups := map[string]*target{}
	byID := map[string]string{}
	for _, c := range b.f.claims {
		if c.id != "" {
			byID[c.id] = c.status
		}
	}
	for _, w := range b.f.writes {
		if len(maskedIn("", w.intent.Key)) > 0 {
			ps.say(w.line.file, w.line.n, "key", "is not shown in the export; declare this effect in a file of effects")
			continue
		}
		conn, profile, ok := b.lookup(ps, w.line, w.intent)
		if !ok {
			continue
		}
		m := member{intent: w.intent, stamp: w.intent.Stamp(), line: w.line, key: w.intent.IdempotencyKey, status: w.exported.status()}
		if s, ok := byID[w.id()]; ok {
			m.status = s
		}
		name := recordName(w.intent.Destination, w.intent.Kind, w.intent.Key)
		group := name
		if profile.FreshKeys && w.intent.Write == intent.Create {
			group += " " + m.stamp // the stamp is the key
			name = group
		}
		t := groups[group]
		if t == nil {
			t = &target{name: name, line: w.line, conn: conn, profile: profile, intent: w.intent}
			t.intent.Expect, t.intent.Absent = nil, nil
			t.either = t.intent
			groups[group] = t
			b.targets = append(b.targets, t)
		}
		t.fold(m)
		t.masked += w.masked
	}
}

// fold adds a later write to what the earlier ones leave.
func (t *target) fold(m member) {
	t.members = append(t.members, m)
	w := m.intent
	n := w.Want()
	if w.Write != intent.Create && !t.based {
		t.most = max(t.most, n) // what it was to change or delete was there before, maybe
	}
	if m.claimsNoEffect() {
		return // whether that is so is another check
	}
	sure := m.sure()
	t.based = t.based || sure
	switch w.Write {
	case intent.Create:
		t.most += n
		if sure {
			t.least += n
		}
	case intent.Delete:
		if t.least = 0; sure {
			t.most, t.unsure, t.loose = 0, false, nil
			t.intent.Expect, t.intent.Absent, t.either.Expect, t.either.Absent = nil, nil, nil, nil
		}
		return
	default:
		t.most = max(t.most, n)
		if sure {
			t.least = max(t.least, n)
		}
	}
	lay(&t.either, w)
	if !sure {
		t.unsure, t.loose = true, append(t.loose, outermost(w)...)
		return
	}
	lay(&t.intent, w)
	t.loose = slices.DeleteFunc(t.loose, func(path string) bool { // it is known again, whatever was there
		v, there := intent.Lookup(w.Expect, path)
		_, object := v.(map[string]any)
		return there && !object
	})
}

// outermost are the members of a record that a write names.
func outermost(w intent.WriteIntent) []string {
	var all []string
	for name := range w.Expect {
		all = append(all, string(intent.Pointer("").AppendToken(name)))
	}
	for _, path := range w.Absent {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		all = append(all, "/"+name)
	}
	return all
}

// sure reports whether a write is to have been made: nothing is claimed of it, or
// that it is there.
func (m member) sure() bool {
	says := statuses[m.status]
	return says == claimsNone || says == claimsEffect
}

// claimsNoEffect reports whether it is claimed that a write left nothing.
func (m member) claimsNoEffect() bool {
	says := statuses[m.status]
	return says == claimsNothing || says == claimsAbort
}

// lay lays what a later write wants over what earlier ones want: where both name a
// place, the later one counts.
func lay(under *intent.WriteIntent, w intent.WriteIntent) {
	wants := func(path string) bool { _, there := intent.Lookup(w.Expect, path); return there }
	under.Absent = slices.Concat(slices.DeleteFunc(slices.Clone(under.Absent), wants), w.Absent)
	under.Ignore = slices.Concat(slices.DeleteFunc(slices.Clone(under.Ignore), wants), w.Ignore)
	under.Expect = joined(without(under.Expect, "", w.Absent), w.Expect)
	under.Compare = maps.Clone(under.Compare)
	for path, c := range w.Compare {
		if under.Compare == nil {
			under.Compare = map[string]intent.Comparison{}
		}
		under.Compare[path] = c
	}
}

// without is fields without the members at some places.
func without(fields map[string]any, at intent.Pointer, places []string) map[string]any {
	all := map[string]any{}
	for name, v := range fields {
		path := at.AppendToken(name)
		if slices.Contains(places, string(path)) {
			continue
		}
		if below, ok := v.(map[string]any); ok {
			v = without(below, path, places)
		}
		all[name] = v
	}
	return all
}

// joined lays fields over others; objects are gone through, as updates do.
func joined(under, over intent.Fields) intent.Fields {
	all := intent.Fields{}
	maps.Copy(all, under)
	for name, v := range over {
		below, okBelow := all[name].(map[string]any)
		above, okAbove := v.(map[string]any)
		if okBelow && okAbove {
			all[name] = map[string]any(joined(below, above))
			continue
		}
		all[name] = v
	}
	return all
}

// claims gives what was claimed by record to its target. What names no declared
// write is a stray.
func (b *bound) claims() {
	ids, records := map[string]bool{}, map[string]*target{}
	for _, w := range slices.Concat(b.f.writes, b.f.others) {
		ids[w.id()] = true
	}
	for _, t := range b.targets {
		records[t.name] = t
	}
	for _, c := range b.f.claims {
		if c.id != "" && ids[c.id] {
			continue
		}
		t := records[c.record]
		switch {
		case c.id != "":
			b.strays = append(b.strays, c.id+" ("+c.line.where()+")")
		case t == nil:
			b.strays = append(b.strays, c.record+" ("+c.line.where()+")")
		default:
			for i := range t.members {
				t.members[i].status = c.status
			}
		}
	}
}

// queries are what is asked to see a target: by its key, and by each stamp that
// a create of it can have left.
func (t *target) queries() []connectors.Query {
	w := t.intent
	w.Expect = joined(t.unchanged, w.Expect)
	var stamps []string
	for _, m := range t.members {
		if m.stamp != "" && (m.intent.Write != intent.Update && m.intent.Write != intent.Delete) {
			stamps = append(stamps, m.stamp)
		}
	}
	slices.Sort(stamps)
	stamps = slices.Compact(stamps)
	if len(stamps) == 0 {
		stamps = []string{""}
	}
	var all []connectors.Query
	for _, s := range stamps {
		all = append(all, connectors.Query{Intent: w, Stamp: s})
	}
	return all
}

// errBlind says why a target cannot be read.
var errBlind = errors.New("nothing can be read at this destination")
