package simulated

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// ErrIrreversible is wrapped by errors of [Connector.Invert].
var ErrIrreversible = errors.New("the write cannot be undone")

// Invert builds the write that undoes w: a delete for what was created, an
// update back to the earlier values for what was updated, a create for what
// was deleted. It needs to know what was there before, and exactly one record
// on the side that it changes; what it changes must still be as after shows.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	if _, err := orderIDOf(w); err != nil {
		return intent.WriteIntent{}, err
	}
	if before == nil {
		return intent.WriteIntent{}, fmt.Errorf("%w: nobody looked before it", ErrIrreversible)
	}
	undo := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: maps.Clone(w.Key)}
	had, has := len(before.Records), len(after.Records)
	switch {
	case had == 0 && has == 1 && c.declare.Stamps && after.Records[0].Stamp != w.Stamp():
		return intent.WriteIntent{}, fmt.Errorf("%w: the record that is there bears another stamp: it is somebody else's", ErrIrreversible)
	case had == 0 && has == 1:
		undo.Write = intent.Delete
		undo.Require = lasting(after.Records[0].Fields)
	case had == 1 && has == 0:
		undo.Write = intent.Create
		undo.Expect = lasting(before.Records[0].Fields)
	case had == 1 && has == 1 && before.Records[0].Ref == after.Records[0].Ref:
		undo.Write = intent.Update
		c := back("", lasting(before.Records[0].Fields), lasting(after.Records[0].Fields))
		if len(c.expect)+len(c.absent) == 0 {
			return intent.WriteIntent{}, fmt.Errorf("%w: nothing has changed", ErrIrreversible)
		}
		// An intent must expect something; the key always holds.
		undo.Expect, undo.Require, undo.Absent = c.expect, c.require, c.absent
		if len(undo.Expect) == 0 {
			undo.Expect = maps.Clone(undo.Key)
		}
		// What was removed cannot be required; that the record is ours can.
		if len(undo.Require) == 0 {
			undo.Require = maps.Clone(undo.Key)
		}
	default:
		return intent.WriteIntent{}, fmt.Errorf("%w: %d records before and %d after", ErrIrreversible, had, has)
	}
	return undo, nil
}

// lasting leaves out what the destination sets by itself.
func lasting(fields intent.Fields) intent.Fields {
	kept := maps.Clone(fields)
	delete(kept, fieldUpdated)
	return kept
}

// change is what an update has to do, and what must hold before.
type change struct {
	expect, require map[string]any
	absent          []string
}

// back works out what brings after back to before.
func back(at intent.Pointer, before, after map[string]any) change {
	c := change{expect: map[string]any{}, require: map[string]any{}}
	for name, was := range before {
		now, ok := after[name]
		wasObject, okWas := was.(map[string]any)
		nowObject, okNow := now.(map[string]any)
		switch {
		case ok && reflect.DeepEqual(was, now):
		case okWas && okNow:
			inner := back(at.AppendToken(name), wasObject, nowObject)
			c.absent = append(c.absent, inner.absent...)
			if len(inner.expect) > 0 {
				c.expect[name] = inner.expect
			}
			if len(inner.require) > 0 {
				c.require[name] = inner.require
			}
		default:
			c.expect[name] = was
			if ok {
				c.require[name] = now
			}
		}
	}
	for name, now := range after {
		if _, ok := before[name]; !ok {
			c.absent = append(c.absent, string(at.AppendToken(name)))
			c.require[name] = now
		}
	}
	slices.Sort(c.absent)
	return c
}
