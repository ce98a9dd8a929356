package rest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// Invert builds the write that undoes w, where the declaration defines one. It needs the state
// before, and exactly one record on each side that has one. What it changes must still be as in
// after.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	k, err := c.kindOf(w)
	if err != nil {
		return intent.WriteIntent{}, err
	}
	if before == nil && !(w.Write == intent.Create && k.profile.FreshKeys) {
		return intent.WriteIntent{}, fmt.Errorf("%w: no record was read before it", errNoUndo)
	}
	if before == nil {
		before = &connectors.Observation{}
	}
	did := w.Write
	had, has := len(before.Records), len(after.Records)
	if did == intent.Upsert {
		did = intent.Update
		if had == 0 {
			did = intent.Create
		}
	}
	u, ok := k.undo[did]
	if !ok {
		return intent.WriteIntent{}, fmt.Errorf("%w: the declaration does not say how to undo a %s", errNoUndo, did)
	}
	inverse := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: maps.Clone(w.Key), Write: u.write}
	switch {
	case did == intent.Create && had == 0 && has == 1:
		return k.undoCreate(w, u, inverse, after.Records[0])
	case did == intent.Update && had == 1 && has == 1 && before.Records[0].Ref == after.Records[0].Ref:
		return k.undoUpdate(w, inverse, before.Records[0], after.Records[0])
	case did == intent.Delete && had == 1 && has == 0:
		inverse.Expect = declared.Lasting(k.profile, before.Records[0].Fields)
		return inverse, nil
	}
	return intent.WriteIntent{}, fmt.Errorf("%w: %d records before and %d after", errNoUndo, had, has)
}

func (k *kind) undoCreate(w intent.WriteIntent, u undo, inverse intent.WriteIntent, now connectors.Record) (intent.WriteIntent, error) {
	if k.profile.Stamped && uses(k.writes[w.Write].holes(), "stamp") && now.Stamp != w.Stamp() {
		return intent.WriteIntent{}, fmt.Errorf("%w: the record that is there has the stamp of another write", errNoUndo)
	}
	inverse.Require = declared.Lasting(k.profile, now.Fields)
	if u.write == intent.Update {
		inverse.Expect = maps.Clone(u.expect)
	}
	return inverse, nil
}

// undoUpdate resets the named fields to their earlier values.
func (k *kind) undoUpdate(w intent.WriteIntent, inverse intent.WriteIntent, was, now connectors.Record) (intent.WriteIntent, error) {
	inverse.Expect, inverse.Require = intent.Fields{}, declared.Lasting(k.profile, now.Fields)
	touched := slices.Concat(slices.Collect(maps.Keys(w.Expect)), slices.Collect(maps.Keys(w.Payload)))
	for _, name := range touched {
		// Also where the destination changes it by itself: another actor may have set it since.
		if v, shown := now.Fields[name]; shown {
			inverse.Require[name] = v
		}
	}
	for _, name := range touched {
		old, there := was.Fields[name]
		current, shown := now.Fields[name]
		switch {
		case w.Key[name] != nil, there == shown && reflect.DeepEqual(old, current):
		case !there && k.writes[intent.Update].takesAway():
			inverse.Absent = append(inverse.Absent, string(intent.Pointer("").AppendToken(name)))
		case !there:
			return intent.WriteIntent{}, fmt.Errorf("%w: the field %s was not there before", errNoUndo, name)
		default:
			inverse.Expect[name] = old
		}
	}
	for _, path := range w.Absent {
		name := firstName(path)
		if old, there := was.Fields[name]; there {
			inverse.Expect[name] = old
		}
	}
	switch {
	case len(inverse.Expect)+len(inverse.Absent) == 0:
		return intent.WriteIntent{}, fmt.Errorf("%w: nothing has changed", errNoUndo)
	case len(inverse.Expect) == 0: // an intent must expect something; the key always holds
		inverse.Expect = maps.Clone(inverse.Key)
	}
	slices.Sort(inverse.Absent)
	return inverse, nil
}
