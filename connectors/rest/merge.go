package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// merge combines the results of several reads for one query.
type merge struct {
	k     *kind
	q     connectors.Query
	began time.Time

	seen  []*sighting // by ref, in the order in which they were found
	paths []string    // of the lookups, in order
	// queried means that a lookup by key or stamp was made; conclusive, that one of them shows
	// everything that can match.
	queried, conclusive bool
	readBy              string
}

// sighting is a record as the best of the reads that found it showed it.
type sighting struct {
	record found
	byRef  bool
	strong bool
}

func newMerge(k *kind, q connectors.Query) *merge {
	return &merge{k: k, q: q, began: time.Now()}
}

// matches reports whether a record belongs to the query. The record that a create was answered
// with, or that a change addressed, always does, even if another actor has given it another key
// or removed our stamp: that does not make it absent.
func (m *merge) matches(r connectors.Record) bool {
	if m.q.Ref != "" && r.Ref == m.q.Ref && m.aims() {
		return true
	}
	return m.q.Stamp != "" && r.Stamp == m.q.Stamp || m.k.sameKey(m.q.Intent.Key, r.Fields)
}

// aims reports whether the write creates the record, keeps its key, or removes it altogether. A
// declared delete that is no DELETE may remove the key and keep the rest.
func (m *merge) aims() bool {
	switch w := m.k.writes[m.q.Intent.Write]; {
	case m.q.Intent.Write == intent.Create:
		return true
	case w == nil:
		return false
	case m.q.Intent.Write == intent.Delete:
		return w.request.method == http.MethodDelete
	}
	return true
}

// takes is matches, but refuses a record whose key differs from ours only in its type. The
// destination then stores numbers as text, or the reverse, undeclared, and a record of our own
// create would be mistaken for a foreign one.
func (m *merge) takes(r connectors.Record) (bool, error) {
	if m.matches(r) {
		return true, nil
	}
	for name, want := range m.q.Intent.Key {
		x, okX := scalarText(want)
		y, okY := scalarText(r.Fields[name])
		if !okX || !okY || x != y {
			return false, nil
		}
	}
	return false, fmt.Errorf("%w: a record has our key as another type; want compare with the rule string", errAnswer)
}

// add merges the result of a lookup.
func (m *merge) add(r *read, f result) {
	m.queried = true
	m.paths = append(m.paths, r.name)
	if f.strong && (r.key || r.stamp && m.stamped()) {
		m.conclusive = true
	}
	for _, rec := range f.records {
		if m.readBy == "" {
			m.readBy = r.name
		}
		m.see(rec, sighting{strong: f.strong})
	}
}

// suffices reports whether a lookup by stamp alone can show nothing more. The one send of the write
// made one record at most, unless it was multiplied on its way, and then the key has several.
func (m *merge) suffices(r *read) bool {
	return m.q.Once && !r.key && len(m.seen) == 1 && m.ours(m.seen[0]) && (m.seen[0].strong || !r.strong)
}

// shows reports whether a lookup has shown the record of a ref, and a read by that ref can show
// nothing newer: it is no stronger, and what was shown has our stamp, or has had no other state.
func (m *merge) shows(ref string, r *read) bool {
	return slices.ContainsFunc(m.seen, func(s *sighting) bool {
		return s.record.Ref == ref && (s.strong || !r.strong) && (m.ours(s) || m.q.Intent.Write == intent.Create)
	})
}

func (m *merge) ours(s *sighting) bool { return m.q.Stamp != "" && s.record.Stamp == m.q.Stamp }

// stamped reports whether a record that the write made has its stamp. Then, and only then, a
// lookup by stamp finds all that it can have made.
func (m *merge) stamped() bool {
	switch m.q.Intent.Write {
	case intent.Create:
		return m.k.profile.Stamped
	case intent.Update:
		return m.k.profile.StampsUpdates
	}
	return false
}

// addRef takes in what a read by ref found, which goes before all others.
func (m *merge) addRef(r *read, ref string, f result) {
	for _, rec := range f.records {
		if m.readBy == "" {
			m.readBy = r.name
		}
		m.see(rec, sighting{byRef: true, strong: f.strong})
	}
	if len(f.records) == 0 && f.strong {
		m.drop(ref) // a lookup may show a removed record, or another one, by now
	}
}

func (m *merge) drop(ref string) {
	m.seen = slices.DeleteFunc(m.seen, func(s *sighting) bool { return s.record.Ref == ref })
}

// see notes a record. One ref is one record, and two refs are two, whatever
// they have in common.
func (m *merge) see(rec found, s sighting) {
	s.record = rec
	i := slices.IndexFunc(m.seen, func(old *sighting) bool { return old.record.Ref == rec.Ref })
	if i < 0 {
		m.seen = append(m.seen, &s)
		return
	}
	old := m.seen[i]
	if s.byRef && (s.strong || !old.strong) || s.strong && !old.strong || s.strong == old.strong && !old.byRef {
		m.seen[i] = &s
	}
}

func (m *merge) refs() []string {
	var all []string
	for _, s := range m.seen {
		all = append(all, s.record.Ref)
	}
	return all
}

// observation is the merged result. It is strong when a lookup showed everything that can match
// and every record was shown by a strong read: the weakest part determines what can be hidden.
func (m *merge) observation() connectors.Observation {
	o := connectors.Observation{At: m.began, Path: m.readBy, Records: []connectors.Record{}}
	if o.Path == "" {
		o.Path = m.paths[0]
	}
	strong := m.conclusive
	for _, s := range m.seen {
		strong = strong && s.strong
		o.Records = append(o.Records, s.record.Record)
		o.Open, o.Failed = cmp.Or(o.Open, s.record.open), cmp.Or(o.Failed, s.record.failed)
	}
	if strong {
		o.Strength = connectors.Strong
	}
	return o
}
