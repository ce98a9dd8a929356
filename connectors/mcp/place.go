package mcp

import (
	"regexp"
	"strings"

	"github.com/theory/jsonpath"

	"github.com/readback-go/readback/internal/yamlfile"
)

// path is the names that lead to a value in the arguments of a tool; one without
// names is the whole.
type path struct {
	names []string
	set   bool
}

var pathForm = regexp.MustCompile(`^\$(\.[A-Za-z_][A-Za-z0-9_-]*)*$`)

// newPath takes "$.a.b" apart.
func (l *loader) newPath(t yamlfile.Text) path {
	if t.Value == "" {
		return path{}
	}
	if !pathForm.MatchString(t.Value) {
		l.At(t.Place, "is no path into arguments; want one such as $.title or $.issue.title")
		return path{}
	}
	return path{set: true, names: strings.Split(t.Value, ".")[1:]}
}

// text is the path as it is written.
func (p path) text() string { return strings.Join(append([]string{"$"}, p.names...), ".") }

// get finds the value; false where there is none.
func (p path) get(doc any) (any, bool) {
	for _, name := range p.names {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil, false
		}
		if doc, ok = m[name]; !ok {
			return nil, false
		}
	}
	return doc, true
}

// put sets the value in an object, and makes the objects on the way. It reports
// false where something else stands in the way.
func (p path) put(doc map[string]any, v any) bool {
	for i, name := range p.names {
		if i == len(p.names)-1 {
			doc[name] = v
			return true
		}
		next, there := doc[name]
		inner, ok := next.(map[string]any)
		if there && !ok {
			return false
		}
		if !there {
			inner = map[string]any{}
			doc[name] = inner
		}
		doc = inner
	}
	return false
}

// place is a JSONPath into an answer.
type place struct {
	text string
	path *jsonpath.Path
	one  bool
}

func (l *loader) newPlace(t yamlfile.Text) *place {
	if t.Value == "" {
		return nil
	}
	p, err := jsonpath.Parse(t.Value)
	if err != nil {
		l.At(t.Place, "is no JSONPath: %s; want one such as $.id", yamlfile.Clip(strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": ")))
		return nil
	}
	return &place{text: t.Value, path: p, one: p.Query().Singular() != nil}
}

// singular parses a JSONPath that selects one value at most.
func (l *loader) singular(t yamlfile.Text) *place {
	p := l.newPlace(t)
	if p != nil && !p.one {
		l.At(t.Place, "may select several values; want a path to one")
		return nil
	}
	return p
}

// all is what it selects. The library panics where a filter's match() or
// search() looks at what is not there.
func (p *place) all(doc any) (found []any, err error) {
	defer func() {
		if recover() != nil {
			found, err = nil, answer("%s cannot be asked of it", p.text)
		}
	}()
	return p.path.Select(doc), nil
}

// value is the one value that it selects; false when there is none.
func (p *place) value(doc any) (any, bool) {
	found, err := p.all(doc)
	if err != nil || len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// scalar is the one short scalar that it selects as text, "" when there is none
// or p is nil.
func (p *place) scalar(doc any) string {
	if p == nil {
		return ""
	}
	v, _ := p.value(doc)
	s, ok := scalarText(v)
	if !ok || len(s) > maxScalar {
		return ""
	}
	return s
}

// listed is a path to the elements of a list, "CONTAINER[*]".
type listed struct {
	text      string
	container *place
}

func (l *loader) newListed(t yamlfile.Text) *listed {
	if t.Value == "" {
		return nil
	}
	inner, ok := strings.CutSuffix(t.Value, "[*]")
	if !ok {
		l.At(t.Place, "is no path to the elements of a list; want one such as $.items[*]")
		return nil
	}
	container := l.singular(yamlfile.Text{Value: inner, Place: t.Place})
	if container == nil {
		return nil
	}
	return &listed{text: t.Value, container: container}
}

// all is the elements. That the list is not there, or is none, is an error: an
// answer in another shape must not look like an empty one.
func (p *listed) all(doc any) ([]any, error) {
	v, there := p.container.value(doc)
	list, isList := v.([]any)
	switch {
	case !there:
		return nil, answer("there is no %s in it", p.container.text)
	case !isList:
		return nil, answer("%s is no list", p.container.text)
	case len(list) > maxRecords:
		return nil, answer("%s has more than %d elements", p.container.text, maxRecords)
	}
	return list, nil
}
