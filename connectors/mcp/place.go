package mcp

import (
	"regexp"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// maxRecords is how many records an answer may show; a tool that lists more cannot be used to
	// find one.
	maxRecords = 20_000
	// maxScalar is how long a ref, a version or an address may be.
	maxScalar = 2000
)

// path is the names that lead to a value in the arguments of a tool; one without
// names is the whole. "0", as [0], is the only element of a list that a path can lead
// into: what a call has in the others is refused, since nothing compares it.
type path struct {
	names []string
	set   bool
}

const firstElement = "0"

var pathForm = regexp.MustCompile(`^\$(\.[A-Za-z_][A-Za-z0-9_-]*(\[0\])*)*$`)

// newPath takes "$.a.b" apart.
func (l *loader) newPath(t yamlfile.Text) path {
	if t.Value == "" {
		return path{}
	}
	if !pathForm.MatchString(t.Value) {
		l.At(t.Place, "is no path into arguments; want one such as $.title, $.issue.title or $.texts[0].content")
		return path{}
	}
	return path{set: true, names: strings.Split(strings.ReplaceAll(t.Value, "[0]", "."+firstElement), ".")[1:]}
}

// text is the path as it is written.
func (p path) text() string {
	return strings.ReplaceAll(strings.Join(append([]string{"$"}, p.names...), "."), "."+firstElement, "[0]")
}

// get finds the value; false where there is none.
func (p path) get(doc any) (any, bool) {
	for _, name := range p.names {
		if list, ok := doc.([]any); ok && name == firstElement && len(list) > 0 {
			doc = list[0]
			continue
		}
		m, ok := doc.(map[string]any)
		if !ok || name == firstElement {
			return nil, false
		}
		if doc, ok = m[name]; !ok {
			return nil, false
		}
	}
	return doc, true
}

// put sets the value in an object, and makes the objects and lists on the way. It reports false if
// another value blocks the way.
func (p path) put(doc map[string]any, v any) bool {
	if len(p.names) == 0 {
		return false
	}
	_, ok := put(doc, p.names, v)
	return ok
}

func put(into any, names []string, v any) (any, bool) {
	if len(names) == 0 {
		return v, true
	}
	if into == nil && names[0] == firstElement {
		into = []any{nil}
	} else if into == nil {
		into = map[string]any{}
	}
	var ok bool
	switch in := into.(type) {
	case []any:
		if names[0] != firstElement || len(in) == 0 {
			return nil, false
		}
		in[0], ok = put(in[0], names[1:], v)
	case map[string]any:
		if names[0] == firstElement {
			return nil, false
		}
		var inner any
		if inner, ok = put(in[names[0]], names[1:], v); ok {
			in[names[0]] = inner
		}
	}
	return into, ok
}

func (l *loader) singular(t yamlfile.Text) *jsonplace.Place { return jsonplace.Singular(&l.Reader, t) }

// scalar is the one short scalar that a path selects as text, "" when there is
// none or p is nil.
func scalar(p *jsonplace.Place, doc any) string {
	v, _ := p.Value(doc)
	s, ok := declared.ScalarText(v)
	if !ok || len(s) > maxScalar {
		return ""
	}
	return s
}
