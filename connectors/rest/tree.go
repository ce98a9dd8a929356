package rest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// spreadName is the member that spreads objects into its own; eachName represents an element for
// each query of a bulk read.
const (
	spreadName = "..."
	eachName   = "[...]"
	joinName   = "join"
)

// tree is a body: JSON with placeholders in it. Values are inserted as values, so that nothing in
// them can change the structure.
type tree struct {
	at      yamlfile.Place
	fixed   any      // a single value without placeholders
	text    *pattern // a string with some
	members []member // an object
	spread  []*hole
	list    []*tree // a list; elements of kind spreadTree are lists themselves
	each    *tree   // a list with an element for each query
	mail    *tree   // the headers and the text of a mail
	kind    treeKind
}

type treeKind int

const (
	fixedTree treeKind = iota
	textTree
	objectTree
	listTree
	eachTree
	spreadTree
	mailTree
)

type member struct {
	name  string
	value *tree
	named *pattern // the name, of parameters of the account; nil: it is fixed
}

// newTree compiles a body.
func (l *loader) newTree(n yamlfile.Node, field string, allowed known) *tree {
	t := &tree{at: yamlfile.Place{Line: n.Line(), Field: field}}
	switch {
	case n.IsMapping():
		l.object(t, n, allowed)
	case n.IsList():
		t.kind = listTree
		for i, e := range l.List(n, field) {
			t.list = append(t.list, l.element(e, fmt.Sprintf("%s[%d]", field, i), allowed))
		}
	default:
		v, _ := l.Scalar(n, field)
		s, isText := v.(string)
		if !isText {
			t.fixed = v
			return t
		}
		p, _ := l.newPattern(yamlfile.Text{Value: s, Place: t.at}, allowed)
		if p.only() == nil {
			l.inText(p)
		}
		if literal, ok := p.literal(); ok {
			t.fixed = literal
			return t
		}
		t.kind, t.text = textTree, &p
	}
	return t
}

// element is an element of a list, or {"...": "{fields.labels}"}, whose elements it inserts.
func (l *loader) element(n yamlfile.Node, field string, allowed known) *tree {
	if !n.IsMapping() {
		return l.newTree(n, field, allowed)
	}
	entries := l.Mapping(n, field)
	if len(entries) != 1 || entries[0].Name != spreadName {
		return l.newTree(n, field, allowed)
	}
	text := yamlfile.Text{Value: l.Text(entries[0], field), Place: yamlfile.Place{Line: entries[0].Line, Field: field}}
	p, ok := l.newPattern(text, allowed)
	if ok && (p.only() == nil || p.only().blank || p.only().isObject() || p.only().isText()) {
		l.At(text.Place, "is no list to spread; want one placeholder such as {fields.labels}")
	}
	return &tree{at: text.Place, kind: spreadTree, text: &p}
}

func (l *loader) object(t *tree, n yamlfile.Node, allowed known) {
	t.kind = objectTree
	entries := l.Mapping(n, t.at.Field)
	for _, e := range entries {
		field := t.at.Field + "." + yamlfile.Clip(e.Name)
		switch {
		case e.Name == eachName && len(entries) == 1:
			t.kind, t.each = eachTree, l.newTree(e.Value, field, allowed)
		case e.Name == mailName && len(entries) == 1:
			t.kind, t.mail = mailTree, l.mail(e.Value, field, allowed)
		case e.Name == mailName:
			l.Say(e.Line, field, "is set together with other members; want it alone, in the place of a text")
		case e.Name == eachName:
			l.Say(e.Line, field, "is set together with other members; want it alone, in the place of a list")
		case e.Name == spreadName:
			l.spreads(t, e, field, allowed)
		case strings.ContainsAny(e.Name, "{}"):
			if p, ok := l.memberName(e, field, allowed); ok {
				t.members = append(t.members, member{e.Name, l.newTree(e.Value, field, allowed), p})
			}
		default:
			t.members = append(t.members, member{e.Name, l.newTree(e.Value, field, allowed), nil})
		}
	}
	l.distinct(t.members)
}

// memberName is a name with parameters of the account in it. Values of an intent are in no name: they
// would choose what is written.
func (l *loader) memberName(e yamlfile.Entry, field string, allowed known) (*pattern, bool) {
	at := yamlfile.Place{Line: e.Line, Field: field}
	names := known{}
	if _, ok := allowed["param"]; ok {
		names = forAccount
	}
	for _, m := range expression.FindAllStringSubmatch(e.Name, -1) {
		if root, _, _ := strings.Cut(m[1], "."); root != "param" {
			l.At(at, "names of members have no placeholders but {param.NAME}; write the name out")
			return nil, false
		}
	}
	p, ok := l.newPattern(yamlfile.Text{Value: e.Name, Place: at}, names)
	for _, h := range p.holes() {
		if h.optional || h.blank || h.encode != "" {
			l.At(at, "{%s}: a name is not left out, and not encoded; want {param.NAME}", h.name)
			ok = false
		}
	}
	return &p, ok
}

func (l *loader) spreads(t *tree, e yamlfile.Entry, field string, allowed known) {
	var from []yamlfile.Text
	l.Fill(e.Value, field, &from)
	for _, text := range from {
		p, ok := l.newPattern(text, allowed)
		switch h := p.only(); {
		case !ok:
		case h == nil || h.optional || h.blank || h.isText():
			l.At(text.Place, "is no object to spread; want one placeholder such as {fields}")
		default:
			t.spread = append(t.spread, h)
		}
	}
}

// holes lists all placeholders of a tree.
func (t *tree) holes() []*hole {
	if t == nil {
		return nil
	}
	all := t.spread
	if t.text != nil {
		all = append(all, t.text.holes()...)
	}
	for _, m := range t.members {
		all = append(all, m.value.holes()...)
		if m.named != nil {
			all = append(all, m.named.holes()...)
		}
	}
	for _, e := range t.list {
		all = append(all, e.holes()...)
	}
	return append(append(all, t.each.holes()...), t.mail.holes()...)
}

// filling is how a tree is filled.
type filling struct {
	values values
	// each are the values of every query, for a bulk read.
	each []values
	// guarded takes plain text alone inside of longer text.
	guarded bool
}

// presence is whether the placeholders below a place had values.
type presence int

const (
	none   presence = iota // there are none
	filled                 // at least one has a value
	lacked                 // there are some, and none has a value
)

func (p presence) and(other presence) presence {
	if p == filled || other == filled {
		return filled
	}
	return max(p, other)
}

// body fills a whole body, which is there whatever is missing.
func (t *tree) body(f filling) (any, error) {
	v, _, err := t.fill(f)
	return v, err
}

// fill inserts values. A part whose placeholders all lack values is left out.
func (t *tree) fill(f filling) (any, presence, error) {
	switch t.kind {
	case textTree:
		return t.fillText(f)
	case objectTree:
		return t.fillObject(f)
	case listTree:
		return t.fillList(f)
	case mailTree:
		return t.mail.fillMail(f)
	case eachTree:
		all := []any{}
		for _, v := range f.each {
			one, _, err := t.each.fill(filling{values: v, guarded: f.guarded})
			if err != nil {
				return nil, none, err
			}
			all = append(all, one)
		}
		return all, filled, nil
	}
	return t.fixed, none, nil
}

func (t *tree) fillList(f filling) (any, presence, error) {
	all, there := []any{}, none
	for _, e := range t.list {
		if e.kind == spreadTree {
			v, ok := f.values.get(*e.text.only())
			list, isList := v.([]any)
			switch {
			case !ok && e.text.only().optional:
				return nil, lacked, nil
			case !ok:
				there = there.and(lacked)
			case !isList:
				return nil, none, unserved(e.text.only().place(), "%s is %s; want a list, since its elements are spread", e.text.only().field(), declared.KindOf(v))
			default:
				all, there = append(all, list...), filled
			}
			continue
		}
		v, p, err := e.fill(f)
		if err != nil {
			return nil, none, err
		}
		there = there.and(p)
		if p != lacked {
			all = append(all, v)
		}
	}
	return all, there, nil
}

func (t *tree) fillText(f filling) (any, presence, error) {
	if h := t.text.only(); h != nil && !h.blank {
		v, there := f.values.get(*h)
		switch {
		case there && h.encode != "":
			s, ok := v.(string)
			if !ok {
				return nil, none, unserved(h.place(), "%s is %s; want text, since it is encoded", h.field(), declared.KindOf(v))
			}
			return h.encoded(s), filled, nil
		case there:
			return v, filled, nil
		case h.optional || mayLack(h):
			return nil, lacked, nil
		}
		return nil, none, missing(h)
	}
	s, there, err := t.text.expand(f.values, f.guarded)
	if err != nil || !there {
		return nil, lacked, err
	}
	return s, filled, nil
}

func (t *tree) fillObject(f filling) (any, presence, error) {
	all, there := map[string]any{}, none
	for _, h := range t.spread {
		v, ok := f.values.get(*h)
		if !ok {
			there = there.and(lacked)
			continue
		}
		object, isObject := v.(map[string]any)
		if !isObject {
			return nil, none, unserved(h.place(), "%s is %s; want an object, since its members are spread", h.field(), declared.KindOf(v))
		}
		there = filled
		for name, value := range object {
			all[name] = value
		}
	}
	for _, m := range t.members {
		v, p, err := m.value.fill(f)
		if err != nil {
			return nil, none, err
		}
		there = there.and(p)
		if p == lacked {
			continue
		}
		name := m.name
		if m.named != nil {
			if name, _, err = m.named.expand(f.values, false); err != nil {
				return nil, none, err
			}
		}
		all[name] = v
	}
	return all, there, nil
}

// overlay puts the members of one body over those of another, objects inside
// included.
func overlay(under, over any) any {
	a, okA := under.(map[string]any)
	b, okB := over.(map[string]any)
	if !okA || !okB {
		return over
	}
	all := maps.Clone(a) // what is below may be the intent's own
	for name, v := range b {
		if was, there := all[name]; there {
			v = overlay(was, v)
		}
		all[name] = v
	}
	return all
}
