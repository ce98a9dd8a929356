package eval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// maxForms is how many sets of members the keys of one place may have if records of a list are
// found by their keys: each is looked up for each record.
const maxForms = 16

// target is one record, or several under one key, that is read back: what all
// declared writes together leave there.
type target struct {
	name    string
	line    line // of the first write or effect
	conn    connectors.Connector
	profile connectors.Profile
	// intent is the intent that reads query and fields are compared with.
	intent intent.WriteIntent
	// least and most bound the number of records.
	least, most int
	// unsure means that a write of unknown result names fields here, loose which ones (their
	// outermost members), either the expected fields if all such were made.
	unsure bool
	loose  []string
	either intent.WriteIntent
	// based means that the declarations determine how many records there are: an effect does, or
	// a write that was surely made. Otherwise an earlier one may exist.
	based     bool
	unchanged intent.Fields
	members   []member
	masked    int
	seen      seen
	recent    bool // reads may not show it yet
	// first is the item that was declared first, place where it is.
	first uint32
	place *place
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
	name := t.shown()
	if m.key != "" {
		name += " (" + m.key + ")"
	}
	return name
}

// place is a destination and a kind, as far as an evaluation knows it.
type place struct {
	placeName
	conn    connectors.Connector
	profile connectors.Profile
	known   bool // the registry has it
	meant   int  // how many effects and writes are meant there
	// forms are the members of which keys are made. ruled: some keys are
	// compared by rules, spelled: records can be found by how their keys are
	// spelled; where they cannot, keys are those that are compared by rules.
	forms          [][]string
	ruled, spelled bool
	keys           []intent.WriteIntent
	// swept is the list that shows all records, nil where there is none.
	swept *connectors.Listing
}

// bound is an evaluation whose destinations are known.
type bound struct {
	f      *File
	reg    *connectors.Registry
	places []*place
	// groups are all items by the keys of their records, stamped by their stamps.
	// state is, where a group begins, what is known of it: see sweep.
	groups, stamped []ref
	state           []uint16
	groupAt         []uint32  // where the group of an item begins
	targets         []*target // where all of them are held at once
	declared        int       // how many targets there are
	// strays are claims about writes that were not declared.
	strays []string
	// shared are the operations that have more than one write.
	shared  map[digest]*operation
	order   []digest // of shared
	tallies []tally
	stamps  int  // how many meant items have a stamp
	checked bool // the connectors have checked all keys
}

// The states of a group besides those that a sweep gives.
const (
	stateUnseen uint16 = iota // no list shows a record of it
	stateRead                 // it is to be read
	stateListed               // this and more: a list shows it as declared; see tally
)

// bind resolves everything that the file names. The error is an [InvalidError].
func bind(ctx context.Context, f *File, reg *connectors.Registry, progress func(Progress)) (*bound, error) {
	b := &bound{f: f, reg: reg, shared: map[digest]*operation{}}
	for _, name := range f.places {
		p := &place{placeName: name}
		var err error
		p.conn, p.profile, err = reg.Lookup(name.destination, name.kind) // what cannot be found is reported below
		p.known = err == nil
		p.spelled = p.known && !p.profile.FreshKeys && !p.profile.WriteOnly
		b.places = append(b.places, p)
	}
	var ps problems
	var operations []ref
	for begin := 0; begin < len(f.items); begin += batch {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		progress(Progress{"reading what was declared", begin, len(f.items)})
		all := make([]boundItem, min(batch, len(f.items)-begin))
		parallel(len(all), func(i int) { all[i] = b.item(uint32(begin + i)) }) //nolint:gosec // files are bounded
		for _, one := range all {
			if one.err != nil {
				return nil, one.err
			}
			ps.add(one.ps)
			if one.good {
				operations = b.keep(one, operations)
			}
		}
	}
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
			ps.say(f.path, at.Line, s.At.Field+"."+field, "%s", plainError(err))
		}
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	b.checked = true
	f.sort(b.groups)
	f.sort(b.stamped)
	b.state = make([]uint16, len(b.groups))
	b.groupAt = make([]uint32, len(f.items))
	for i, begin := 0, 0; i < len(b.groups); i++ {
		if b.groups[i].digest != b.groups[begin].digest {
			begin = i
		}
		b.groupAt[b.groups[i].item] = uint32(begin) //nolint:gosec // files are bounded
	}
	b.share(operations)
	if err := b.rules(); err != nil {
		return nil, err
	}
	return b, b.claims()
}

// boundItem is one effect or write whose place is known.
type boundItem struct {
	ref
	intent     intent.WriteIntent
	stamp, key string
	good       bool // it is declared, and nothing is wrong with it
	ps         problems
	err        error
}

// item resolves one effect or write.
func (b *bound) item(i uint32) (one boundItem) {
	it := b.f.items[i]
	if it.is(isDropped) {
		return one
	}
	effects, writes, err := b.again([]ref{{item: i}})
	switch {
	case err != nil:
		return boundItem{err: err}
	case it.is(isEffect):
		t := b.effect(&one.ps, effects[0])
		if t == nil {
			return one
		}
		one.intent, one.stamp, one.key = t.intent, effects[0].Stamp, effects[0].IdempotencyKey
	default:
		one.intent = writes[0].intent
		one.stamp, one.key = one.intent.Stamp(), one.intent.IdempotencyKey
		if !it.is(isOther) && len(b.writes(&one.ps, writes)) == 0 {
			return one
		}
	}
	one.good = true
	one.ref = ref{b.group(b.places[it.place], one.intent, one.stamp), i}
	return one
}

// keep notes one effect or write, and the operation that it is of.
func (b *bound) keep(one boundItem, operations []ref) []ref {
	it := b.f.items[one.item]
	p := b.places[it.place]
	if one.stamp != "" {
		b.stamped = append(b.stamped, ref{digestOf(one.stamp), one.item})
	}
	if it.is(isOther) {
		if p.known && !p.profile.FreshKeys {
			b.groups = append(b.groups, one.ref)
			p.form(one.intent.Key)
		}
		return operations
	}
	if one.stamp != "" {
		b.stamps++
	}
	p.meant++
	b.groups = append(b.groups, one.ref)
	if !p.profile.FreshKeys { // many records share such a key
		p.form(one.intent.Key)
		p.rule(one.intent)
	}
	if one.key == "" || one.intent.Tenant == "" || one.intent.Write != intent.Create {
		return operations
	}
	return append(operations, ref{operationOf(one.intent, one.key), one.item})
}

// group is that of a write: the record that it is about.
func (b *bound) group(p *place, w intent.WriteIntent, stamp string) digest {
	g := groupOf(w.Destination, w.Kind, w.Key)
	if p.profile.FreshKeys && w.Write == intent.Create {
		return digestOf(string(g[:]), stamp) // the stamp is the key
	}
	return g
}

// form notes of which members the keys of a place are made.
func (p *place) form(key intent.Fields) {
	form := slices.Sorted(maps.Keys(key))
	if !slices.ContainsFunc(p.forms, func(f []string) bool { return slices.Equal(f, form) }) {
		p.forms = append(p.forms, form)
	}
	p.spelled = p.spelled && plainly(key) && len(p.forms) <= maxForms
}

// rule notes a key that is compared by rules. Those of rules that do more than
// groupOf does cannot be found by how they are spelled.
func (p *place) rule(w intent.WriteIntent) {
	for name := range w.Key {
		path := string(intent.Pointer("").AppendToken(name))
		for _, r := range slices.Concat(p.profile.Compare[path], w.Compare[path]) {
			p.ruled = true
			switch {
			case r.Name == intent.RuleTrim, r.Name == intent.RuleFold, r.Name == intent.RuleString, r.Name == intent.RuleNumeric && r.Tolerance == "":
			default:
				p.spelled = false
			}
		}
	}
}

// rules gathers the keys that are compared by rules, of places where records cannot be
// found otherwise.
func (b *bound) rules() error {
	for i := range b.f.items {
		it := b.f.items[i]
		if p := b.places[it.place]; p.ruled && !p.spelled && !it.is(isOther) && !it.is(isDropped) {
			one := b.item(uint32(i)) //nolint:gosec // files are bounded
			if one.err != nil {
				return one.err
			}
			p.keys = append(p.keys, intent.WriteIntent{Key: one.intent.Key, Compare: one.intent.Compare})
		}
	}
	return nil
}

// again reads items again, those that are meant.
func (b *bound) again(group []ref) (effects []placed, writes []write, err error) {
	for _, r := range group {
		it := b.f.items[r.item]
		if it.is(isEffect) {
			e, err := b.f.effectAt(it)
			if err != nil {
				return nil, nil, err
			}
			e.item = r.item
			effects = append(effects, e)
			continue
		}
		w, err := b.f.writeAt(it)
		if err != nil {
			return nil, nil, err
		}
		w.item = r.item
		writes = append(writes, w)
	}
	return effects, writes, nil
}

// begin is where a group begins, and whether there is one.
func (b *bound) begin(d digest) (i int, there bool) {
	return slices.BinarySearchFunc(b.groups, d, func(r ref, d digest) int { return bytes.Compare(r.digest[:], d[:]) })
}

// meantAt are the items of a group that are meant.
func (b *bound) meantAt(begin int) []ref {
	return slices.DeleteFunc(slices.Clone(among(b.groups[begin:], b.groups[begin].digest)), func(r ref) bool { return b.f.items[r.item].is(isOther) })
}

// targetsAt makes the targets of a group: one, unless keys that differ for us could be
// the same for the destination.
func (b *bound) targetsAt(begin int) ([]*target, error) {
	group := b.meantAt(begin)
	if len(group) == 0 {
		return nil, nil
	}
	effects, writes, err := b.again(group)
	if err != nil {
		return nil, err
	}
	var ps problems
	var all []*target
	for _, e := range effects {
		if t := b.effect(&ps, e); t != nil {
			all = append(all, t)
		}
	}
	all = append(all, b.writes(&ps, writes)...)
	for _, t := range all {
		t.place = b.places[b.f.items[t.first].place]
	}
	if err := b.claimed(all, b.groups[begin].digest); err != nil {
		return nil, err
	}
	return all, ps.err()
}

// plainError is an error of a lookup without the place in an intent, which is shown next to it.
func plainError(err error) string {
	text := err.Error()
	for _, place := range []string{"/destination: ", "/kind: "} {
		text = strings.TrimPrefix(text, place)
	}
	return text
}

// lookup resolves the place of a record; the error names the member that prevents it.
func (b *bound) lookup(ps *problems, l line, w intent.WriteIntent) (connectors.Connector, connectors.Profile, bool) {
	conn, profile, err := b.reg.Lookup(w.Destination, w.Kind)
	if err != nil {
		field := "destination"
		if strings.HasPrefix(err.Error(), "/kind") {
			field = "kind"
		}
		ps.say(l.file, l.n, field, "%s", plainError(err))
		return nil, profile, false
	}
	if c, ok := conn.(connectors.Checker); ok && !b.checked {
		// Check may refuse much that is irrelevant here: only the key must be valid for a query.
		if err := c.Check(w); err != nil && strings.Contains(err.Error(), "/key") {
			_, after, _ := strings.Cut(err.Error(), "/key")
			field, why, _ := strings.Cut(after, ":")
			ps.say(l.file, l.n, "key"+strings.ReplaceAll(field, "/", "."), "%s", strings.TrimSpace(why))
			return nil, profile, false
		}
	}
	return conn, profile, true
}

// effect makes the target of an effect; nil where its place cannot be found.
func (b *bound) effect(ps *problems, e placed) *target {
	w := intent.WriteIntent{Tenant: "evaluation", Workflow: b.f.name, Tool: "evaluation",
		Destination: e.Destination, Kind: e.Kind, Key: e.Key, Write: intent.Create,
		Expect: joined(e.Unchanged, e.Expect), Absent: e.Absent, Ignore: e.Ignore, Compare: e.Compare}
	conn, profile, ok := b.lookup(ps, e.line, w)
	if !ok {
		return nil
	}
	w.Expect = joined(nil, e.Expect)
	return &target{name: recordName(e.Destination, e.Kind, e.Key), first: e.item, line: e.line, conn: conn, profile: profile,
		recent: b.f.items[e.item].is(isRecent), intent: w, least: e.count(), most: e.count(), based: true, unchanged: e.Unchanged,
		members: []member{{intent: w, stamp: e.Stamp, line: e.line, key: e.IdempotencyKey}}}
}

// writes makes targets of declared writes, those of one record together, in the
// order in which they were declared.
func (b *bound) writes(ps *problems, writes []write) (all []*target) {
	groups := map[string]*target{}
	for _, w := range writes {
		if len(maskedIn("", w.intent.Key)) > 0 {
			ps.say(w.line.file, w.line.n, "key", "is not shown in the export; declare this effect in a file of effects")
			continue
		}
		conn, profile, ok := b.lookup(ps, w.line, w.intent)
		if !ok {
			continue
		}
		m := member{intent: w.intent, stamp: w.intent.Stamp(), line: w.line, key: w.intent.IdempotencyKey, status: w.claimed}
		name := recordName(w.intent.Destination, w.intent.Kind, w.intent.Key)
		group := name
		if profile.FreshKeys && w.intent.Write == intent.Create {
			group += " " + m.stamp // the stamp is the key
			name = group
		}
		t := groups[group]
		if t == nil {
			t = &target{name: name, first: w.item, line: w.line, conn: conn, profile: profile, intent: w.intent}
			t.intent.Expect, t.intent.Absent = nil, nil
			t.either = t.intent
			groups[group] = t
			all = append(all, t)
		}
		t.fold(m)
		t.masked += w.masked
	}
	return all
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

// claimed gives what was claimed by record to the targets of a group, and notes what
// names none of them.
func (b *bound) claimed(all []*target, group digest) error {
	claims := b.f.claims
	begin, _ := slices.BinarySearchFunc(claims, group, func(c claim, d digest) int { return bytes.Compare(c.group[:], d[:]) })
	for ; begin < len(claims) && claims[begin].group == group; begin++ {
		name, _, err := b.f.nameOf(claims[begin].item, nil)
		if err != nil {
			return err
		}
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].name == name {
				for m := range all[i].members {
					all[i].members[m].status = claimWords[claims[begin].status]
				}
				break
			}
		}
	}
	return nil
}

// claims finds those that are about records that were not declared.
func (b *bound) claims() error {
	strays := slices.Clone(b.f.strays)
	for _, c := range b.f.claims {
		name, where, err := b.f.nameOf(c.item, nil)
		if err != nil {
			return err
		}
		there := false
		if begin, declared := b.begin(c.group); declared {
			all, err := b.targetsAt(begin)
			if err != nil {
				return err
			}
			there = slices.ContainsFunc(all, func(t *target) bool { return t.name == name })
		}
		if !there {
			shown, _, err := b.f.nameOf(c.item, b.reg)
			if err != nil {
				return err
			}
			strays = append(strays, stray{c.item.at, shown + " (" + where + ")"})
		}
	}
	slices.SortFunc(strays, func(a, b stray) int { return cmp.Compare(a.at, b.at) })
	for _, s := range strays {
		b.strays = append(b.strays, s.name)
	}
	return nil
}

// stray is a claim about nothing that was declared, and where it is in its file.
type stray struct {
	at   int64
	name string
}

// nameOfItem names the target of an item.
func (b *bound) nameOfItem(i uint32) string {
	targets, err := b.targetsAt(int(b.groupAt[i]))
	if err != nil {
		return "another one"
	}
	for _, t := range targets {
		if t.first == i {
			return t.shown()
		}
	}
	return "another one"
}

// nameOf is the record that a claim names; with a registry, as a report may have it.
func (f *File) nameOf(it item, reg *connectors.Registry) (name, where string, err error) {
	l, err := f.lineOf(it)
	if err != nil {
		return "", "", err
	}
	var e exported
	if err := json.Unmarshal(l.raw, &e); err != nil {
		return "", "", err
	}
	if reg != nil {
		_, p, _ := reg.Lookup(e.Destination, e.Kind) // what is not there marks nothing
		e.Key = shownKey(e.Key, p.Sensitive)
	}
	return recordName(e.Destination, e.Kind, e.Key), l.where(), nil
}

// queries are those that show a target: by its key, and by each stamp that a create of it can
// have left.
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

// errWriteOnly is why a target cannot be read.
var errWriteOnly = errors.New("nothing can be read at this destination")
