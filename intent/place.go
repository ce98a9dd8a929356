package intent

import (
	"slices"
	"strconv"
)

// place is the position of a traversal. It becomes a JSON Pointer only to report something:
// otherwise long names above many values would be copied once for each of them. A nil place is
// the root.
type place struct {
	above *place
	name  string // of the member; not used for an element
	index int    // of the element, or -1
}

func (p *place) member(name string) *place { return &place{p, name, -1} }

func (p *place) element(i int) *place { return &place{p, "", i} }

func (p *place) pointer() Pointer {
	var path []*place
	for ; p != nil; p = p.above {
		path = append(path, p)
	}
	var at Pointer
	for _, step := range slices.Backward(path) {
		if step.index >= 0 {
			at = at.AppendToken(strconv.Itoa(step.index))
		} else {
			at = at.AppendToken(step.name)
		}
	}
	return at
}
