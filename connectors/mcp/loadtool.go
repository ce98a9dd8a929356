package mcp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// write reads one tool that writes.
func (l *loader) write(k *kind, t intent.WriteType, f *fileWrite) {
	if f == nil {
		return
	}
	w := &write{kind: k, write: t, tool: f.Tool.Value, each: l.newPath(f.Each), within: l.newPath(f.Within),
		ref: l.newPath(f.Ref), stamp: l.newPath(f.Stamp), idempotent: f.Idempotent, made: l.singular(f.Made),
		refused: l.patterns(f.Refused), conflict: l.patterns(f.Conflict), throttled: l.patterns(f.Throttled)}
	k.writes[t] = w
	if l.Required(f.Tool, f.At, "tool", "the tool that writes") {
		if other, twice := l.c.tools[w.tool]; twice {
			l.At(f.Tool.Place, "is %s, which is the %s of the kind %s already; want each tool once", yamlfile.Clip(w.tool), other.write, other.kind.name)
		}
		l.c.tools[w.tool] = w
	}
	w.key = l.sources(f.Key, w)
	w.expect = l.sources(f.Expect, w)
	w.require = l.sources(f.Require, w)
	l.keysOf(f, w)
	l.shapeOf(f, w)
	defer func() {
		for i, u := range w.notChecked {
			if u.path.set && slices.ContainsFunc(w.covered(), func(p path) bool { return slices.Equal(p.names, u.path.names) }) {
				l.At(f.NotChecked[i].Place, "is compared, or readback's own to set; want arguments that nothing else of the write names")
			}
		}
	}()
	if f.Idempotency != nil {
		w.idempotency, w.window = l.newPath(f.Idempotency.Argument), time.Duration(f.Idempotency.Window)
		if !w.idempotency.set || w.window <= 0 {
			l.At(f.Idempotency.At, "want argument (the path of the key) and window (for how long the server knows it)")
		}
	}
	for _, t := range f.NotChecked {
		name := t
		name.Value = "$." + strings.TrimPrefix(t.Value, "$.")
		u := unchecked{path: l.newPath(name), line: t.Line}
		w.notChecked = append(w.notChecked, u)
	}
	if f.Passes != nil {
		v, _ := l.Scalar(f.Passes.Equals, f.Passes.At.Field+".equals")
		w.passes = &passes{argument: l.newPath(f.Passes.Argument), equals: v}
		if !w.passes.argument.set || !f.Passes.Equals.There() {
			l.At(f.Passes.At, "want argument and equals, such as {argument: $.dryRun, equals: true}")
		}
	}
}

// keysOf checks that a key can be queried and sent again.
func (l *loader) keysOf(f *fileWrite, w *write) {
	for name, s := range w.key {
		if s.before != "" || s.replace != nil {
			l.At(f.Key[name].At, "comes from the record before; want a path into the arguments, or a value")
		}
	}
	if w.write == intent.Delete && len(f.Expect) > 0 {
		l.At(f.At, "is a delete and expects something; want none: the record must be gone")
	}
	if w.write != intent.Delete && len(f.Expect) == 0 && len(w.key) > 0 && !w.kind.each {
		l.At(f.At, "expects nothing; want at least one field that a later read must find (key fields may be repeated)")
	}
	if w.write == intent.Create && len(f.Require) > 0 {
		l.At(f.At, "is a create and requires something; want none: before it there is no record")
	}
}

// shapeOf checks the parts that only some writes have.
func (l *loader) shapeOf(f *fileWrite, w *write) {
	if w.within.set && !w.each.set {
		l.At(f.Within.Place, "is set without each")
	}
	if w.kind.each && (w.stamp.set || w.ref.set || f.Idempotency != nil || len(f.Require) > 0 || w.made != nil) {
		l.At(f.At, "writes several records; it can have no ref, stamp, idempotency, require or made")
	}
	if w.kind.parts && w.stamp.set {
		l.At(f.At, "has a stamp; a record in parts cannot carry one")
	}
	if w.stamp.set && len(w.stamp.names) == 0 || w.ref.set && len(w.ref.names) == 0 {
		l.At(f.At, "puts a stamp or a ref in the place of all arguments")
	}
}

func (l *loader) sources(from map[string]fileSource, w *write) map[string]source {
	all := map[string]source{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if !word.MatchString(name) || name == carried || name == eachKey {
			l.At(from[name].At, "is no name for a field; want letters, digits, dashes, dots and underscores, and neither %s nor %s", carried, eachKey)
		}
		all[name] = l.source(from[name], w)
	}
	return all
}

func (l *loader) source(f fileSource, w *write) source {
	if !declared.ExactlyOne(f.Path.Value != "", f.Outer.Value != "", f.Value.There(), f.Before.Value != "", f.Replace != nil) {
		l.At(f.At, "want one of a path, {outer: path}, {value: scalar}, {before: field} and {replace: …}")
		return source{}
	}
	switch {
	case f.Path.Value != "":
		return source{path: l.newPath(f.Path)}
	case f.Outer.Value != "":
		if !w.within.set {
			l.At(f.At, "is outer, and the write has no within")
		}
		return source{path: l.newPath(f.Outer), outer: true}
	case f.Before.Value != "":
		return source{before: f.Before.Value}
	case f.Replace != nil:
		r := &replace{each: l.newPath(f.Replace.Each), old: l.newPath(f.Replace.Old), new: l.newPath(f.Replace.New), lf: f.Replace.Lines.Value == "lf"}
		if f.Replace.Lines.Value != "" && !r.lf {
			l.At(f.Replace.Lines.Place, "is %q; want lf, for a tool that makes LF of every CRLF", yamlfile.Clip(f.Replace.Lines.Value))
		}
		if !r.each.set || !r.old.set || !r.new.set {
			l.At(f.Replace.At, "want each (the list of edits), old and new (the texts in an edit)")
		}
		return source{replace: r}
	}
	v, _ := l.Scalar(f.Value, f.At.Field+".value")
	return source{fixed: true, value: v}
}

func (l *loader) patterns(from []yamlfile.Text) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, t := range from {
		e := declared.Regexp(&l.Reader, t)
		if t.Value == "" || e != nil && e.MatchString("") {
			l.At(t.Place, "matches every text; want what only this answer says")
		}
		all = append(all, e)
	}
	return all
}

// read reads one tool that reads.
func (l *loader) read(k *kind, f *fileRead) {
	if f == nil {
		return
	}
	r := &read{name: f.Name.Value, tool: f.Tool.Value, by: f.By.Value, form: f.Answer.Value, as: f.As.Value,
		arguments: map[string]*template{}, within: l.singular(f.Within),
		absent: l.patterns(f.Absent), empty: l.patterns(f.Empty), limit: f.Limit, newest: f.Newest, strong: f.Strength.Value == "strong"}
	r.single, r.list = declared.Records(&l.Reader, f.At, f.Record, f.Records)
	k.reads = append(k.reads, r)
	l.Required(f.Tool, f.At, "tool", "the tool that reads")
	if r.name == "" {
		r.name = r.tool
	}
	if r.by == "" {
		r.by = "key"
	}
	for _, name := range slices.Sorted(maps.Keys(f.Arguments)) {
		r.arguments[name] = l.newTemplate(f.Arguments[name], f.At.Field+".arguments."+yamlfile.Clip(name), k)
		for _, h := range r.arguments[name].holes() {
			r.asksKeys = r.asksKeys || strings.HasPrefix(h, "key.")
		}
	}
	l.readShape(k, r, f)
}

func (l *loader) readShape(k *kind, r *read, f *fileRead) {
	declared.Choice(&l.Reader, f.By, "key", "stamp", "ref")
	declared.Choice(&l.Reader, f.Strength, "strong", "weak")
	declared.Choice(&l.Reader, f.Answer, "structured", "json", "text")
	switch {
	case k.parts && (r.as == "" || r.by != "key" || f.Records.Value != ""):
		l.At(f.At, "is of a record in parts; want as and record on every read, by key")
	case r.as != "" && !word.MatchString(r.as):
		l.At(f.As.Place, "is no name; want letters and digits")
	case r.by == "stamp" && (k.record == nil || k.record.stamp == nil):
		l.At(f.At, "is by stamp, and the record has none")
	case k.each && r.by != "key":
		l.At(f.At, "is of several records; want by key")
	case f.Newest > 0 && (f.Limit > 0 || r.strong || k.each || f.Within.Value != "" || f.Records.Value == ""):
		l.At(f.At, "has newest; want it on a list of single records, without limit, within and strength: strong")
	case f.Within.Value != "" && f.Records.Value == "":
		l.At(f.At, "has within and no records")
	}
	for name, t := range r.arguments {
		for _, h := range t.holes() {
			if h == "stamp" && r.by != "stamp" || h == "ref" && r.by != "ref" {
				l.At(t.at, "asks for {%s} and is by %s", h, r.by)
			}
		}
		if name == "" {
			l.At(t.at, "has no name")
		}
	}
}

// readsOf checks that a kind can be read.
func (l *loader) readsOf(k *kind, f *fileKind) {
	byKey := slices.ContainsFunc(k.reads, func(r *read) bool { return r.by == "key" })
	if !byKey {
		l.At(f.At, "has no read by key; want a tool that shows the records under a business key")
	}
	seen := map[string]bool{}
	for _, r := range k.reads {
		if r.as != "" && seen[r.as] {
			l.At(f.At, "has two parts named %s", r.as)
		}
		seen[r.as] = true
	}
	if k.record == nil {
		return
	}
	if k.parts {
		return
	}
	for _, name := range k.keys {
		if _, ok := k.record.fields[name]; !ok {
			l.At(f.At, "shows no %s, which is a field of the key; want its path in an answer, or {key: %s} where the answer does not repeat it", name, name)
		}
	}
	for _, w := range k.writes {
		for name := range w.expect {
			if _, ok := k.record.fields[name]; !ok {
				l.At(f.At, "shows no %s, which the %s expects", name, w.write)
			}
		}
	}
}

func (l *loader) record(k *kind, f *fileRecord) *record {
	r := &record{ref: l.singular(f.Ref), url: l.singular(f.URL), version: l.singular(f.Version), fields: map[string]*field{}}
	if f.Stamp != nil {
		r.stamp = l.field(k, *f.Stamp)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		if name == carried || name == eachKey {
			l.At(f.Fields[name].At, "is a reserved name")
		}
		r.fields[name] = l.field(k, f.Fields[name])
	}
	if len(r.fields) == 0 && !k.parts {
		l.At(f.At, "has no fields")
	}
	return r
}

func (l *loader) field(k *kind, f fileField) *field {
	if !declared.ExactlyOne(f.Path.Value != "", f.Outer.Value != "", f.Key.Value != "") {
		l.At(f.At, "want one of a path, {outer: path} and {key: name}")
		return &field{}
	}
	out := &field{key: f.Key.Value, outer: f.Outer.Value != ""}
	if out.key != "" && (!slices.Contains(k.keys, out.key) || k.each) {
		l.At(f.At, "repeats {key: %s}, which no read can be asked for alone", yamlfile.Clip(out.key))
	}
	from := f.Path
	if out.outer {
		from = f.Outer
	}
	out.place = l.singular(from)
	if f.Match.Value != "" {
		if out.match = declared.Regexp(&l.Reader, f.Match); out.match != nil && out.match.NumSubexp() < 1 {
			l.At(f.Match.Place, "has no group; want one around what is meant, such as %s", `'(?m)^size: (\d+)$'`)
		}
	}
	return out
}

// label is how a problem calls a read.
func (r *read) label() string { return fmt.Sprintf("read %q", r.name) }
