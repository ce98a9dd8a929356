package rest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// An account may name members: in a path '{param.NAME}' is the whole name of one, or the whole text that a
// filter compares with. A declaration with such names is loaded again for each account, so that all that
// is checked of a path is checked of the path that is used.

var (
	// nameInPath is such a name, with what is before it in a path.
	nameInPath = regexp.MustCompile(`((?:\[|==)\s*)'\{param\.([A-Za-z0-9_]+)\}'`)
	// holeInPath is any placeholder.
	holeInPath = regexp.MustCompile(`\{(?:param|secret|key|fields|expect|payload|before)\.|\{(?:key|fields|stamp|ref|version|first_sent|prepared)\}`)
)

// names are the members that parameters name, as they are known while a file is loaded.
type names struct {
	// given are the parameters of the account; before one is known, their defaults or examples.
	given map[string]any
	// paths are those that were filled. Each is asked for several times, and is wrong once.
	paths map[yamlfile.Text]yamlfile.Text
	// members are the parameters by which the paths of a record name each member, "" where it is written out.
	members map[string]string
	// of are the parameters that name something in the kind.
	of map[string]bool
}

// givenBy takes the parameters of an account, nil for none.
func (l *loader) givenBy(account map[string]string) {
	l.names = names{given: map[string]any{}, paths: map[yamlfile.Text]yamlfile.Text{}}
	for name, p := range l.d.parameters {
		if v := cmp.Or(account[name], p.Default, p.Example); v != "" {
			l.names.given[name] = v
		}
	}
}

// namesIn lists the parameters that name something in a path.
func namesIn(path string) (all []string) {
	for _, m := range nameInPath.FindAllStringSubmatch(path, -1) {
		all = append(all, m[2])
	}
	return all
}

// path is a path with the names that the account gives.
func (l *loader) path(t yamlfile.Text) yamlfile.Text {
	if filled, done := l.names.paths[t]; done {
		return filled
	}
	before := len(l.Problems)
	filled := yamlfile.Text{Place: t.Place, Value: nameInPath.ReplaceAllStringFunc(t.Value, func(s string) string {
		m := nameInPath.FindStringSubmatch(s)
		return m[1] + quoted(l.nameOf(m[2], t.Place))
	})}
	if holeInPath.MatchString(filled.Value) {
		l.At(t.Place, "has a placeholder in a path; want '{param.NAME}' as the whole name of a member, such as $.properties['{param.NAME}'], or the name written out")
	}
	if len(l.Problems) > before {
		filled = t
	} else if l.inRecord {
		l.claim(t, filled)
	}
	l.names.paths[t], l.names.paths[filled] = filled, filled
	return filled
}

// nameOf is the name that a parameter gives.
func (l *loader) nameOf(parameter string, at yamlfile.Place) string {
	if !l.parameterKnown(parameter, at) {
		return ""
	}
	l.naming(parameter)
	name, _ := l.names.given[parameter].(string)
	if name == "" {
		l.At(at, "{param.%s} names a member, and the parameter has neither default nor example; want one of them, with which the path is checked", parameter)
	}
	return name
}

func (l *loader) naming(parameter string) {
	if !slices.Contains(l.d.names, parameter) {
		l.d.names = append(l.d.names, parameter)
	}
	if l.names.of != nil {
		l.names.of[parameter] = true
	}
}

// quoted is a name as JSONPath quotes it. All but letters, digits, blanks, dashes and underscores is
// escaped, so that neither the parser nor a search for [*] takes it for more than a part of a name.
func quoted(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" -_", r) || r > 0xffff {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return "'" + b.String() + "'"
}

// claim notes the members that a path of a record selects. Two values in one member would be written over
// each other, and each would be read as the other.
func (l *loader) claim(t, filled yamlfile.Text) {
	written, known := l.newPlaceOf(t)
	steps, _ := l.newPlaceOf(filled)
	if !known || len(steps) != len(written) {
		l.claimed(t.Place, "? "+filled.Value, strings.Join(namesIn(t.Value), " and "), t.Value)
		return
	}
	at := ""
	for i, step := range steps {
		at += fmt.Sprintf("[%q]", step.Name)
		by := ""
		if step.Name != written[i].Name {
			by = strings.TrimSuffix(strings.TrimPrefix(written[i].Name, "{param."), "}")
		}
		l.claimed(t.Place, at, by, step.Name)
	}
}

func (l *loader) claimed(at yamlfile.Place, member, by, name string) {
	if other, there := l.names.members[member]; there && other != by {
		l.At(at, "%s", clash(name, by, other))
	}
	l.names.members[member] = by
}

// clash says that two members have one name, by one or two parameters.
func clash(name, by, other string) string {
	if by == "" || other == "" {
		return fmt.Sprintf("the parameter %s names %q, which the declaration names itself beside it; want another member", by+other, yamlfile.Clip(name))
	}
	return fmt.Sprintf("the parameters %s and %s both name %q; want a member for each", by, other, yamlfile.Clip(name))
}

// distinct refuses members of one object of a request that have one name.
func (l *loader) distinct(members []member) {
	seen := map[string]string{}
	for _, m := range members {
		name, by := m.name, ""
		if m.named != nil {
			for _, h := range m.named.holes() {
				by = h.path[1]
				l.naming(by)
			}
			var err error
			if name, _, err = m.named.expand(values{"param": l.names.given}, false); err != nil {
				continue // the account will say
			}
		}
		if other, there := seen[name]; there && by+other != "" {
			l.At(m.value.at, "%s", clash(name, by, other))
		}
		seen[name] = by
	}
}

// namedAlike refuses requests that name the member of a field otherwise than the records do. With another
// name than the default, what such a write sends would never be read, and such a read would find nothing
// and be believed.
func (l *loader) namedAlike(k *kind, f *fileKind) {
	if f.Record.Stamp != nil {
		l.namedIn(k, f, f.Record.Stamp.Path.Value, "the stamp", func(h *hole) bool { return h.path[0] == "stamp" })
	}
	for _, name := range slices.Sorted(maps.Keys(l.keys)) {
		l.namedIn(k, f, f.Record.Fields[name].Path.Value, "key."+name, func(h *hole) bool {
			return h.path[0] == "key" && (len(h.path) == 1 || h.path[1] == name)
		})
	}
}

func (l *loader) namedIn(k *kind, f *fileKind, path, what string, is func(*hole) bool) {
	for _, parameter := range namesIn(path) {
		check := func(at yamlfile.Place, holes []*hole) bool {
			has := slices.ContainsFunc(holes, is)
			if has && !usesParam(holes, parameter) {
				l.At(at, "has %s and no {param.%s}, which names the member of records that has it; want the same name in both", what, parameter)
			}
			return has
		}
		for i, r := range k.reads {
			if r.search { // it looks everywhere
				continue
			}
			if check(f.Reads[i].At, r.request.holes()) && r.list != nil && !l.d.probe.asksFor(parameter) && !r.visible.asksFor(parameter) {
				l.warn(f.Reads[i].At, "asks for %s under the name that {param.%s} gives, and nothing shows that there is one: an API that finds nothing under a wrong name would be believed; want a probe, or visible, that asks for it", what, parameter)
			}
		}
		for _, w := range []intent.WriteType{intent.Create, intent.Upsert} {
			if k.writes[w] != nil {
				check(f.Writes[string(w)].At, k.writes[w].holes())
			}
		}
	}
}

func usesParam(holes []*hole, name string) bool {
	return slices.ContainsFunc(holes, func(h *hole) bool { return h.path[0] == "param" && h.path[1] == name })
}

// asksFor reports whether a look fails where what a parameter names is not there.
func (k *look) asksFor(parameter string) bool {
	return k != nil && (slices.Contains(k.names, parameter) || usesParam(k.request.holes(), parameter))
}

// explainNames says which members the account names.
func (l *loader) explainNames(k *kind) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.names.of)) {
		all = append(all, fmt.Sprintf("{param.%s} (here %q)", name, l.names.given[name]))
	}
	if len(all) > 0 {
		k.explain("The account names members of records: %s. Each is one name, never a path. Change none while writes are open: they are looked for under the new name.", strings.Join(all, " and "))
	}
}

// asNamed is an intent without the members of its key that the request has under names of the account:
// spread, they would be sent under their own. Other fields are to be named as the account names them.
func (k *kind) asNamed(w *write, in intent.WriteIntent) (intent.WriteIntent, error) {
	for _, name := range slices.Sorted(maps.Keys(k.record.fields)) {
		f := k.record.fields[name]
		if f.named == "" {
			continue
		}
		for _, part := range []string{"expect", "payload"} {
			fields := &in.Expect
			if part == "payload" {
				fields = &in.Payload
			}
			v, there := (*fields)[name]
			if !there || w.mentions["fields."+name] || w.mentions[part+"."+name] {
				continue
			}
			if key, isKey := in.Key[name]; !isKey || !declared.Same(v, key) {
				return in, unserved("/"+part+"/"+name, "/%s/%s: is called %q in this account; want it under that name", part, name, f.named)
			}
			*fields = maps.Clone(*fields)
			delete(*fields, name)
		}
	}
	return in, nil
}
