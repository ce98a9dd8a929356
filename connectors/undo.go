package connectors

import (
	"maps"
	"reflect"
	"slices"

	"github.com/readback-go/readback/intent"
)

// BringBack makes undo an update that changes a record from the fields of after back to those of
// before, and requires what it changes to be as in after. It is for the [Inverter] of a
// destination whose updates set the members they name and descend into objects. The caller leaves
// out what the destination sets by itself. It reports false when nothing has changed.
func BringBack(undo intent.WriteIntent, before, after intent.Fields) (intent.WriteIntent, bool) {
	s := back("", before, after)
	if len(s.expect)+len(s.absent) == 0 {
		return undo, false
	}
	undo.Write, undo.Expect, undo.Require, undo.Absent = intent.Update, s.expect, s.require, s.absent
	if len(undo.Expect) == 0 { // an intent must expect something; the key always holds
		undo.Expect = maps.Clone(undo.Key)
	}
	if len(undo.Require) == 0 { // what was removed cannot be required; that the record is there can
		undo.Require = maps.Clone(undo.Key)
	}
	return undo, true
}

// steps are what an update has to do, and what must hold before.
type steps struct {
	expect, require map[string]any
	absent          []string
}

// back works out what brings after back to before.
func back(at intent.Pointer, before, after map[string]any) steps {
	s := steps{expect: map[string]any{}, require: map[string]any{}}
	for name, was := range before {
		now, there := after[name]
		wasObject, okWas := was.(map[string]any)
		nowObject, okNow := now.(map[string]any)
		switch {
		case there && reflect.DeepEqual(was, now):
		case okWas && okNow:
			inner := back(at.AppendToken(name), wasObject, nowObject)
			s.absent = append(s.absent, inner.absent...)
			if len(inner.expect) > 0 {
				s.expect[name] = inner.expect
			}
			if len(inner.require) > 0 {
				s.require[name] = inner.require
			}
		default:
			s.expect[name] = was
			if there {
				s.require[name] = now
			}
		}
	}
	for name, now := range after {
		if _, there := before[name]; !there {
			s.absent = append(s.absent, string(at.AppendToken(name)))
			s.require[name] = now
		}
	}
	slices.Sort(s.absent)
	return s
}
