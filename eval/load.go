package eval

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Version is the version of the format of files of checks, and of baselines and
// snapshots. Others are refused.
const Version = 1

// File is an evaluation as it was read: what was declared, what was claimed, and
// what is to be checked. It is bound to no destination.
type File struct {
	path, name, about string
	mode              string // "run", "workflow" or "window"
	subject           string // of a workflow its name
	ended             time.Time
	patience          time.Duration
	effects           []placed
	writes            []write
	others            []write // of the export, and not meant
	claims            []claim
	checks            checksForm
	snapshot          []snapRecord
	rates             *rates
	opinions          []Opinion
}

// placed is an effect and where it was declared.
type placed struct {
	Effect
	line line
}

// Name is the evaluation's own.
func (f *File) Name() string { return f.name }

// Load reads a file of checks and all files that it names, whose paths are
// relative to it. The error is an [InvalidError] that lists everything that is
// wrong.
func Load(path string) (*File, error) { return load(path, false) }

// LoadBefore is Load before a run, for [Snapshot]: of the files that it names only
// that of effects is read, since the others come of the run.
func LoadBefore(path string) (*File, error) { return load(path, true) }

func load(path string, before bool) (*File, error) {
	l := &loader{path: path, f: &File{path: path}, before: before}
	l.Reader = yamlfile.Reader{Empty: "want checks; docs/evaluation.md says what they look like",
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
	// before says that there was no run yet.
	before bool
}

func (l *loader) beside(t yamlfile.Text) string {
	if filepath.IsAbs(t.Value) {
		return t.Value
	}
	return filepath.Join(filepath.Dir(l.path), t.Value)
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
	l.declared(form)
	var claimed []exported
	if form.Outcomes.Value != "" && !l.before {
		l.f.claims, claimed = readClaims(&l.ps, l.beside(form.Outcomes))
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
		l.f.rates = l.readRates(form.Rates, claimed)
	}
	for _, o := range form.Opinions {
		l.f.opinions = append(l.f.opinions, readOpinions(&l.ps, l.beside(o))...)
	}
}

// declared reads what was declared, from the one place that the file names.
func (l *loader) declared(form *fileForm) {
	given := 0
	for _, there := range []bool{form.Run != nil, form.Workflow != nil, form.Window != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		l.Say(form.At.Line, "", "names %d of run, workflow and window; want one of them: what was declared", given)
		return
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
		l.writes(w.Writes, w.At, time.Time{}, func(one write) bool {
			return one.intent.Workflow == w.Name.Value && (w.Tenant.Value == "" || one.intent.Tenant == w.Tenant.Value)
		})
	default:
		w := form.Window
		l.f.mode = "window"
		if w.From.IsZero() || w.Until.IsZero() || !w.From.Before(w.Until.Time) {
			l.At(w.At, "wants from and until, the one before the other")
		}
		l.f.ended = cmp.Or(l.f.ended, w.Until.Time)
		l.writes(w.Writes, w.At, w.From.Time, func(one write) bool {
			at := one.exported.Created
			return (at.IsZero() || !at.Before(w.From.Time) && !at.After(w.Until.Time)) && (w.Tenant.Value == "" || one.intent.Tenant == w.Tenant.Value)
		})
		l.narrow(form, w)
	}
	if len(l.f.effects)+len(l.f.writes) > maxDeclared {
		l.Say(form.At.Line, "", "declares %d effects; want at most %d in one evaluation", len(l.f.effects)+len(l.f.writes), maxDeclared)
	}
}

// narrow gives lists the time of the window where they name none.
func (l *loader) narrow(form *fileForm, w *windowForm) {
	if form.Checks == nil {
		return
	}
	for _, scopes := range [][]scopeForm{form.Checks.Unaccounted, form.Checks.Undeclared} {
		for i := range scopes {
			if scopes[i].From.IsZero() && scopes[i].Until.IsZero() {
				scopes[i].From, scopes[i].Until = w.From, w.Until
			}
		}
	}
}

// run reads the effects of a run, those written in the file and those of the file
// that it names.
func (l *loader) run(r *runForm) {
	var lines []line
	for i, n := range r.Effects {
		v := plain(&l.Reader, n, r.At.Field+".effects", 0)
		raw, err := json.Marshal(v)
		if err != nil {
			l.Say(n.Line(), r.At.Field+".effects", "element %d cannot be understood", i)
			continue
		}
		lines = append(lines, line{l.path, n.Line(), raw})
	}
	if r.File.Value != "" {
		lines = append(lines, readLines(&l.ps, l.beside(r.File))...)
	}
	if len(r.Effects) == 0 && r.File.Line == 0 {
		l.At(r.At, "declares nothing; want effects, or file: a file of them, one a line")
	}
	known := map[string]line{}
	for _, one := range lines {
		e, ok := effectOf(&l.ps, one)
		if !ok {
			continue
		}
		name := recordName(e.Destination, e.Kind, e.Key) + " " + e.Stamp
		if first, twice := known[name]; twice {
			l.ps.say(one.file, one.n, "key", "is that of %s too; want one line with the count", first.where())
			continue
		}
		known[name] = one
		l.f.effects = append(l.f.effects, placed{e, one})
	}
}

// writes reads an export and keeps what is meant. It need not reach back beyond
// from, where that is given.
func (l *loader) writes(t yamlfile.Text, at yamlfile.Place, from time.Time, meant func(write) bool) {
	if t.Value == "" {
		if t.Line == 0 {
			l.Say(at.Line, at.Field+".writes", "is missing; want an export of what was declared, such as `readback list --json` prints it")
		}
		return
	}
	if l.before {
		return // what will be declared is not known; the scopes are
	}
	path := l.beside(t)
	all := readExport(&l.ps, path, from)
	for _, one := range all {
		if !meant(one) {
			l.f.others = append(l.f.others, one)
			continue
		}
		l.f.writes = append(l.f.writes, one)
		if last := one.exported.LastSend; !l.f.ended.IsZero() && last.After(l.f.ended) {
			l.f.ended = last // reads that may be older prove nothing
		}
	}
	if len(all) > 0 && len(l.f.writes) == 0 {
		l.At(t.Place, "has %d writes, none of which is meant; see whether the name, the times and the tenant are right", len(all))
	}
}

// checks looks at what is checked, as far as that needs no destination.
func (l *loader) checks(c *checksForm) {
	if !c.Exactly && !c.Expected && !c.Verified && len(c.Unaccounted)+len(c.Undeclared) == 0 && c.Collateral == nil {
		l.At(c.At, "asks for nothing; want one of exactly, expected, verified, unaccounted, undeclared, collateral")
	}
	scopes := append(append([]scopeForm{}, c.Unaccounted...), c.Undeclared...)
	if k := c.Collateral; k != nil {
		for i := range k.Scopes {
			k.Scopes[i].Of.Value = cmp.Or(k.Scopes[i].Of.Value, ofAll)
			if !k.Scopes[i].From.IsZero() || !k.Scopes[i].Until.IsZero() {
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
			l.At(s.Of.Place, "is all; what was sent is told by its stamp, so that only ours can be meant")
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
		l.At(s.Of.Place, "is %q; want ours (what bears a stamp of readback) or all", yamlfile.Clip(of))
	}
	if !s.From.IsZero() && !s.Until.IsZero() && s.Until.Before(s.From.Time) {
		l.At(s.At, "ends before it begins")
	}
}

func (s scopeForm) within() intent.Fields {
	if len(s.Within.fields) == 0 {
		return nil
	}
	return intent.Fields(s.Within.fields)
}
