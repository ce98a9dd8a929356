package eval

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// maxDeclared is how many declared effects an evaluation has: each costs about a
	// hundred bytes of memory.
	maxDeclared = 4_000_000
	// maxWhole is how many there are where all of them are held at once, with what
	// was read of them: for a snapshot, and for the check collateral.
	maxWhole = 100_000
	// defaultPatience is how long a read that fails is repeated, and how long is
	// waited for a settle time.
	defaultPatience = time.Minute
)

// Version is the version of the format of files of checks, and of baselines and
// snapshots. Others are refused.
const Version = 1

// File is an evaluation as it was read: what was declared, what was claimed, and
// what is to be checked. It is bound to no destination.
type File struct {
	path, name, about string
	read              []string       // all files that it was read from
	progress          func(Progress) // nil for none
	mode              string         // "run", "workflow" or "window"
	subject           string         // of a workflow its name
	ended             time.Time
	patience          time.Duration
	// items are the declared effects, places their places, sources the declaring files. inline
	// are effects of the file of checks itself.
	items        []item
	meant        int // how many of them are meant
	places       []placeName
	placeNumbers map[placeName]uint16
	sources      []*source
	inline       []line
	claims       []claim
	strays       []stray // claims about writes that were not declared
	checks       checksForm
	snapshot     []snapRecord
	rates        *rates
	opinions     []Opinion
}

// Files lists the files that the evaluation was read from: the file of checks first, then
// those that it names.
func (f *File) Files() []string { return slices.Clone(f.read) }

// fileOf is the path of the file of an item.
func (f *File) fileOf(it item) string {
	if it.source == 0 {
		return f.path
	}
	return f.sources[it.source-1].path
}

// placed is an effect and where it was declared.
type placed struct {
	Effect
	line line
	item uint32
}

// Name is the evaluation's own.
func (f *File) Name() string { return f.name }

// Load reads a file of checks and all files that it names, whose paths are relative to it. The
// error is an [InvalidError] that lists every error.
func Load(path string) (*File, error) { return load(path, false, nil) }

// LoadWith is Load that reports how far it is with a long export.
func LoadWith(path string, progress func(Progress)) (*File, error) {
	return load(path, false, progress)
}

// LoadBefore is Load before a run, for [Snapshot]: of the files that it names only
// that of effects is read, since the others come of the run.
func LoadBefore(path string) (*File, error) { return load(path, true, nil) }

func load(path string, before bool, progress func(Progress)) (*File, error) {
	l := &loader{path: path, f: &File{path: path, read: []string{path}, progress: progress}, before: before}
	l.Reader = yamlfile.Reader{Empty: "want checks; docs/operate/evidence.md says what they look like",
		Secrets: "an evaluation takes its destinations, and their secrets, from the configuration"}
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		l.ps.say(path, 0, "", "cannot be read: %s", reason(err))
		return nil, l.ps.err()
	}
	var form fileForm
	if body, ok := l.Parse(text); ok {
		l.Fill(body, "", &form)
		l.file(&form)
	}
	yamlfile.Sort(l.Problems)
	all := problems{}
	for _, p := range l.Problems {
		all.say(path, p.Line, p.Field, "%s", p.Problem)
	}
	all = append(all, l.ps...)
	return l.f, all.err()
}

// loader reads a file. Reader collects what is wrong with it, ps what is wrong
// with those it names.
type loader struct {
	yamlfile.Reader
	path string
	ps   problems
	f    *File
	// before means that there was no run yet.
	before bool
}

// beside is the path of a file that the file of checks names, which is about to be read.
func (l *loader) beside(t yamlfile.Text) string {
	path := t.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(l.path), path)
	}
	l.f.read = append(l.f.read, path)
	return path
}

func (l *loader) file(form *fileForm) {
	if form.Evaluation != Version {
		l.Say(form.At.Line, "evaluation", "is %d; want %d, the version of the format", form.Evaluation, Version)
	}
	if form.Name.Value == "" && form.Name.Line == 0 {
		l.Say(form.At.Line, "name", "is missing; want a name, such as nightly-orders")
	}
	l.f.name, l.f.about = form.Name.Value, form.About
	l.f.ended = form.Ended.Time
	l.f.patience = cmp.Or(time.Duration(form.Patience), defaultPatience)
	ids := l.declared(form)
	var claimed counter
	if form.Outcomes.Value != "" && !l.before {
		l.readClaims(l.beside(form.Outcomes), ids, &claimed)
	}
	if form.Checks == nil && form.Rates == nil {
		l.Say(form.At.Line, "checks", "is missing; want what is to be checked, such as {exactly: true}, or rates")
	}
	if form.Checks != nil {
		l.f.checks = *form.Checks
		l.checks(form.Checks)
	}
	if l.before {
		return
	}
	if form.Rates != nil {
		l.f.rates = l.readRates(form.Rates, &claimed)
	}
	for _, o := range form.Opinions {
		l.f.opinions = append(l.f.opinions, readOpinions(&l.ps, l.beside(o))...)
	}
}

// declared reads what was declared, from the one place that the file names. It gives
// the ids of the writes, in order.
func (l *loader) declared(form *fileForm) (ids []ref) {
	given := 0
	for _, there := range []bool{form.Run != nil, form.Workflow != nil, form.Window != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		l.Say(form.At.Line, "", "names %d of run, workflow and window; want one of them: what was declared", given)
		return nil
	}
	switch {
	case form.Run != nil:
		l.f.mode = "run"
		l.run(form.Run)
	case form.Workflow != nil:
		w := form.Workflow
		l.f.mode, l.f.subject = "workflow", w.Name.Value
		if w.Name.Value == "" && w.Name.Line == 0 {
			l.Say(w.At.Line, w.At.Field+".name", "is missing; want the workflow whose writes are meant")
		}
		ids = l.writes(w.Writes, w.At, time.Time{}, func(one write) bool {
			return one.intent.Workflow == w.Name.Value && (w.Tenant.Value == "" || one.intent.Tenant == w.Tenant.Value)
		})
	default:
		w := form.Window
		l.f.mode = "window"
		if w.From.IsZero() || w.Until.IsZero() || !w.From.Before(w.Until.Time) {
			l.At(w.At, "wants from and until, the one before the other")
		}
		l.f.ended = cmp.Or(l.f.ended, w.Until.Time)
		ids = l.writes(w.Writes, w.At, w.From.Time, func(one write) bool {
			at := one.exported.Created
			return (at.IsZero() || !at.Before(w.From.Time) && !at.After(w.Until.Time)) && (w.Tenant.Value == "" || one.intent.Tenant == w.Tenant.Value)
		})
		l.narrow(form, w)
	}
	most := maxDeclared
	if l.before || form.Checks != nil && form.Checks.Collateral != nil {
		most = maxWhole
	}
	if l.f.meant > most {
		l.Say(form.At.Line, "", "declares %d effects; want at most %d in one evaluation, and at most %d with collateral or for a snapshot", l.f.meant, maxDeclared, maxWhole)
	}
	return ids
}

// narrow gives lists the time of the window where they name none.
func (l *loader) narrow(form *fileForm, w *windowForm) {
	if form.Checks == nil {
		return
	}
	for _, scopes := range [][]scopeForm{form.Checks.Unaccounted, form.Checks.Undeclared} {
		for i := range scopes {
			if scopes[i].always() {
				scopes[i].From, scopes[i].Until = w.From, w.Until
			}
		}
	}
}

// run reads the effects of a run, those written in the file and those of the file
// that it names.
func (l *loader) run(r *runForm) {
	var names []ref
	one := func(at line) {
		e, ok := effectOf(&l.ps, at)
		if !ok {
			return
		}
		l.f.add(&l.ps, at, placeName{e.Destination, e.Kind}, time.Time{}, isEffect)
		names = append(names, ref{digestOf(recordName(e.Destination, e.Kind, e.Key), e.Stamp), uint32(len(l.f.items) - 1)}) //nolint:gosec // files are bounded
	}
	for i, n := range r.Effects {
		v := plain(&l.Reader, n, r.At.Field+".effects", 0)
		raw, err := json.Marshal(v)
		if err != nil {
			l.Say(n.Line(), r.At.Field+".effects", "element %d cannot be understood", i)
			continue
		}
		at := line{file: l.path, n: n.Line(), at: int64(len(l.f.inline)), raw: raw}
		l.f.inline = append(l.f.inline, at)
		one(at)
	}
	if r.File.Value != "" {
		path := l.beside(r.File)
		if number := l.f.keep(&l.ps, path); number > 0 {
			eachLine(&l.ps, path, number, one)
		}
	}
	if len(r.Effects) == 0 && r.File.Line == 0 {
		l.At(r.At, "declares nothing; want effects, or file: a file of them, one a line")
	}
	l.f.sort(names)
	for i := 1; i < len(names); i++ {
		if names[i].digest == names[i-1].digest {
			first, again := l.f.items[names[i-1].item], l.f.items[names[i].item]
			l.ps.say(l.f.fileOf(again), int(again.line), "key", "is that of %s too; want one line with the count", line{file: l.f.fileOf(first), n: int(first.line)}.where())
		}
	}
}

// writes reads an export, keeps the places of what is meant, and gives the ids of all
// writes in order. The export need not reach back beyond from, where that is given.
func (l *loader) writes(t yamlfile.Text, at yamlfile.Place, from time.Time, meant func(write) bool) (ids []ref) {
	if t.Value == "" {
		if t.Line == 0 {
			l.Say(at.Line, at.Field+".writes", "is missing; want an export of what was declared, such as `readback list --json` prints it")
		}
		return nil
	}
	if l.before {
		return nil // what will be declared is not known; the scopes are
	}
	path := l.beside(t)
	var all pages
	ids = l.f.readExport(&l.ps, path, all.note, func(w write) uint8 {
		if !meant(w) {
			return isOther
		}
		if last := w.exported.LastSend; !l.f.ended.IsZero() && last.After(l.f.ended) {
			l.f.ended = last // reads that may be older prove nothing
		}
		return 0
	})
	all.whole(&l.ps, path, from)
	if len(ids) > 0 && l.f.meant == 0 {
		l.At(t.Place, "has %d writes, none of which is meant; see whether the name, the times and the tenant are right", len(ids))
	}
	return ids
}

// checks validates the checks, as far as that needs no destination.
func (l *loader) checks(c *checksForm) {
	if !c.Exactly && !c.Expected && !c.Verified && len(c.Unaccounted)+len(c.Undeclared) == 0 && c.Collateral == nil {
		l.At(c.At, "asks for nothing; want one of exactly, expected, verified, unaccounted, undeclared, collateral")
	}
	scopes := append(append([]scopeForm{}, c.Unaccounted...), c.Undeclared...)
	if k := c.Collateral; k != nil {
		for i := range k.Scopes {
			k.Scopes[i].Of.Value = cmp.Or(k.Scopes[i].Of.Value, ofAll)
			if !k.Scopes[i].always() {
				l.At(k.Scopes[i].At, "has from or until; want neither: what was there before is of any time")
			}
		}
		scopes = append(scopes, k.Scopes...)
		if k.Snapshot.Value != "" && !l.before {
			l.f.snapshot = readSnapshot(&l.ps, l.beside(k.Snapshot), l.f.name, l.f.ended)
		}
	}
	for _, s := range scopes {
		l.scope(s)
	}
	for _, s := range c.Undeclared {
		if s.Of.Value == ofAll {
			l.At(s.Of.Place, "is all; what was sent is recognised by its stamp, so that only ours can be meant")
		}
	}
}

// The records that a scope means.
const (
	ofOurs = "ours"
	ofAll  = "all"
)

func (l *loader) scope(s scopeForm) {
	if s.Destination.Value == "" && s.Destination.Line == 0 {
		l.Say(s.At.Line, s.At.Field+".destination", "is missing; want the name of a destination of the configuration")
	}
	if s.Kind.Value == "" && s.Kind.Line == 0 {
		l.Say(s.At.Line, s.At.Field+".kind", "is missing; want the kind of record there")
	}
	if of := s.Of.Value; of != "" && of != ofOurs && of != ofAll {
		l.At(s.Of.Place, "is %q; want ours (what has a stamp of readback) or all", yamlfile.Clip(of))
	}
	if !s.From.IsZero() && !s.Until.IsZero() && s.Until.Before(s.From.Time) {
		l.At(s.At, "ends before it begins")
	}
}

// always reports whether a scope is of any time.
func (s scopeForm) always() bool { return s.From.IsZero() && s.Until.IsZero() }

func (s scopeForm) within() intent.Fields {
	if len(s.Within.fields) == 0 {
		return nil
	}
	return intent.Fields(s.Within.fields)
}
