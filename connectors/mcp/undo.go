package mcp

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// Invert builds the write that undoes w, where the contract defines one. It needs the state
// before, and requires the state now.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	k, err := c.kindOf(w)
	if err != nil {
		return intent.WriteIntent{}, err
	}
	u, ok := k.undo[w.Write]
	if !ok || before == nil {
		return intent.WriteIntent{}, fmt.Errorf("%w: the contract does not say how to undo a %s, or no record was read before it", errNoUndo, w.Write)
	}
	key := maps.Clone(w.Key)
	delete(key, carried)
	inverse := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: key, Write: u}
	had, has := len(before.Records), len(after.Records)
	switch {
	case w.Write != intent.Delete && had == 0 && has == 1 && (w.Write == intent.Create || w.Write == intent.Upsert):
		return k.undoMaking(w, inverse, after.Records[0])
	case (w.Write == intent.Update || w.Write == intent.Upsert) && had == 1 && has == 1 && before.Records[0].Ref == after.Records[0].Ref:
		return k.undoChange(w, inverse, before.Records[0], after.Records[0])
	case w.Write == intent.Delete && had == 1 && has == 0 && u != intent.Delete:
		return k.undoDelete(inverse, before.Records[0])
	}
	return intent.WriteIntent{}, fmt.Errorf("%w: %d records before and %d after", errNoUndo, had, has)
}

// undoMaking removes what was created.
func (k *kind) undoMaking(w, inverse intent.WriteIntent, now connectors.Record) (intent.WriteIntent, error) {
	switch {
	case k.writes[intent.Delete] == nil || inverse.Write == intent.Update && w.Write == intent.Create:
		return inverse, fmt.Errorf("%w: there is no tool that takes it away", errNoUndo)
	case k.profile.Stamped && k.writes[w.Write].stamp.set && now.Stamp != w.Stamp():
		return inverse, fmt.Errorf("%w: the record that is there has the stamp of another write", errNoUndo)
	}
	inverse.Write = intent.Delete
	inverse.Require = declared.Lasting(k.profile, now.Fields)
	return inverse, nil
}

// undoChange brings a record back to what it was. Of several records none may
// have been missing before.
func (k *kind) undoChange(w, inverse intent.WriteIntent, was, now connectors.Record) (intent.WriteIntent, error) {
	if inverse.Write == intent.Delete {
		inverse.Write = intent.Upsert
	}
	undoer := k.writes[inverse.Write]
	if undoer == nil || undoer.readsBack() || k.parts {
		return inverse, fmt.Errorf("%w: there is no tool that brings it back", errNoUndo)
	}
	if k.each {
		return inverse, fmt.Errorf("%w: some of the records were there before", errNoUndo)
	}
	inverse.Expect, inverse.Require = intent.Fields{}, declared.Lasting(k.profile, now.Fields)
	for name := range undoer.expect {
		old, there := was.Fields[name]
		current, shown := now.Fields[name]
		switch {
		case there == shown && reflect.DeepEqual(old, current) && inverse.Write == intent.Update:
		case !there && shown:
			return inverse, fmt.Errorf("%w: the field %s was not there before", errNoUndo, name)
		case there:
			inverse.Expect[name] = old
		}
	}
	if len(inverse.Expect) == 0 {
		return inverse, fmt.Errorf("%w: nothing has changed", errNoUndo)
	}
	return inverse, nil
}

// undoDelete makes the record anew, with all the fields that the tool takes.
func (k *kind) undoDelete(inverse intent.WriteIntent, was connectors.Record) (intent.WriteIntent, error) {
	maker := k.writes[inverse.Write]
	inverse.Expect = intent.Fields{}
	if k.each {
		inverse.Expect[eachRecords] = was.Fields[eachRecords]
		members, _ := object(was.Fields[eachRecords])
		if all, err := k.keysOf(inverse); err != nil || len(all) != len(members) {
			return inverse, fmt.Errorf("%w: some of the records were not there before", errNoUndo)
		}
		return inverse, nil
	}
	for name, v := range declared.Lasting(k.profile, was.Fields) {
		if _, takes := maker.expect[name]; takes {
			inverse.Expect[name] = v
		} else if _, isKey := inverse.Key[name]; !isKey {
			return inverse, fmt.Errorf("%w: no tool sets the field %s", errNoUndo, name)
		}
	}
	if len(inverse.Expect) == 0 {
		inverse.Expect = maps.Clone(inverse.Key)
	}
	return inverse, nil
}
