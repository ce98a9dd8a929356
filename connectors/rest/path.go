package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

func (l *loader) newPlace(t yamlfile.Text) *jsonplace.Place {
	return l.inShape(jsonplace.New(&l.Reader, l.path(t)), t.Place)
}

func (l *loader) singular(t yamlfile.Text) *jsonplace.Place {
	return l.inShape(jsonplace.Singular(&l.Reader, l.path(t)), t.Place)
}

func (l *loader) newList(t yamlfile.Text) *declared.List {
	list := declared.NewList(&l.Reader, l.path(t))
	if list != nil {
		l.newPlace(t)
	}
	return list
}

// scalar is the one scalar that a path selects, "" when there is none or p is
// nil.
func scalar(p *jsonplace.Place, doc any) string {
	v, _ := p.Value(doc)
	return bounded(v)
}

// of is the value in an answer, "" if there is none.
func (t taken) of(doc any, h http.Header) string {
	text := scalar(t.place, doc)
	if t.header != "" {
		text = bounded(h.Get(t.header))
	}
	if t.match == nil {
		return text
	}
	if m := t.match.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func (t taken) text() string {
	if t.header != "" {
		return "header " + t.header
	}
	return t.place.Text()
}

// condition is a condition on an answer.
type condition struct {
	place    *jsonplace.Place
	header   string
	equals   []any
	contains string
	exists   *bool
	// each is set where the path is of several values, all of which absence is about.
	each *declared.List
}

func (l *loader) conditions(from []fileCondition) []*condition {
	var all []*condition
	for i := range from {
		if c := l.condition(&from[i]); c != nil {
			all = append(all, c)
		}
	}
	return all
}

func (l *loader) condition(f *fileCondition) *condition {
	if f == nil {
		return nil
	}
	if !declared.ExactlyOne(f.Path.Value != "", f.Header.Value != "") {
		l.At(f.At, "want exactly one of path and header")
		return nil
	}
	if !declared.ExactlyOne(f.Equals.There(), f.Contains.Value != "", f.Exists != nil) {
		l.At(f.At, "want exactly one of equals, contains and exists")
		return nil
	}
	c := &condition{header: f.Header.Value, contains: f.Contains.Value, exists: f.Exists}
	if f.Path.Value != "" {
		if c.place = l.newPlace(f.Path); c.place == nil {
			return nil
		}
	}
	c.equals = l.scalars(f.Equals, f.At.Field+".equals")
	if c.place != nil {
		for _, v := range c.equals {
			l.textInXML(v, yamlfile.Place{Line: f.Equals.Line(), Field: f.At.Field + ".equals"})
		}
	}
	return c
}

// scalars is one scalar or a list of them.
func (l *loader) scalars(n yamlfile.Node, field string) []any {
	if !n.There() {
		return nil
	}
	nodes := []yamlfile.Node{n}
	if n.IsList() {
		nodes = l.List(n, field)
	}
	all := []any{}
	for _, e := range nodes {
		if v, ok := l.Scalar(e, field); ok {
			all = append(all, v)
		}
	}
	return all
}

// holds reports whether it holds in an answer, and whether that can be known: a path needs a JSON
// body with the form that its filter expects.
func (c *condition) holds(doc any, isJSON bool, h http.Header) (holds, known bool) {
	if c.place == nil {
		var found []any
		for _, v := range h.Values(c.header) {
			found = append(found, v)
		}
		return c.among(found), true
	}
	if !isJSON {
		return false, false
	}
	found, err := c.place.All(doc)
	if err != nil {
		return false, false
	}
	return c.among(found), true
}

// all reports whether it holds of everything that its path is about. Of several errors one that says
// "not found" says nothing of the others.
func (c *condition) all(doc any, isJSON bool, h http.Header) bool {
	if c.each == nil {
		holds, _ := c.holds(doc, isJSON, h)
		return holds
	}
	values, err := c.each.All(doc, errAnswer)
	for _, v := range values {
		if !c.among([]any{v}) {
			return false
		}
	}
	return err == nil && len(values) > 0
}

func (c *condition) among(found []any) bool {
	there := false
	for _, v := range found {
		switch {
		case c.exists != nil:
			there = there || v != nil
		case c.contains != "":
			s, _ := v.(string)
			there = there || strings.Contains(s, c.contains)
		default:
			for _, e := range c.equals {
				there = there || declared.Same(e, v)
			}
		}
	}
	if c.exists != nil {
		return there == *c.exists
	}
	return there
}

// met fails unless all conditions hold in an answer.
func met(all []*condition, doc any, h http.Header) error {
	for _, c := range all {
		if holds, _ := c.holds(doc, true, h); !holds {
			return fmt.Errorf("%w: what must hold of %s does not", errAnswer, c.subject())
		}
	}
	return nil
}

func (c *condition) subject() string {
	if c.place != nil {
		return c.place.Text()
	}
	return "the header " + c.header
}
