package rest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// profile makes the profile of a kind from its file and its requests.
func (l *loader) profile(k *kind, file *fileKind) {
	f := &file.Profile
	f.Common.At = f.At
	p := f.Common.Compile(&l.Reader, func(w intent.WriteType) bool { return k.writes[w] != nil })
	p.WriteOnly, p.Stamped, p.FreshKeys = f.WriteOnly, f.Stamped, f.FreshKeys
	l.keyComparisons(&f.Common, p.Compare)
	for _, w := range p.Writes {
		one := k.writes[w]
		if one.unique {
			p.Unique = append(p.Unique, w)
		}
		if one.guard != nil {
			p.Conditional = append(p.Conditional, w)
		}
		if one.key != nil {
			if p.NativeWindow == nil {
				p.NativeWindow = map[intent.WriteType]time.Duration{}
			}
			p.NativeWindow[w] = one.key.window
		}
		if _, ok := k.undo[w]; ok {
			p.Undo = append(p.Undo, w)
		}
	}
	_, create := k.undo[intent.Create]
	if _, update := k.undo[intent.Update]; create && update && k.writes[intent.Upsert] != nil {
		p.Undo = append(p.Undo, intent.Upsert)
	}
	k.otherLogin = l.d.readAuth != nil && !slices.ContainsFunc(k.reads, func(r *read) bool {
		return uses(r.request.holes(), "secret") || r.visible != nil && uses(r.visible.request.holes(), "secret")
	})
	p.Reads, p.BulkLimit = k.ways()
	if p.BulkWait = time.Duration(f.BulkWait); p.BulkWait > 0 && p.BulkLimit == 0 {
		l.Say(f.At.Line, f.At.Field+".bulk_wait", "is set where no reads are shared; want a bulk read, or reads that are lists and ask for nothing of the record")
	}
	if k.record != nil && k.record.settles != nil {
		within := connectors.Within(k.record.settles.within)
		p.Open = within
		if _, rechecked := p.Recheck.Declared(); !rechecked {
			p.Recheck = within
		}
	}
	p.Summary = l.summary(k, file.Summary)
	k.profile = p
}

// summary reads how records are named to people.
func (l *loader) summary(k *kind, f *declared.Summary) connectors.Summary {
	names := maps.Clone(l.keys)
	all := false // a write sends whatever fields it is given
	for _, w := range k.writes {
		for place := range w.mentions {
			_, name, _ := strings.Cut(place, ".")
			names[name] = true
		}
		all = all || len(w.covers) > 0
	}
	if k.record != nil {
		for name := range k.record.fields {
			names[name] = true
		}
	}
	return f.Compile(&l.Reader, func(path string) bool {
		for name := range intent.Pointer(path).Tokens() {
			return all || names[name] || k.record != nil && k.record.mayShow(name)
		}
		return false
	}, yamlfile.Names(names))
}

// ways lists the ways of reading, and how many queries a bulk read takes.
func (k *kind) ways() ([]connectors.ReadPath, int) {
	var all []connectors.ReadPath
	bulk, way := 0, connectors.OwnCall
	if k.otherLogin {
		way = connectors.OtherLogin
	}
	for _, r := range k.reads {
		bulk = max(bulk, r.bulk)
		strength := connectors.Weak
		if r.strong {
			strength = connectors.Strong
		}
		for _, by := range []struct {
			name string
			is   bool
		}{{"ref", r.ref}, {"key", r.key}, {"stamp", r.stamp}} {
			if by.is {
				all = append(all, connectors.ReadPath{Path: r.name, By: by.name, Strength: strength, Independent: way})
			}
		}
	}
	if bulk == 0 && len(k.reads) > 0 && k.shared() {
		bulk = maxShared
	}
	return all, bulk
}

// keyComparisons refuses rules by which no field of a key can be found.
func (l *loader) keyComparisons(f *declared.Profile, all map[string]intent.Comparison) {
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if !l.keys[strings.TrimPrefix(path, "/")] {
			continue
		}
		for _, r := range all[path] {
			if !slices.Contains(keyRules, r.Name) {
				l.At(f.Compared(path), "has the rule %q; a field of the key can have trim, fold, string and unescape", r.Name)
			}
		}
	}
}

func (l *loader) undos(k *kind, f *fileKind) {
	k.undo = map[intent.WriteType]undo{}
	right := map[intent.WriteType][]intent.WriteType{
		intent.Create: {intent.Delete, intent.Update},
		intent.Update: {intent.Update},
		intent.Delete: {intent.Create},
	}
	for _, name := range slices.Sorted(maps.Keys(f.Undo)) {
		w, u := intent.WriteType(name), f.Undo[name]
		by := intent.WriteType(u.Write.Value)
		if by == "" {
			by = intent.Update
		}
		switch {
		case !slices.Contains(right[w], by):
			l.At(u.At, "want create: delete, create: {update: {…}}, update: update, or delete: create")
			continue
		case k.writes[w] == nil || k.writes[by] == nil:
			l.At(u.At, "needs the writes %s and %s, and one of them is not there", w, by)
			continue
		case w == intent.Create && by == intent.Update && !u.Update.There():
			l.At(u.At, "undoes a create by an update; want what it expects, such as {update: {state: closed}}")
			continue
		}
		one := undo{write: by}
		if u.Update.There() {
			v, err := l.newTree(u.Update, u.At.Field+".update", known{}).body(filling{})
			object, isObject := v.(map[string]any)
			if err != nil || !isObject || len(object) == 0 {
				l.At(u.At, "want names with values for the update to expect")
			}
			one.expect = object
		}
		k.undo[w] = one
	}
}

func (l *loader) samples(k *kind, f *fileKind) {
	if f.Sample == nil {
		return
	}
	s, at := f.Sample, f.Sample.At
	k.sample = &sample{
		key:     l.sampled(s.Key, at.Field+".key"),
		create:  l.sampled(s.Create, at.Field+".create"),
		update:  l.sampled(s.Update, at.Field+".update"),
		payload: l.sampled(s.Payload, at.Field+".payload"),
	}
	if k.sample.key == nil || !uses(k.sample.key.holes(), "sample") && !uses(k.sample.key.holes(), "sample_hex") {
		l.Say(at.Line, at.Field+".key", "want a business key with {sample} in it, so that two samples are two records")
	}
	if k.sample.create == nil {
		l.Say(at.Line, at.Field+".create", "is missing; want what a create of a sample expects")
	}
}

func (l *loader) sampled(n yamlfile.Node, field string) *tree {
	if !n.There() {
		return nil
	}
	t := l.newTree(n, field, forSample)
	if t.kind != objectTree {
		l.Say(n.Line(), field, "is %s; want names with values", n.Kind())
		return nil
	}
	return t
}

func (l *loader) claims(k *kind, f *fileKind) {
	topics := connectors.Topics()
	claimed := map[connectors.Topic]bool{}
	for _, c := range f.Claims {
		about := connectors.Topic(c.About.Value)
		if !slices.Contains(topics, about) {
			l.Say(c.At.Line, c.At.Field+".about", "is %q; want one of %s", yamlfile.Clip(c.About.Value), words(topics))
		}
		l.Required(c.Says, c.At, "says", "a sentence or two")
		l.Required(c.Source, c.At, "source", "where that is known from: an address, a standard, or this package")
		claimed[about] = true
		k.claims = append(k.claims, connectors.Claim{About: about, Says: c.Says.Value, Source: c.Source.Value, Assumed: c.Assumed})
	}
	var silent []connectors.Topic
	for _, t := range topics {
		if !claimed[t] {
			silent = append(silent, t)
		}
	}
	if len(f.Claims) > 0 && len(silent) > 0 {
		l.Say(f.At.Line, f.At.Field+".claims", "say nothing about %s; want at least one claim for each topic", words(silent))
	}
}

func words(topics []connectors.Topic) string {
	var all []string
	for _, t := range topics {
		all = append(all, string(t))
	}
	return strings.Join(all, ", ")
}
