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
	case had == 0 && has == 1:
		undo.Write = intent.Delete
		undo.Require = lasting(after.Records[0].Fields)
	case had == 1 && has == 0:
		undo.Write = intent.Create
		undo.Expect = lasting(before.Records[0].Fields)
	case had == 1 && has == 1 && before.Records[0].Ref == after.Records[0].Ref:
		undo.Write = intent.Update
		back(&undo, before.Records[0].Fields, after.Records[0].Fields)
		if len(undo.Expect) == 0 {
			return intent.WriteIntent{}, fmt.Errorf("%w: nothing has changed", ErrIrreversible)
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

// back fills in what brings after back to before.
func back(undo *intent.WriteIntent, before, after intent.Fields) {
	undo.Expect, undo.Require = intent.Fields{}, intent.Fields{}
	before, after = lasting(before), lasting(after)
	for name, v := range before {
		now, ok := after[name]
		if ok && same(v, now) {
			continue
		}
		undo.Expect[name] = v
		if ok {
			undo.Require[name] = now
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			undo.Absent = append(undo.Absent, "/"+name)
			undo.Require[name] = after[name]
		}
	}
	// An intent must expect something; the key always holds.
	if len(undo.Expect) == 0 && len(undo.Absent) > 0 {
		undo.Expect = maps.Clone(undo.Key)
	}
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }
