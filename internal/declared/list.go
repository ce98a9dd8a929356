package declared

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// List is a path to the elements of a list: the list, which must be in an answer, and where in
// an element the value is.
type List struct {
	Text      string
	Container *jsonplace.Place
	// Within, if set, is an object of which the list may be a missing member: then it is empty.
	Within  *jsonplace.Place
	element *jsonplace.Place
}

// NewList takes "CONTAINER[*]REST" apart. It is nil where there is no path.
func NewList(r *yamlfile.Reader, t yamlfile.Text) *List {
	if t.Value == "" {
		return nil
	}
	i := strings.LastIndex(t.Value, "[*]")
	if i < 0 {
		r.At(t.Place, "is no path to the elements of a list; want one such as $.items[*]")
		return nil
	}
	if jsonplace.New(r, t) == nil {
		return nil
	}
	container := jsonplace.Singular(r, yamlfile.Text{Value: t.Value[:i], Place: t.Place})
	element := jsonplace.Singular(r, yamlfile.Text{Value: "$" + t.Value[i+len("[*]"):], Place: t.Place})
	if container == nil || element == nil {
		return nil
	}
	return &List{Text: t.Value, Container: container, element: element}
}

// All is the elements. A missing list, or a value that is not one, is an error: an answer in
// another shape must not be mistaken for an empty one. The error wraps wrong.
func (l *List) All(doc any, wrong error) ([]any, error) {
	v, there := l.Container.Value(doc)
	list, isList := v.([]any)
	switch {
	case !there && l.mayLack(doc):
		return nil, nil
	case !there:
		return nil, fmt.Errorf("%w: there is no %s in it", wrong, l.Container.Text())
	case !isList:
		return nil, fmt.Errorf("%w: %s is %s, want a list", wrong, l.Container.Text(), KindOf(v))
	}
	all := make([]any, 0, len(list))
	for i, e := range list {
		one, there := l.element.Value(e)
		if !there {
			return nil, fmt.Errorf("%w: element %d of %s does not have what %s selects", wrong, i, l.Container.Text(), l.Text)
		}
		all = append(all, one)
	}
	return all, nil
}

// mayLack reports whether an answer has everything but the list.
func (l *List) mayLack(doc any) bool {
	if l.Within == nil {
		return false
	}
	v, _ := l.Within.Value(doc)
	_, isObject := v.(map[string]any)
	return isObject
}

// Loopback is true only for hosts that are surely this machine. Names other than localhost are
// not resolved: their addresses may change.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// KindOf is what a value is, for errors that must not repeat it.
func KindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "text"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}
