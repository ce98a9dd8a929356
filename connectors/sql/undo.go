package sql

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Invert deletes a row that was created, brings a row that was changed back to
// the values before, and inserts a row that was deleted, as it was. It needs
// [Table].Whole, a read before the write, and requires what after shows.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	undo, err := c.invert(w, before, after)
	if err == nil {
		err = acceptable(undo)
	}
	if err != nil {
		return intent.WriteIntent{}, fmt.Errorf("%w: %w", errNoUndo, err)
	}
	return undo, nil
}

func (c *Connector) invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	p, err := c.lookup(w, "")
	t := p.t
	switch {
	case err != nil:
		return intent.WriteIntent{}, err
	case !slices.Contains(t.undo(c.dialect), w.Write):
		return intent.WriteIntent{}, fmt.Errorf("a %s of %s; only whole rows can be brought back", w.Write, t.kind)
	case before == nil:
		return intent.WriteIntent{}, fmt.Errorf("no record was read before it")
	}
	undo := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind}
	undo.Key = t.keyOf(w, slices.Concat(after.Records, before.Records))
	had, has := len(before.Records), len(after.Records)
	switch {
	case had == 0 && has == 1 && t.Stamp != "" && after.Records[0].Stamp != w.Stamp():
		return undo, fmt.Errorf("the row that is there has the stamp of another write")
	case had == 0 && has == 1:
		undo.Write = intent.Delete
		undo.Require = t.lasting(after.Records[0].Fields, nil)
		if len(undo.Require) == 0 { // the table is its key
			undo.Require = maps.Clone(undo.Key)
		}
	case had == 1 && has == 0:
		undo.Write = intent.Create
		undo.Expect = t.lasting(before.Records[0].Fields, func(c Column) bool { return c.ReadOnly })
		if len(undo.Expect) == 0 {
			undo.Expect = maps.Clone(undo.Key)
		}
	case had == 1 && has == 1 && before.Records[0].Ref == after.Records[0].Ref:
		return t.backTo(undo, before.Records[0], after.Records[0])
	default:
		return undo, fmt.Errorf("%d rows before and %d after", had, has)
	}
	return undo, nil
}

// backTo is the update that brings a row back.
func (t *table) backTo(undo intent.WriteIntent, before, after connectors.Record) (intent.WriteIntent, error) {
	generated := func(c Column) bool { return c.ReadOnly }
	undo, changed := connectors.BringBack(undo, t.lasting(before.Fields, generated), t.lasting(after.Fields, generated))
	if !changed {
		return undo, fmt.Errorf("nothing has changed")
	}
	return undo, nil
}

// keyOf is the key as it is in the row, which can be written differently in the intent (1.0 and
// 1).
func (t *table) keyOf(w intent.WriteIntent, rows []connectors.Record) intent.Fields {
	key := maps.Clone(w.Key)
	if len(rows) > 0 {
		for _, name := range t.Key {
			key[name] = t.columns[name].exact(rows[0].Fields[name])
		}
	}
	return key
}

// lasting leaves out the key and what the database sets by itself.
func (t *table) lasting(fields intent.Fields, also func(Column) bool) intent.Fields {
	kept := intent.Fields{}
	for _, c := range t.Columns {
		v, there := fields[c.Name]
		if !there || c.Volatile || slices.Contains(t.Key, c.Name) || (also != nil && also(c)) {
			continue
		}
		kept[c.Name] = c.exact(v)
	}
	return kept
}

// exact writes a number that no double holds as a string, as intents must.
func (c Column) exact(v any) any {
	n, ok := v.(json.Number)
	if !ok || (c.Type != Integer && c.Type != Numeric) {
		return v
	}
	if _, err := intent.Canonical(map[string]any{"n": n}); err != nil {
		return string(n)
	}
	return v
}

// acceptable reports whether the inverse is a valid intent: a JSON column may contain a number
// that no intent can hold.
func acceptable(undo intent.WriteIntent) error {
	undo.Tenant, undo.Workflow, undo.Tool, undo.Deadline = "t", "w", "undo", time.Time{}
	if undo.Destination == "" {
		undo.Destination = "d"
	}
	return undo.Validate()
}
