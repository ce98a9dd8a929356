package mcp

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// maxFile is how large a contract may be: the longest of those that come
// with the package has a few kilobytes.
const maxFile = 1 << 20

// loader turns a file into a contract and collects what is wrong.
type loader struct {
	yamlfile.Reader
	c *Contract
}

// Load reads a contract strictly. file is its name for problems. The error wraps
// [ErrInvalid] and lists everything that is wrong, with the lines.
func Load(text []byte, file string) (*Contract, error) {
	l := &loader{Reader: yamlfile.Reader{
		Empty: "`readback contract suggest` drafts one", Secrets: "secrets belong to the destination in the configuration; take it out here",
	}, c: &Contract{digests: map[string][]string{}, kinds: map[string]*kind{}, tools: map[string]*write{}}}
	var f fileContract
	if err := declared.Load(&l.Reader, text, maxFile, file, ErrInvalid, &f, func() { l.contract(&f) }); err != nil {
		return nil, err
	}
	return l.c, nil
}

var (
	word       = regexp.MustCompile(`^[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*$`)
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

func (l *loader) contract(f *fileContract) {
	if f.Draft.Line != 0 {
		l.At(f.Draft.Place, "says that the contract is unfinished: check every line marked GUESS, then remove this line")
	}
	if f.Contract != 1 {
		l.Say(f.At.Line, "contract", "is %d; want 1, the version of the format", f.Contract)
	}
	declared.Name(&l.Reader, f.Name, f.At, "a name such as memory")
	l.Required(f.Server, f.At, "server", "the server and its version, for people")
	l.c.name, l.c.server, l.c.serial = f.Name.Value, f.Server.Value, f.Serial
	l.c.reads = yamlfile.Values(f.Reads)
	for _, name := range slices.Sorted(maps.Keys(f.Digests)) {
		for _, t := range f.Digests[name] {
			if !digestForm.MatchString(t.Value) && (t.Value != unpinned || len(f.Digests[name]) > 1) {
				l.At(t.Place, "is no digest; want sha256: and 64 digits, as `readback contract pin` writes it, a list of these, or %s alone", unpinned)
			}
		}
		l.c.digests[name] = yamlfile.Values(f.Digests[name])
	}
	if len(f.Kinds) == 0 {
		l.Say(f.At.Line, "kinds", "is missing; want at least one kind of record")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Kinds)) {
		if k := f.Kinds[name]; k != nil {
			l.kind(name, k)
		}
	}
	l.pinned(f)
	if len(l.Problems) == 0 {
		l.trials(f)
	}
}

// pinned wants a digest for every tool that writes or proves, and no tool in two
// places.
func (l *loader) pinned(f *fileContract) {
	for _, tool := range slices.Sorted(maps.Keys(l.c.tools)) {
		if slices.Contains(l.c.Reads(), tool) {
			l.Say(f.At.Line, "reads", "names %s, which is a write of the kind %s", yamlfile.Clip(tool), l.c.tools[tool].kind.name)
		}
		l.wantDigest(f, tool)
		for _, proof := range l.c.Proofs(tool) {
			l.wantDigest(f, proof)
		}
	}
}

func (l *loader) wantDigest(f *fileContract, tool string) {
	if len(l.c.digests[tool]) > 0 {
		return
	}
	l.c.digests[tool] = []string{""} // reported once
	l.Say(f.At.Line, "digests", "has none for %s; want one for every tool that writes or proves, so that a tool that changes is noticed", yamlfile.Clip(tool))
}

func (l *loader) kind(name string, f *fileKind) {
	k := &kind{name: name, writes: map[intent.WriteType]*write{}, undo: map[intent.WriteType]intent.WriteType{}}
	l.c.kinds[name] = k
	if !word.MatchString(name) || name == WriteOnlyKind {
		l.At(f.At, "is no name for a kind; want letters, digits, dashes and underscores, and not %s", WriteOnlyKind)
	}
	l.shape(k, f)
	for _, w := range slices.Sorted(maps.Keys(f.Writes)) {
		if !slices.Contains(declared.WriteTypes, intent.WriteType(w)) {
			l.Say(f.Writes[w].At.Line, f.At.Field+".writes", "has %q; want create, update, upsert or delete", yamlfile.Clip(w))
			continue
		}
		l.write(k, intent.WriteType(w), f.Writes[w])
	}
	if len(f.Writes) == 0 {
		l.At(f.At, "has no writes; want at least one")
	}
	if f.Record == nil {
		l.At(f.At, "has no record; want the paths of its fields in an answer")
	} else {
		k.record = l.record(k, f.Record)
	}
	for _, r := range f.Reads {
		l.read(k, r)
	}
	l.readsOf(k, f)
	l.profile(k, f)
	l.undos(k, f)
}

// shape finds out what the writes of a kind have in common.
func (l *loader) shape(k *kind, f *fileKind) {
	first := true
	for _, name := range slices.Sorted(maps.Keys(f.Writes)) {
		w := f.Writes[name]
		if w == nil {
			continue
		}
		keys, each := slices.Sorted(maps.Keys(w.Key)), w.Each.Value != ""
		switch {
		case first:
			k.keys, k.each, first = keys, each, false
		case !slices.Equal(keys, k.keys):
			l.At(w.At, "has the key %s, and another write of the kind has %s; want one key", strings.Join(keys, ", "), strings.Join(k.keys, ", "))
		case each != k.each:
			l.At(w.At, "writes several records and another write of the kind one, or the reverse; want one way")
		}
	}
	for _, r := range f.Reads {
		k.parts = k.parts || r != nil && r.As.Value != ""
	}
	if k.each && k.parts {
		l.At(f.At, "has each and as; want one of them")
	}
	if len(k.keys) == 0 && !first {
		l.At(f.At, "has writes without a key; want the path of the business key in the arguments")
	}
}

func (l *loader) profile(k *kind, file *fileKind) {
	f := &file.Profile
	p := f.Compile(&l.Reader, func(w intent.WriteType) bool { return k.writes[w] != nil })
	p.Stamped = k.record != nil && k.record.stamp != nil && !k.each && !k.parts
	if k.each { // the places of the fields are other ones in every intent
		for path := range p.Compare {
			if !slices.Contains(k.named(), strings.TrimPrefix(path, "/")) {
				l.At(f.Compared(path), "is no field of a record; want one such as /title")
			}
		}
		k.compare, p.Compare = p.Compare, nil
	}
	for _, t := range p.Writes {
		w := k.writes[t]
		if w.idempotent {
			p.Unique = append(p.Unique, t)
		}
		if w.window > 0 {
			if p.NativeWindow == nil {
				p.NativeWindow = map[intent.WriteType]time.Duration{}
			}
			p.NativeWindow[t] = w.window
		}
	}
	for _, r := range k.reads {
		way := connectors.ReadPath{Path: r.name, By: r.by}
		if r.strong {
			way.Strength = connectors.Strong
		}
		p.Reads = append(p.Reads, way)
	}
	names := k.shown()
	p.Summary = file.Summary.Compile(&l.Reader, func(path string) bool {
		for name := range intent.Pointer(path).Tokens() {
			return names[name]
		}
		return false
	}, yamlfile.Names(names))
	k.profile = p
}

// shown are the fields that intents and records have. Those of a call for several records are not
// among them: the fields of one are within a list.
func (k *kind) shown() map[string]bool {
	names := map[string]bool{}
	for _, w := range k.writes {
		for _, part := range []map[string]source{w.key, w.expect} {
			for name := range part {
				names[name] = !k.each
			}
		}
	}
	for _, name := range k.named() {
		names[name] = !k.each
	}
	maps.DeleteFunc(names, func(_ string, is bool) bool { return !is })
	return names
}

// named lists the fields of a record that an answer shows.
func (k *kind) named() []string {
	if k.record == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(k.record.fields))
}

func (l *loader) undos(k *kind, f *fileKind) {
	right := map[intent.WriteType][]intent.WriteType{
		intent.Create: {intent.Delete},
		intent.Update: {intent.Update, intent.Upsert},
		intent.Upsert: {intent.Delete, intent.Update, intent.Upsert},
		intent.Delete: {intent.Create, intent.Upsert},
	}
	for _, name := range slices.Sorted(maps.Keys(f.Undo)) {
		did, u := intent.WriteType(name), intent.WriteType(f.Undo[name].Value)
		if !slices.Contains(right[did], u) || k.writes[did] == nil || k.writes[u] == nil {
			l.At(f.Undo[name].Place, "undoes %s by %s; want writes that this kind has: create by delete, update by update or upsert, upsert by delete, update or upsert, delete by create or upsert", yamlfile.Clip(name), yamlfile.Clip(string(u)))
			continue
		}
		k.undo[did] = u
		k.profile.Undo = append(k.profile.Undo, did)
	}
}
