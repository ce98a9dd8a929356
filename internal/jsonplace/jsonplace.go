// Package jsonplace selects from an answer by a JSONPath that somebody wrote
// into a file.
//
// It does not know what is selected or why: what a scalar may look like and
// which error an answer in another shape is, say those who ask.
package jsonplace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"

	"github.com/readback-go/readback/internal/yamlfile"
)

// ErrShape says that an answer has not the form that a filter expects.
var ErrShape = errors.New("cannot be asked of it")

// Place is a JSONPath into an answer. Of nil only Value may be asked: it selects
// nothing.
type Place struct {
	text string
	path *jsonpath.Path
	one  bool
}

// New parses a JSONPath. It is nil where there is none, and where it is none,
// which becomes a problem of the file.
func New(r *yamlfile.Reader, t yamlfile.Text) *Place {
	if t.Value == "" {
		return nil
	}
	p, err := jsonpath.Parse(t.Value)
	if err != nil {
		r.At(t.Place, "is no JSONPath: %s; want one such as $.id", yamlfile.Clip(strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": ")))
		return nil
	}
	return &Place{text: t.Value, path: p, one: p.Query().Singular() != nil}
}

// Singular is New for a JSONPath that must select one value at most.
func Singular(r *yamlfile.Reader, t yamlfile.Text) *Place {
	p := New(r, t)
	if p != nil && !p.one {
		r.At(t.Place, "may select several values; want a path to one")
		return nil
	}
	return p
}

// Text is the path as it is written.
func (p *Place) Text() string { return p.text }

// Parent is the place of which it selects a member or an element; nil where it is the whole answer.
func (p *Place) Parent() *Place {
	segments := p.path.Query().Segments()
	if len(segments) == 0 {
		return nil
	}
	text := "$"
	for _, s := range segments[:len(segments)-1] {
		text += s.String()
	}
	path, err := jsonpath.Parse(text)
	if err != nil {
		return nil
	}
	return &Place{text: text, path: path, one: p.one}
}

// Step is one step of a path: to the member of a name, or to elements of a list.
type Step struct {
	Name     string
	Elements bool
}

// Steps are those of the path; false where one selects otherwise, such as by a filter.
func (p *Place) Steps() ([]Step, bool) {
	var all []Step
	for _, s := range p.path.Query().Segments() {
		if s.IsDescendant() || len(s.Selectors()) != 1 {
			return nil, false
		}
		switch one := s.Selectors()[0].(type) {
		case spec.Name:
			all = append(all, Step{Name: string(one)})
		case spec.Index, spec.WildcardSelector:
			all = append(all, Step{Elements: true})
		default:
			return nil, false
		}
	}
	return all, true
}

// One reports whether it can select one value at most.
func (p *Place) One() bool { return p.one }

// All is what it selects, in no order: members of objects have none. It is the
// one way by which a path with a filter meets an answer: match() and search() of
// the library panic where what they look at is not there. The error is
// [ErrShape].
func (p *Place) All(doc any) (found []any, err error) {
	defer func() {
		if recover() != nil {
			found, err = nil, fmt.Errorf("%s %w", p.text, ErrShape)
		}
	}()
	return p.path.Select(doc), nil
}

// Value is the one value that it selects; false when there is none, or several.
func (p *Place) Value(doc any) (any, bool) {
	if p == nil {
		return nil, false
	}
	found, err := p.All(doc)
	if err != nil || len(found) != 1 {
		return nil, false
	}
	return found[0], true
}
