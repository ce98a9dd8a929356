package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
)

// marks are the members by which ours would be known among the records of a listing, and which none of
// them has shown so far. Where the paths of a declaration lead past them, every record looks like a foreign
// one, and ours would be called absent.
type marks struct {
	unmet []trait
	met   int // how many records there were
}

// trait is one of them.
type trait struct {
	text  string
	shown func(record any) bool
}

// marks are those of a listing that is asked for a key: the fields of it that the request does not name,
// since of the others every record must have the place; or the stamp, where it is not by key.
func (k *kind) marks(r *read, key intent.Fields) *marks {
	m := &marks{}
	if !r.key {
		near := k.record.stamp.near()
		m.unmet = append(m.unmet, trait{"the stamp at " + k.record.stamp.text(), near})
		return m
	}
	for _, name := range slices.Sorted(maps.Keys(key)) {
		if slices.Contains(k.scope, name) || slices.Contains(r.keysAsked, name) {
			continue
		}
		if f := k.record.fields[name]; f != nil {
			m.unmet = append(m.unmet, trait{name + " at " + f.text(), f.near()})
			continue
		}
		inObject := len(k.record.spread) > 0 && k.record.spread[0].Parent() != nil // which is there, or an error
		m.unmet = append(m.unmet, trait{name, func(record any) bool { return inObject || k.record.hasPlace(name, record) }})
	}
	return m
}

// meet notes what a record shows.
func (m *marks) meet(record any) {
	m.met++
	m.unmet = slices.DeleteFunc(m.unmet, func(of trait) bool { return of.shown(record) })
}

// unshown is the error of a listing in which ours is not found, and could not be.
func (m *marks) unshown() error {
	if m.met == 0 || len(m.unmet) == 0 {
		return nil
	}
	var all []string
	for _, of := range m.unmet {
		all = append(all, of.text)
	}
	return fmt.Errorf("%w: none of its %d records shows %s, by which ours is known; where other records may lack it, record.keep can leave them out", errAnswer, m.met, strings.Join(all, ", "))
}

// near reports whether a record has the place of a field, or the object that it would be in: APIs leave out
// members without a value. The record itself says nothing.
func (f *field) near() func(record any) bool {
	at := f.place
	if f.list != nil {
		at = f.list.Container
	}
	within := at.Parent()
	if within != nil && within.Parent() == nil {
		within = nil
	}
	return func(record any) bool {
		_, there := at.Value(record)
		if !there && within != nil {
			object, _ := within.Value(record)
			_, there = object.(map[string]any)
		}
		return there
	}
}
