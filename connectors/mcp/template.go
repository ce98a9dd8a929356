package mcp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// template is an argument of a reading tool: JSON with placeholders.
type template struct {
	at      yamlfile.Place
	fixed   any
	pieces  []piece
	members map[string]*template
	list    []*template
	kind    templateKind
}

type templateKind int

const (
	fixedTemplate templateKind = iota
	textTemplate
	objectTemplate
	listTemplate
)

// piece is a literal, or the name of a placeholder.
type piece struct {
	literal string
	hole    string
}

var holeForm = regexp.MustCompile(`\{[a-z_]+(\.[A-Za-z0-9_-]+)?\}`)

// newTemplate compiles an argument. What is not a placeholder is text.
func (l *loader) newTemplate(n yamlfile.Node, field string, k *kind) *template {
	t := &template{at: yamlfile.Place{Line: n.Line(), Field: field}}
	switch {
	case n.IsMapping():
		t.kind, t.members = objectTemplate, map[string]*template{}
		for _, e := range l.Mapping(n, field) {
			t.members[e.Name] = l.newTemplate(e.Value, field+"."+yamlfile.Clip(e.Name), k)
		}
	case n.IsList():
		t.kind = listTemplate
		for i, e := range l.List(n, field) {
			t.list = append(t.list, l.newTemplate(e, fmt.Sprintf("%s[%d]", field, i), k))
		}
	default:
		v, _ := l.Scalar(n, field)
		s, isText := v.(string)
		if !isText || !holeForm.MatchString(s) {
			t.fixed = v
			return t
		}
		t.kind, t.pieces = textTemplate, cut(s)
		for _, p := range t.pieces {
			l.hole(t.at, p.hole, k)
		}
	}
	return t
}

func cut(s string) []piece {
	var all []piece
	last := 0
	for _, at := range holeForm.FindAllStringIndex(s, -1) {
		if at[0] > last {
			all = append(all, piece{literal: s[last:at[0]]})
		}
		all = append(all, piece{hole: s[at[0]+1 : at[1]-1]})
		last = at[1]
	}
	if last < len(s) {
		all = append(all, piece{literal: s[last:]})
	}
	return all
}

// hole checks the name of a placeholder.
func (l *loader) hole(at yamlfile.Place, hole string, k *kind) {
	first, name, _ := strings.Cut(hole, ".")
	switch first {
	case "":
		return
	case "stamp", "ref":
		if name == "" {
			return
		}
	case "key", "each":
		if slices.Contains(k.keys, name) && (first == "key" || k.each) {
			return
		}
	}
	want := "{key.NAME} (" + strings.Join(k.keys, ", ") + "), {stamp} or {ref}"
	if k.each {
		want += ", or {each.NAME} for a list of all"
	}
	l.At(at, "has the placeholder {%s}; want %s", yamlfile.Clip(hole), want)
}

// holes lists the placeholders.
func (t *template) holes() []string {
	var all []string
	for _, p := range t.pieces {
		if p.hole != "" {
			all = append(all, p.hole)
		}
	}
	for _, m := range t.members {
		all = append(all, m.holes()...)
	}
	for _, e := range t.list {
		all = append(all, e.holes()...)
	}
	return all
}

// plainText is what may occur inside a longer text: how the tool quotes there is unknown.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_.@:-]*$`)

// fill puts values in; a whole text that is one placeholder becomes its value,
// of whatever type. Values are by the names of the placeholders.
func (t *template) fill(values map[string]any) (any, error) {
	switch t.kind {
	case objectTemplate:
		m := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(t.members)) {
			v, err := t.members[name].fill(values)
			if err != nil {
				return nil, err
			}
			m[name] = v
		}
		return m, nil
	case listTemplate:
		all := make([]any, 0, len(t.list))
		for _, e := range t.list {
			v, err := e.fill(values)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case textTemplate:
		return t.text(values)
	}
	return t.fixed, nil
}

func (t *template) text(values map[string]any) (any, error) {
	if len(t.pieces) == 1 {
		v, ok := values[t.pieces[0].hole]
		if !ok {
			return nil, arguments("there is no {%s} to ask with", t.pieces[0].hole)
		}
		return v, nil
	}
	var b strings.Builder
	for _, p := range t.pieces {
		if p.hole == "" {
			b.WriteString(p.literal)
			continue
		}
		s, ok := declared.ScalarText(values[p.hole])
		if !ok || !plainText.MatchString(s) {
			return nil, arguments("{%s} has a value that cannot be in a longer text", p.hole)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}
