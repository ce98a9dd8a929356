package sql

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// plan is an intent that was understood: every name is one of the table's,
// every value has the form of its column.
type plan struct {
	t     *table
	write intent.WriteType
	want  int
	stamp string
	key   []value
	// set are the values of expect and payload, in the order of names, without
	// the key and without what the database fills.
	set []value
	// absent are paths within JSON columns that are to go, by column.
	absent map[string][]intent.Pointer
}

// lookup finds the table and the key, which is all that a read needs.
func (c *Connector) lookup(w intent.WriteIntent, stamp string) (plan, error) {
	t, ok := c.tables[w.Kind]
	if !ok {
		return plan{}, unusable("/kind", fmt.Sprintf("is %q", clip(w.Kind)), "one of "+strings.Join(slices.Sorted(maps.Keys(c.tables)), ", "))
	}
	p := plan{t: t, write: w.Write, want: w.Want(), stamp: stamp}
	for _, name := range slices.Sorted(maps.Keys(w.Key)) {
		if !slices.Contains(t.Key, name) {
			return plan{}, unusable("/key/"+clip(name), "is not a column of the key", strings.Join(t.Key, ", ")+" alone")
		}
	}
	for _, name := range t.Key {
		v, err := encode("/key/"+name, t.columns[name], w.Key[name])
		if err == nil && v.null {
			err = unusable("/key/"+name, "is missing", "a value for each column of the key")
		}
		if err != nil {
			return plan{}, err
		}
		p.key = append(p.key, v)
	}
	return p, nil
}

// understand makes the plan of a write.
func (c *Connector) understand(w intent.WriteIntent, stamp string) (plan, error) {
	p, err := c.lookup(w, stamp)
	if err != nil {
		return plan{}, err
	}
	d := c.dialect
	if !slices.Contains(p.t.writes(d), w.Write) {
		return plan{}, unusable("/write", fmt.Sprintf("is %q", clip(string(w.Write))), fmt.Sprintf("one of %v", p.t.writes(d)))
	}
	if p.want != 1 && (w.Write == intent.Create || w.Write == intent.Upsert || p.t.Unique) {
		return plan{}, unusable("/count", fmt.Sprintf("is %d", p.want), "1: a write makes one row, and a unique key names one")
	}
	for part, fields := range map[string]intent.Fields{"/expect/": w.Expect, "/payload/": w.Payload} {
		if err := p.addValues(part, fields); err != nil {
			return plan{}, err
		}
	}
	slices.SortFunc(p.set, func(a, b value) int { return strings.Compare(a.column.Name, b.column.Name) })
	return p, p.addAbsent(w, d)
}

func (p *plan) addValues(part string, fields intent.Fields) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		c, ok := p.t.columns[name]
		switch {
		case !ok:
			return unusable(part+clip(name), "is not a column of the kind "+p.t.kind, "one of "+strings.Join(columnNames(p.t), ", "))
		case slices.Contains(p.t.Key, name):
			continue // has the value of the key: the intent was validated
		case c.ReadOnly && part == "/payload/":
			return unusable(part+name, "is filled by the database", "it left out, or expected")
		}
		v, err := encode(part+name, c, fields[name])
		if err != nil {
			return err
		}
		if !c.ReadOnly {
			p.set = append(p.set, v)
		}
	}
	return nil
}

func columnNames(t *table) []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// addAbsent adds the fields that must be absent: members within JSON columns only.
func (p *plan) addAbsent(w intent.WriteIntent, d Dialect) error {
	p.absent = map[string][]intent.Pointer{}
	for i, path := range w.Absent {
		at := fmt.Sprintf("/absent/%d", i)
		tokens := slices.Collect(intent.Pointer(path).Tokens())
		c, ok := p.t.columns[tokens[0]]
		switch {
		case !ok || c.Type != JSON || len(tokens) < 2:
			return unusable(at, fmt.Sprintf("is %q", clip(path)), "a member within a JSON column; a column itself is never missing, expect null instead")
		case w.Write != intent.Create && !d.native:
			return unusable(at, "cannot be removed on this database", "the JSON column sent as a whole by another way")
		case c.ReadOnly || slices.Contains(p.t.Key, c.Name):
			return unusable(at, "is in a column that is not ours to set", "another")
		}
		p.absent[c.Name] = append(p.absent[c.Name], intent.Pointer(path))
	}
	return p.mergeable(w, d)
}

// mergeable refuses objects that an update would have to merge where the database cannot: set as
// a whole, they would remove members that the intent does not name.
func (p *plan) mergeable(w intent.WriteIntent, d Dialect) error {
	if d.native || w.Write == intent.Create {
		return nil
	}
	for _, v := range p.set {
		if _, object := v.plain.(map[string]any); object && v.column.Type == JSON {
			return unusable("/expect/"+v.column.Name, "is an object, which this database cannot merge into what is there", "a column of its own for what changes")
		}
	}
	return nil
}

// before are the rows of the pre-state that a change goes to.
func (p plan) before(r connectors.Request) ([]connectors.Record, error) {
	if r.Before == nil {
		if r.Conditional {
			return nil, connectors.NotSent(fmt.Errorf("%w: a conditional write without a pre-state", errMatches))
		}
		return nil, nil
	}
	found := r.Before.Records
	changes := p.write == intent.Update || p.write == intent.Delete
	if (changes && len(found) != p.want) || (!changes && len(found) > 1) {
		return nil, connectors.NotSent(fmt.Errorf("%w: %d were read before, %d declared", errMatches, len(found), p.want))
	}
	for _, record := range found {
		if r.Conditional && record.Version == "" {
			return nil, connectors.NotSent(fmt.Errorf("%w: the pre-state has no version to compare with", errMatches))
		}
		if p.t.ID != "" && record.Ref == "" {
			return nil, connectors.NotSent(fmt.Errorf("%w: the pre-state does not name its row", errMatches))
		}
	}
	return found, nil
}
