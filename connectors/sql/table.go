package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// maxIdentifier is the longest name in bytes: PostgreSQL cuts longer ones
// to this in silence, and two columns would become one.
const maxIdentifier = 63

// XMin as Table.Version takes PostgreSQL's own xmin: it changes with every
// write to the row, and needs no column.
const XMin = "xmin"

// Column is one column of a table.
type Column struct {
	// Name is the column's name, in the letter case it has in the database.
	// Required.
	Name string
	// Type is how values are written, read and compared. Default Text.
	Type Type
	// ReadOnly marks a column that the database fills (generated, identity
	// always): it is read and may be expected, and is never written. Default
	// false.
	ReadOnly bool
	// Volatile marks a column that the database changes by itself
	// (updated_at by a trigger). Default false.
	Volatile bool
}

// Table is one kind of record. Name, Columns and Key are required; every other
// zero value is the careful one.
type Table struct {
	// Schema and Name are the table's. Default schema: the search path of the
	// connection, which must lead reads and writes to the same table.
	Schema, Name string
	// Columns are those that intents may name and reads show. Stamp and Version
	// are not among them. Required.
	Columns []Column
	// Key names the columns of the business key; an intent gives all of them.
	// Required.
	Key []string
	// Unique means that a unique constraint or index covers exactly the key columns. Upserts need
	// it. Probe checks it, and so does PostgreSQL at each insert. Default false: a repeat makes a
	// second row.
	Unique bool
	// ID names a column whose values are never used twice (a sequence, a uuid; in SQLite
	// AUTOINCREMENT). It then names records, and changes address exactly the row that was read.
	// Required unless Unique. Default: the key names the record.
	ID string
	// Stamp names a text column for the stamp; put an index on it, since reads query it. Default
	// none.
	Stamp string
	// StampUpdates writes the stamp on updates too. Default false: the row has the stamp of its
	// create.
	StampUpdates bool
	// Version names an integer column that each write of ours increments, as every other actor
	// must, or [XMin]. It makes conditional writes possible. Default none.
	Version string
	// VersionByTrigger means that the database changes the version column at each write, so that
	// we do not. Default false.
	VersionByTrigger bool
	// Whole means that Columns, Stamp and Version are all the columns, so that a read is enough
	// to undo a write. Probe checks it. Default false: nothing can be undone.
	Whole bool
	// Summary is how rows are named to people. Default: by kind and key.
	Summary connectors.Summary
	// Sample has values for the records of [Connector.Sample]. Default none.
	Sample Sample
}

// Sample is the content of sample records besides a generated text key.
type Sample struct {
	// Create is what a sample record holds. Key columns that are not text
	// belong in here. Default none.
	Create intent.Fields
	// Update is what an update sets; at least one value differs from Create.
	// Default none.
	Update intent.Fields
}

// table is a Table that was checked.
type table struct {
	Table
	kind    string
	columns map[string]Column
}

func newTable(kind string, given Table, d Dialect) (*table, error) {
	t := &table{Table: given, kind: kind, columns: map[string]Column{}}
	t.Columns, t.Key = slices.Clone(given.Columns), slices.Clone(given.Key)
	for i, c := range t.Columns {
		if c.Type == "" {
			c.Type = Text
			t.Columns[i] = c
		}
		if _, twice := t.columns[c.Name]; twice {
			return nil, fmt.Errorf("columns: %q is there twice; want each once", clip(c.Name))
		}
		t.columns[c.Name] = c
	}
	return t, errors.Join(t.checkNames(), t.checkKey(), t.checkExtras(d), t.checkTypes(d))
}

func (t *table) checkNames() error {
	names := map[string]string{"name": t.Name}
	for field, name := range map[string]string{"schema": t.Schema, "id": t.ID, "stamp": t.Stamp, "version": t.Version} {
		if name != "" {
			names[field] = name
		}
	}
	for i, c := range t.Columns {
		names[fmt.Sprintf("columns[%d]", i)] = c.Name
	}
	var errs []error
	for field, name := range names {
		if name == "" || len(name) > maxIdentifier || strings.ContainsRune(name, 0) {
			errs = append(errs, fmt.Errorf("%s: is %q; want 1 to %d bytes", field, clip(name), maxIdentifier))
		}
	}
	return errors.Join(errs...)
}

func (t *table) checkKey() error {
	if len(t.Key) == 0 || len(t.Key) > intent.MaxKeyMembers {
		return fmt.Errorf("key: has %d columns; want 1 to %d", len(t.Key), intent.MaxKeyMembers)
	}
	for i, name := range t.Key {
		c, ok := t.columns[name]
		switch {
		case !ok:
			return fmt.Errorf("key: %q is not among the columns", clip(name))
		case slices.Contains(t.Key[:i], name):
			return fmt.Errorf("key: %q is there twice; want each once", clip(name))
		case c.ReadOnly || c.Volatile || !c.Type.keys():
			return fmt.Errorf("key: %q cannot be queried or is not ours to set; want a plain column that is neither read-only nor volatile", clip(name))
		}
	}
	return nil
}

func (t *table) checkExtras(d Dialect) error {
	_, hasID := t.columns[t.ID]
	_, hasStamp := t.columns[t.Stamp]
	_, hasVersion := t.columns[t.Version]
	switch {
	case t.ID == "" && !t.Unique:
		return errors.New("id: is missing; want a column whose values are never used twice, since the key is not unique")
	case t.ID != "" && (!hasID || !t.columns[t.ID].Type.keys()):
		return fmt.Errorf("id: %q; want one of the columns, with a plain type", clip(t.ID))
	case t.Stamp != "" && (hasStamp || t.Stamp == t.Version):
		return fmt.Errorf("stamp: %q; want a column that is neither among the columns nor the version", clip(t.Stamp))
	case t.StampUpdates && t.Stamp == "":
		return errors.New("stamp updates: there is no stamp column")
	case t.Version != "" && hasVersion:
		return fmt.Errorf("version: %q; want a column that is not among the columns, or xmin", clip(t.Version))
	case t.Version == XMin && !d.native:
		return errors.New("version: xmin is PostgreSQL's; want a column")
	}
	return nil
}

func (t *table) checkTypes(d Dialect) error {
	for _, c := range t.Columns {
		switch {
		case !slices.Contains(types(), c.Type):
			return fmt.Errorf("columns: %q has the type %q; want one of %v", clip(c.Name), clip(string(c.Type)), types())
		case c.Type == Array && !d.native:
			return fmt.Errorf("columns: %q has the type %q, which only PostgreSQL has", clip(c.Name), c.Type)
		}
	}
	return nil
}

// bumped reports whether we increment the version ourselves.
func (t *table) bumped() bool {
	return t.Version != "" && t.Version != XMin && !t.VersionByTrigger
}

// names are the columns by which records are named.
func (t *table) names() []string {
	if t.ID != "" {
		return []string{t.ID}
	}
	return t.Key
}

// writes are the write types that the table has.
func (t *table) writes(d Dialect) []intent.WriteType {
	all := []intent.WriteType{intent.Create, intent.Update}
	if t.Unique && d.OnConflict {
		all = append(all, intent.Upsert)
	}
	return append(all, intent.Delete)
}

// undo are the write types that can be undone.
func (t *table) undo(d Dialect) []intent.WriteType {
	if !t.Whole {
		return nil
	}
	return slices.DeleteFunc(t.writes(d), func(w intent.WriteType) bool { return w == intent.Delete && !t.restorable() })
}

// restorable: a deleted row can be had back as it was, its name included.
func (t *table) restorable() bool { return t.ID == "" || !t.columns[t.ID].ReadOnly }

// profile is what the table can do; what all tables share is filled in by the
// connector.
func (t *table) profile(d Dialect) connectors.Profile {
	p := connectors.Profile{
		Summary: t.Summary,
		Writes:  t.writes(d), Undo: t.undo(d),
		Stamped: t.Stamp != "", StampsUpdates: t.StampUpdates,
		Compare: map[string]intent.Comparison{},
	}
	if t.Unique {
		p.Unique = slices.DeleteFunc(t.writes(d), func(w intent.WriteType) bool {
			// A key can be given to another row after a delete; an id cannot.
			return w == intent.Delete && t.ID == ""
		})
	}
	if t.Version != "" {
		p.Conditional = slices.DeleteFunc(t.writes(d), func(w intent.WriteType) bool { return w == intent.Create })
	}
	for _, c := range t.Columns {
		path := string(intent.Pointer("").AppendToken(c.Name))
		if rules := c.Type.comparison(); len(rules) > 0 {
			p.Compare[path] = rules
		}
		if c.Volatile {
			p.Volatile = append(p.Volatile, path)
		}
	}
	return p
}
