package orders

import (
	"errors"
	"fmt"
	"maps"

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
		return intent.WriteIntent{}, fmt.Errorf("%w: no record was read before it", ErrIrreversible)
	}
	undo := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: maps.Clone(w.Key)}
	had, has := len(before.Records), len(after.Records)
	switch {
	case had == 0 && has == 1 && c.declare.Stamps && after.Records[0].Stamp != w.Stamp():
		return intent.WriteIntent{}, fmt.Errorf("%w: the record that is there has the stamp of another write", ErrIrreversible)
	case had == 0 && has == 1:
		undo.Write = intent.Delete
		undo.Require = lasting(after.Records[0].Fields)
	case had == 1 && has == 0:
		undo.Write = intent.Create
		undo.Expect = lasting(before.Records[0].Fields)
	case had == 1 && has == 1 && before.Records[0].Ref == after.Records[0].Ref:
		var changed bool
		if undo, changed = connectors.BringBack(undo, lasting(before.Records[0].Fields), lasting(after.Records[0].Fields)); !changed {
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
