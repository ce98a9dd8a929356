package eval

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// The problems of findings.
const (
	problemMissing    = "missing"
	problemAltered    = "altered"
	problemDuplicated = "duplicated"
	problemForeign    = "foreign"
	problemNotChecked = "not_checked"
)

// Log is a log of past writes, one a row, that [Reconcile] compares with a destination.
type Log struct {
	// Name is its name in findings: a path, or "query". Required.
	Name string
	// Rows gives each row. Required; see [Rows].
	Rows func(ctx context.Context, give func(Row) error) error
	// Destination and Kind name where the writes went. Required.
	Destination, Kind string
	// Key are the columns of the business key. Required.
	Key []string
	// Map has the column of each field. Default: all columns but At are fields of their names. A
	// column that begins with "/" is a place in a row of JSON.
	Map map[string]string
	// Types has the types of columns: "text", "number", "boolean" or "json". Default: values are
	// compared as the rows have them.
	Types map[string]string
	// Empty is what an empty text means: "null", or "skip" for a field that is not compared.
	// Default: an empty text.
	Empty string
	// At is the column with the time of the write, RFC 3339. Default: every row may have been
	// written just now.
	At string
	// From, Until and Within bound where foreign records are searched for. Default: all of the
	// kind. NoForeign means that they are not searched for.
	From, Until time.Time
	Within      intent.Fields
	NoForeign   bool
	// Patience is how long failing reads are repeated. Default one minute.
	Patience time.Duration
}

// Row is one row of a log.
type Row struct {
	Line   int // where it begins, counted from 1
	Values intent.Fields
}

// Reconciliation is what [Reconcile] found, in keys; Foreign is in records. A key can be duplicated and
// altered.
type Reconciliation struct {
	Log         string        `json:"log"`
	Destination string        `json:"destination"`
	Kind        string        `json:"kind"`
	Began       time.Time     `json:"began"`
	Took        time.Duration `json:"took_ns"`
	// Rows are those of the log. Of Repeated ones a later row has the same key, and counts.
	Rows       int `json:"rows"`
	Repeated   int `json:"repeated"`
	Matched    int `json:"matched"`
	Missing    int `json:"missing"`
	Altered    int `json:"altered"`
	Duplicated int `json:"duplicated"`
	Foreign    int `json:"foreign"`
	NotChecked int `json:"not_checked"`
	// Fields counts the altered keys by field.
	Fields map[string]int `json:"fields,omitempty"`
	// ForeignUnchecked is why foreign records may be missing from the findings; "" if all were found.
	ForeignUnchecked string `json:"foreign_unchecked,omitempty"`
	// Findings are the first ones, at most 50.
	Findings []Named  `json:"findings,omitempty"`
	Reads    int      `json:"reads"`
	Lists    int      `json:"lists"`
	Notes    []string `json:"notes,omitempty"`
	asked    bool     // for foreign ones
}

// Reconcile compares a log of past writes with a destination. It is an evaluation of the effects that
// the rows declare; o.OnFinding gets every finding, with its problem. The log may be longer than
// memory: its rows go to a temporary file.
func Reconcile(ctx context.Context, l Log, reg *connectors.Registry, o Options) (Reconciliation, error) {
	r := Reconciliation{Log: l.Name, Destination: l.Destination, Kind: l.Kind, Began: time.Now().UTC(), asked: !l.NoForeign}
	_, profile, err := reg.Lookup(l.Destination, l.Kind)
	if err != nil {
		return r, fmt.Errorf("%w: %s", ErrInvalid, plainError(err))
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	tmp, err := os.CreateTemp("", "readback-reconcile-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	f, err := l.declare(ctx, tmp, profile, &r, o.Progress)
	if err != nil {
		return r, err
	}
	give, last, faulty := o.OnFinding, Named{}, 0
	o.Tier, o.OnFinding = 1, func(check string, unread bool, n Named) {
		if unread || n.Problem == "" {
			n.Problem = problemNotChecked
		}
		switch {
		case unread && check == "unaccounted" && n.Refs == nil: // the list itself
			r.ForeignUnchecked = n.Says
			return
		case n.Declared != "" && n.Declared == last.Declared && n.Problem == last.Problem:
			return // two checks, one reason
		case n.Declared != "" && n.Declared != last.Declared:
			faulty++
		}
		last = n
		r.count(n)
		if give != nil {
			give(check, unread, n)
		}
	}
	rep, err := Run(ctx, f, reg, o)
	if err != nil {
		return r, err
	}
	r.Reads, r.Lists, r.Took, r.Matched = rep.Reads, rep.Lists, rep.Took, rep.Declared-faulty
	r.Notes = append(r.Notes, rep.Notes...)
	return r, nil
}

func (r *Reconciliation) count(n Named) {
	switch n.Problem {
	case problemMissing:
		r.Missing++
	case problemAltered:
		r.Altered++
	case problemDuplicated:
		r.Duplicated++
	case problemForeign:
		r.Foreign++
	default:
		r.NotChecked++
	}
	for _, name := range n.Fields {
		if r.Fields == nil {
			r.Fields = map[string]int{}
		}
		r.Fields[name]++
	}
	if len(r.Findings) < maxNamed {
		r.Findings = append(r.Findings, n)
	}
}

// Verdict is the worst that is known, as that of a report.
func (r Reconciliation) Verdict() Verdict {
	switch {
	case r.Missing+r.Altered+r.Duplicated+r.Foreign > 0:
		return VerdictWrong
	case r.NotChecked > 0 || r.asked && r.ForeignUnchecked != "":
		return VerdictUnchecked
	}
	return VerdictPassed
}

// Text is the summary as text.
func (r Reconciliation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s, %d with the key of a later one) against %s/%s, by %s and %s at %s\n\n", r.Log, count(r.Rows, "row"), r.Repeated,
		r.Destination, r.Kind, count(r.Reads, "read"), count(r.Lists, "list"), r.Began.Format(time.RFC3339))
	altered := ""
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		altered += fmt.Sprintf("  %s %d", name, r.Fields[name])
	}
	foreign := ""
	switch {
	case !r.asked:
		foreign = "  not checked: --foreign=false"
	case r.ForeignUnchecked != "":
		foreign = "  not checked whether there are more: " + r.ForeignUnchecked
	}
	for _, one := range []struct {
		what string
		n    int
		more string
	}{{"matched", r.Matched, ""}, {"missing", r.Missing, ""}, {"altered", r.Altered, altered}, {"duplicated", r.Duplicated, ""}, {"foreign", r.Foreign, foreign}, {"not checked", r.NotChecked, ""}} {
		fmt.Fprintf(&b, "  %-11s %8d%s\n", one.what, one.n, one.more)
	}
	b.WriteString("\n")
	for _, n := range r.Findings {
		fmt.Fprintf(&b, "  %-11s", strings.ReplaceAll(n.Problem, "_", " "))
		names(&b, []Named{n}, 1)
	}
	if more := r.Missing + r.Altered + r.Duplicated + r.Foreign + r.NotChecked - len(r.Findings); more > 0 {
		fmt.Fprintf(&b, "  and %d more; --findings FILE writes all\n", more)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	return Safe(strings.TrimRight(b.String(), "\n") + "\n\n" + r.Verdict().sentence() + "\n")
}

// declare writes the rows as effects to a file, and makes the evaluation of them.
func (l Log) declare(ctx context.Context, tmp *os.File, p connectors.Profile, r *Reconciliation, progress func(Progress)) (*File, error) {
	settle, _ := p.Settle.Declared()
	f := &File{path: l.Name, name: "reconcile " + l.Name, mode: "run", patience: cmp.Or(l.Patience, defaultPatience)}
	shownBy := r.Began.Add(-settle) // what was written later may not show yet
	src := &source{path: tmp.Name(), name: l.Name}
	f.sources = []*source{src}
	t := table{Log: l, fields: invert(l.Map), seen: map[string]bool{}, volatile: map[string]bool{}, ignore: p.Volatile}
	to := bufio.NewWriter(tmp)
	var keys []ref
	err := l.Rows(ctx, func(row Row) error {
		if r.Rows%batch == 0 {
			progress(Progress{"reading the log", r.Rows, 0})
		}
		if r.Rows++; r.Rows > maxDeclared {
			return fmt.Errorf("%w: %s: has more than %d rows; want at most that many at once", ErrInvalid, l.Name, maxDeclared)
		}
		e, at, ok := t.effect(row)
		if !ok && len(t.ps) >= maxProblems {
			return t.ps.err()
		} else if !ok {
			return ctx.Err()
		}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		var flags uint8 = isEffect
		switch {
		case at.After(shownBy):
			flags |= isRecent
		case at.After(f.ended):
			f.ended = at
		}
		f.add(&t.ps, line{file: l.Name, n: row.Line, at: src.size, source: 1, raw: raw}, placeName{l.Destination, l.Kind}, at, flags)
		keys = append(keys, ref{digestOf(recordName(l.Destination, l.Kind, e.Key)), uint32(len(f.items) - 1)}) //nolint:gosec // rows are bounded
		src.size += int64(len(raw)) + 1
		_, err = to.Write(append(raw, '\n'))
		return cmp.Or(err, ctx.Err())
	})
	if err != nil {
		return nil, err
	}
	t.unseen(r.Rows)
	if err := cmp.Or(t.ps.err(), to.Flush()); err != nil {
		return nil, err
	}
	info, err := tmp.Stat()
	if err := cmp.Or(err, tmp.Close()); err != nil {
		return nil, err
	}
	src.modified = info.ModTime()
	if l.At != "" && f.ended.IsZero() { // all are recent
		f.ended = shownBy
	}
	f.sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i].digest == keys[i-1].digest {
			f.items[keys[i-1].item].flags |= isDropped
			f.meant--
			r.Repeated++
		}
	}
	f.checks = checksForm{Exactly: true, Expected: t.compared}
	if !l.NoForeign {
		f.checks.Unaccounted = []scopeForm{{Destination: yamlfile.Text{Value: l.Destination}, Kind: yamlfile.Text{Value: l.Kind}, Of: yamlfile.Text{Value: ofAll},
			Within: freeForm{l.Within}, From: moment{l.From}, Until: moment{l.Until}}}
	}
	for _, path := range slices.Sorted(maps.Keys(t.volatile)) {
		r.Notes = append(r.Notes, path+" is not compared: the destination changes it by itself")
	}
	return f, nil
}

// invert has the fields of a column.
func invert(m map[string]string) map[string][]string {
	all := map[string][]string{}
	for _, field := range slices.Sorted(maps.Keys(m)) {
		all[m[field]] = append(all[m[field]], field)
	}
	return all
}

// declaredEffect is an [Effect] as it is written.
type declaredEffect struct {
	Destination string        `json:"destination"`
	Kind        string        `json:"kind"`
	Key         intent.Fields `json:"key"`
	Expect      intent.Fields `json:"expect,omitempty"`
	Ignore      []string      `json:"ignore,omitempty"`
}

// table reads the rows of a log.
type table struct {
	Log
	fields   map[string][]string // of columns
	ignore   []string
	seen     map[string]bool // columns
	volatile map[string]bool // fields that are not compared, by path
	compared bool            // a row has fields
	ps       problems
}

// effect is what a row declares, and when it was written.
func (t *table) effect(row Row) (e declaredEffect, at time.Time, good bool) {
	e = declaredEffect{t.Destination, t.Kind, intent.Fields{}, intent.Fields{}, t.ignore}
	good = true
	wrong := func(column, says string) {
		good = false
		t.ps.say(t.Name, row.Line, yamlfile.Clip(column), "%s", says)
	}
	get := func(column string, required bool) (v any, there bool) {
		if v, there = row.Values[column]; !there && strings.HasPrefix(column, "/") {
			v, there = intent.Lookup(row.Values, column)
		}
		if there {
			t.seen[column] = true
			var why string
			if v, there, why = t.value(column, v); why != "" {
				wrong(column, why)
				return nil, false
			}
		}
		if required && (v == nil || v == "" || !there) {
			wrong(column, "is missing or empty; the row has "+yamlfile.Clip(yamlfile.Names(row.Values)))
			return nil, false
		}
		return v, there
	}
	for _, column := range t.Key {
		v, _ := get(column, true)
		names := t.fields[column]
		if len(names) == 0 {
			names = []string{column}
		}
		for _, name := range names {
			e.Key[name] = v
		}
	}
	add := func(name, column string) {
		path := string(intent.Pointer("").AppendToken(name))
		switch v, there := get(column, false); {
		case !there || slices.Contains(t.Key, column):
		case slices.Contains(t.ignore, path):
			t.volatile[path] = true
		default:
			e.Expect[name], t.compared = v, true
		}
	}
	for name, column := range t.Map {
		add(name, column)
	}
	if len(t.Map) == 0 {
		for name := range row.Values {
			if name != t.At {
				add(name, name)
			}
		}
	}
	if t.At != "" {
		v, _ := get(t.At, true)
		text, _ := v.(string)
		var err error
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil && v != nil {
			wrong(t.At, "is no time; want one such as 2026-02-01T12:00:00Z")
		}
	}
	return e, at, good
}

// value is a value as its column's type has it; there is false where it is not compared.
func (t *table) value(column string, v any) (value any, there bool, why string) {
	text, isText := v.(string)
	if isText && text == "" && t.Empty != "" {
		return nil, t.Empty == "null", ""
	}
	if v == nil {
		return nil, true, ""
	}
	want := t.Types[column]
	var got any
	switch {
	case want == "":
		return v, true, ""
	case want == "text" && isText:
		return v, true, ""
	case want == "text":
		raw, err := intent.Canonical(v)
		if n, ok := v.(json.Number); ok {
			raw = []byte(n)
		}
		return string(raw), err == nil, ""
	case isText:
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if d.Decode(&got) != nil || d.InputOffset() != int64(len(text)) {
			got = nil
		}
	default:
		got = v
	}
	_, number := got.(json.Number)
	_, boolean := got.(bool)
	if want == "number" && !number || want == "boolean" && !boolean || got == nil && text != "null" {
		return nil, false, "is no " + want + "; want one, another --type, or for an empty one --empty null or skip"
	}
	return got, true, ""
}

// unseen reports columns that were named and that no row has.
func (t *table) unseen(rows int) {
	if rows == 0 {
		t.ps.say(t.Name, 0, "", "has no rows; want at least one write")
		return
	}
	named := slices.Concat(t.Key, slices.Collect(maps.Keys(t.fields)), slices.Collect(maps.Keys(t.Types)))
	slices.Sort(named)
	for _, column := range slices.Compact(named) {
		if !t.seen[column] {
			t.ps.say(t.Name, 0, yamlfile.Clip(column), "is a column that no row has, or that is not used; want --key, --map and --type for columns of the log")
		}
	}
}
