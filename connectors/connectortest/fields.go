package connectortest

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// absent represents a missing field, which is not null.
type absent struct{}

func field(f intent.Fields, name string) any {
	if v, ok := f[name]; ok {
		return v
	}
	return absent{}
}

// same reports whether two readings of a field agree.
func (f *Fixture) same(name string, want, got any) bool {
	if f.Same != nil {
		return f.Same(name, want, got)
	}
	return cmp.Equal(want, got, numbers)
}

func (c *check) same(name string, want, got any) bool { return c.f.same(name, want, got) }

// shows reports whether what was wanted of a field is there. Of an object only
// the members that are wanted count.
func (f *Fixture) shows(name string, want, got any) bool {
	w, okW := want.(map[string]any)
	g, okG := got.(map[string]any)
	if f.Same != nil || !okW || !okG {
		return f.same(name, want, got)
	}
	for member, v := range w {
		if !f.shows(name, v, field(g, member)) {
			return false
		}
	}
	return true
}

// numbers compares numbers by value: 1 and 1.0 are the same.
var numbers = cmp.Comparer(func(a, b json.Number) bool {
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || !okY {
		return a == b
	}
	return x.Cmp(y) == 0
})

// Differing lists the wanted fields that a record does not show as wanted, as
// the suite compares: by Same, not by any rule of the profile.
func (f *Fixture) Differing(want, record intent.Fields) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := field(record, name); !f.shows(name, want[name], got) {
			names = append(names, name)
		}
	}
	return names
}

func (c *check) differing(want, record intent.Fields) []string { return c.f.Differing(want, record) }

// Changed lists the places that differ between two reads of a record and that the intent neither
// sets, removes nor ignores, and that the destination does not change by itself.
func (f *Fixture) Changed(in intent.WriteIntent, was, is intent.Fields) []intent.Pointer {
	named := slices.Concat(in.Absent, in.Ignore, f.Profile.Volatile)
	return slices.DeleteFunc(f.changed("", in, was, is), func(path intent.Pointer) bool {
		return slices.ContainsFunc(named, func(n string) bool { return intent.Pointer(n).Contains(path) })
	})
}

// asWanted checks that a record shows the key and all that is expected.
func (c *check) asWanted(in intent.WriteIntent, r connectors.Record) {
	c.Helper()
	for _, want := range []intent.Fields{in.Key, in.Expect} {
		for _, name := range c.differing(want, r.Fields) {
			c.Errorf("field %q is read as %#v, want %#v", name, field(r.Fields, name), want[name])
		}
	}
}

// likeStore checks that a read shows what is in the destination's own store,
// whatever it should be.
func (c *check) likeStore(in intent.WriteIntent, o connectors.Observation) {
	c.Helper()
	stored := c.f.Records(in.Key)
	if len(stored) != len(o.Records) {
		c.Errorf("the read finds %d records, the store has %d", len(o.Records), len(stored))
		return
	}
	for _, s := range stored {
		i := slices.IndexFunc(o.Records, func(r connectors.Record) bool { return r.Ref == s.Ref })
		if i < 0 {
			c.Errorf("the read does not find the record %q", s.Ref)
			continue
		}
		got := o.Records[i]
		for _, names := range []intent.Fields{in.Key, in.Expect} {
			for name := range names {
				if w, g := field(s.Fields, name), field(got.Fields, name); !c.same(name, w, g) {
					c.Errorf("record %q, field %q: the read shows %#v, the store has %#v", s.Ref, name, g, w)
				}
			}
		}
	}
}

// untouched checks that an update changed only what it names, and what the
// destination changes by itself.
func (c *check) untouched(in intent.WriteIntent, was, is intent.Fields) {
	c.Helper()
	for _, path := range c.f.Changed(in, was, is) {
		c.Errorf("the update changed %q, which it does not name", path)
	}
}

// changed lists the places that differ between two readings and that the
// intent does not set.
func (f *Fixture) changed(at intent.Pointer, in intent.WriteIntent, was, is map[string]any) []intent.Pointer {
	var places []intent.Pointer
	all := maps.Clone(is)
	maps.Copy(all, was)
	for name := range all {
		path := at.AppendToken(name)
		a, okA := was[name].(map[string]any)
		b, okB := is[name].(map[string]any)
		switch {
		case okA && okB:
			places = append(places, f.changed(path, in, a, b)...)
		case !sets(in, path) && !f.same(name, field(was, name), field(is, name)):
			places = append(places, path)
		}
	}
	return places
}

func sets(in intent.WriteIntent, path intent.Pointer) bool {
	for _, f := range []intent.Fields{in.Expect, in.Payload, in.Key} {
		if _, ok := intent.Lookup(f, string(path)); ok {
			return true
		}
	}
	return false
}
