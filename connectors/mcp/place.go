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

// put sets the value in an object, and makes the objects on the way. It reports false if another
// value blocks the way.
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
