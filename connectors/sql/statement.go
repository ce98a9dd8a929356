package sql

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// change is the one statement of a write, and how many rows it must change.
type change struct {
	*statement
	rows int
	// makes means that no row in the answer shows that one existed already.
	makes bool
	// keyed means that the last column of an answer is whether the row has the requested key: a
	// column that rounds or truncates, a trigger, and an index of another collation can change
	// it.
	keyed bool
}

// statementOf builds the statement of a write.
func (c *Connector) statementOf(p plan, r connectors.Request) (change, error) {
	found, err := p.before(r)
	if err != nil {
		return change{}, err
	}
	s := &statement{d: c.dialect}
	out := change{statement: s, rows: p.want}
	switch {
	case p.write == intent.Create, p.write == intent.Upsert && r.Conditional && len(found) == 0:
		s.insert(p)
		if p.t.Unique && s.d.OnConflict {
			s.add(" ON CONFLICT (", s.quoted(p.t.Key), ") DO NOTHING")
		}
		out.makes = true
	case p.write == intent.Upsert && r.Conditional:
		s.update(p)
		s.where(p, found, r.Conditional)
	case p.write == intent.Upsert:
		s.insert(p)
		s.add(" ON CONFLICT (", s.quoted(p.t.Key), ") DO UPDATE")
		s.assign(p)
	case p.write == intent.Update:
		s.update(p)
		s.where(p, found, r.Conditional)
		s.required(p, r.Intent)
	default:
		s.add("DELETE FROM ", s.d.target(p.t))
		s.where(p, found, r.Conditional)
		s.required(p, r.Intent)
	}
	if s.d.Returning {
		s.add(" RETURNING ")
		s.record(p.t, p.t.names())
		if out.keyed = p.write != intent.Delete; out.keyed {
			s.add(", (")
			s.keyed(p)
			s.add(")")
		}
	}
	return out, nil
}

func (s *statement) quoted(names []string) string {
	var all []string
	for _, n := range names {
		all = append(all, s.d.Quote(n))
	}
	return strings.Join(all, ", ")
}

func (s *statement) insert(p plan) {
	names, places := []string{}, []string{}
	put := func(name, place string) {
		names, places = append(names, name), append(places, place)
	}
	for _, v := range slices.Concat(p.key, p.set) {
		put(v.column.Name, s.param(v))
	}
	if p.t.Stamp != "" {
		put(p.t.Stamp, s.textParam(p.stamp))
	}
	if p.t.bumped() {
		put(p.t.Version, "1")
	}
	s.add("INSERT INTO ", s.d.target(p.t), " (", s.quoted(names), ") VALUES (", strings.Join(places, ", "), ")")
}

func (s *statement) update(p plan) {
	s.add("UPDATE ", s.d.target(p.t))
	s.assign(p)
}

// assign sets the columns that the intent names, and no others.
func (s *statement) assign(p plan) {
	var all []string
	done := map[string]bool{}
	for _, v := range p.set {
		done[v.column.Name] = true
		all = append(all, s.d.Quote(v.column.Name)+" = "+s.assigned(p, v))
	}
	for _, name := range slices.Sorted(maps.Keys(p.absent)) {
		if !done[name] {
			all = append(all, s.d.Quote(name)+" = "+s.without(s.d.column(name)+"::jsonb", p.absent[name]))
		}
	}
	if p.t.StampUpdates {
		all = append(all, s.d.Quote(p.t.Stamp)+" = "+s.textParam(p.stamp))
	}
	if p.t.bumped() {
		all = append(all, s.d.Quote(p.t.Version)+" = "+s.d.column(p.t.Version)+" + 1")
	}
	if len(all) == 0 { // what is expected is the key alone: touch the row
		all = append(all, s.d.Quote(p.t.Key[0])+" = "+s.d.column(p.t.Key[0]))
	}
	s.add(" SET ", strings.Join(all, ", "))
}

func (s *statement) assigned(p plan, v value) string {
	object, ok := v.plain.(map[string]any)
	if v.column.Type != JSON || !ok {
		return s.param(v)
	}
	return s.without(s.merged(s.d.column(v.column.Name)+"::jsonb", nil, object), p.absent[v.column.Name])
}

// merged is the object at a path of a JSON column with the wanted members set
// and the others as they are. What is there and is no object becomes one.
func (s *statement) merged(root string, path []string, want map[string]any) string {
	base := root
	if len(path) > 0 {
		base = "(" + root + " #> " + s.textParam(textArray(path)) + "::text[])"
	}
	out := "(CASE WHEN jsonb_typeof(" + base + ") = 'object' THEN " + base + " ELSE '{}'::jsonb END)"
	leaves := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		inner, object := want[name].(map[string]any)
		if !object {
			leaves[name] = want[name]
			continue
		}
		below := append(slices.Clone(path), name)
		out += " || jsonb_build_object(" + s.textParam(name) + "::text, " + s.merged(root, below, inner) + ")"
	}
	if len(leaves) > 0 {
		text, _ := json.Marshal(leaves) // was marshalled whole before
		out += " || " + s.textParam(string(text)) + "::jsonb"
	}
	return "(" + out + ")"
}

func (s *statement) without(expression string, paths []intent.Pointer) string {
	for _, p := range paths {
		tokens := slices.Collect(p.Tokens())
		expression = "(" + expression + " #- " + s.textParam(textArray(tokens[1:])) + "::text[])"
	}
	return expression
}

func textArray(texts []string) string {
	var b strings.Builder
	list := make([]any, len(texts))
	for i, t := range texts {
		list[i] = t
	}
	arrayLiteral(&b, list) // of strings, which it takes
	return b.String()
}

// where aims at the key and, where the rows were read before, at those very
// rows; conditional, only while they are as they were.
func (s *statement) where(p plan, found []connectors.Record, conditional bool) {
	s.add(" WHERE ")
	s.keyed(p)
	if len(found) == 0 || (p.t.ID == "" && !conditional) {
		return
	}
	var rows []string
	for _, r := range found {
		var terms []string
		if p.t.ID != "" {
			terms = append(terms, s.d.column(p.t.ID)+" = "+s.param(value{column: p.t.columns[p.t.ID], text: r.Ref}))
		}
		if conditional {
			terms = append(terms, s.d.version(p.t.Version)+" = "+s.versionParam(r.Version))
		}
		rows = append(rows, "("+strings.Join(terms, " AND ")+")")
	}
	s.add(" AND (", strings.Join(rows, " OR "), ")")
}

// required has the server check again what the intent requires: between the read and the write
// another actor can change it, and an undo must not overwrite that. Conditions that the server
// might compare differently are left to the read.
func (s *statement) required(p plan, w intent.WriteIntent) {
	if !s.d.native {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.Require)) {
		c, ok := p.t.columns[name]
		_, ruled := w.Compare[string(intent.Pointer("").AppendToken(name))]
		if !ok || ruled || c.Type == JSON || slices.Contains(p.t.Key, name) {
			continue
		}
		if v, err := encode("/require/"+name, c, w.Require[name]); err == nil {
			s.add(" AND ", s.d.column(name), " IS NOT DISTINCT FROM ", s.param(v))
		}
	}
}

// versionParam is a version to compare with: PostgreSQL's is text, another
// database's a number.
func (s *statement) versionParam(version string) string {
	v := value{text: version}
	if !s.d.native {
		v.column.Type = Integer
	}
	return s.param(v)
}

func (s *statement) keyed(p plan) {
	var terms []string
	for _, v := range p.key {
		terms = append(terms, s.d.column(v.column.Name)+" = "+s.param(v))
	}
	s.add(strings.Join(terms, " AND "))
}

// record lists what is read of a row: PostgreSQL makes one JSON object of the
// columns, others give them one by one; then the version and the stamp, where
// there are such.
func (s *statement) record(t *table, names []string) {
	var columns []string
	for _, name := range names {
		column := s.d.column(name)
		if s.d.native {
			switch t.columns[name].Type {
			case Char: // without the padding
				column += "::text AS " + s.d.Quote(name)
			case Other:
				column += "::text AS " + s.d.Quote(name)
			}
		}
		columns = append(columns, column)
	}
	list := strings.Join(columns, ", ")
	if s.d.native {
		// Not to_jsonb(r): that would be a column of the name, if there is one.
		list = "(SELECT to_jsonb(r.*) FROM (SELECT " + list + ") AS r)::text"
	}
	s.add(list)
	if t.Version != "" {
		s.add(", ", s.d.version(t.Version))
	}
	if t.Stamp != "" {
		s.add(", ", s.d.column(t.Stamp))
	}
}

// selection is the read of one plan: every row under the key, and every row that has the stamp.
func (d Dialect) selection(p plan) *statement {
	s := &statement{d: d}
	s.add("SELECT ")
	s.record(p.t, columnNames(p.t))
	s.add(" FROM ", d.target(p.t), " WHERE (")
	s.keyed(p)
	s.add(")")
	if p.t.Stamp != "" && p.stamp != "" {
		s.add(" OR ", d.column(p.t.Stamp), " = ", s.textParam(p.stamp))
	}
	return s
}

// several is one read of several plans of one table. The first columns show, for each key column
// and the stamp, at which of the plans the row has that value: the database compares, by the
// rules of each column.
func (d Dialect) several(t *table, plans []plan) *statement {
	s := &statement{d: d}
	var positions, terms []string
	for i, name := range t.Key {
		texts := make([]string, len(plans))
		for n, p := range plans {
			texts[n] = p.key[i].text
		}
		place := s.textParam(textArray(texts))
		positions = append(positions, "array_positions("+place+", "+d.column(name)+")::text")
		terms = append(terms, d.column(name)+" = ANY("+place+")")
	}
	where := "(" + strings.Join(terms, " AND ") + ")"
	if t.Stamp != "" {
		stamps := make([]string, len(plans))
		for n, p := range plans {
			stamps[n] = p.stamp
		}
		place := s.textParam(textArray(stamps))
		positions = append(positions, "array_positions("+place+", "+d.column(t.Stamp)+")::text")
		where += " OR (" + d.column(t.Stamp) + " = ANY(" + place + ") AND " + d.column(t.Stamp) + " <> '')"
	}
	s.add("SELECT ", strings.Join(positions, ", "), ", ")
	s.record(t, columnNames(t))
	s.add(" FROM ", d.target(t), " WHERE ", where)
	return s
}
