package rest

import (
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// kindOf finds the kind of an intent that it can serve, for this account.
func (c *Connector) kindOf(w intent.WriteIntent) (*kind, error) {
	k, err := c.d.kindOf(w)
	if err != nil {
		return nil, err
	}
	return k, k.seen(w, c.given())
}

// seen is [record.seen], where there are reads.
func (k *kind) seen(w intent.WriteIntent, account values) error {
	if k.profile.WriteOnly {
		return nil
	}
	return k.record.seen(w, account)
}

// seen refuses an intent about fields that reads cannot show. A field that is not shown would be
// mistaken for an absent one.
func (r *record) seen(w intent.WriteIntent, account values) error {
	shown, all := r.shows(account)
	unseen := func(name string) bool { return !all && !shown[name] }
	for _, part := range []struct {
		name   string
		fields intent.Fields
	}{{"expect", w.Expect}, {"require", w.Require}} {
		for _, name := range slices.Sorted(maps.Keys(part.fields)) {
			if slices.Contains(r.scope, name) {
				// Beside an equal member of the key it says nothing new, as an undo does.
				if !declared.Same(part.fields[name], w.Key[name]) {
					return unserved("/"+part.name+"/"+name, "/%s/%s: is a scope of the key, which no record shows", part.name, name)
				}
				continue
			}
			if unseen(name) {
				return unserved("/"+part.name+"/"+name, "/%s/%s: is not among what reads can show", part.name, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Key)) {
		if !slices.Contains(r.scope, name) && unseen(name) { // each record would look like another one
			return unserved("/key/"+name, "/key/%s: is not among what reads can show", name)
		}
	}
	for _, path := range w.Absent {
		if unseen(firstName(path)) {
			return unserved("/absent", "/absent: %s is not among what reads can show", path)
		}
		if r.nulls {
			return unserved("/absent", "/absent: %s: what has no value is shown as null; want null expected instead", path)
		}
	}
	return nil
}

// shows lists the fields that reads can show, or reports that they can show all.
func (r *record) shows(account values) (names map[string]bool, all bool) {
	if len(r.spread) > 0 && len(r.only) == 0 {
		return nil, true
	}
	names = map[string]bool{}
	for name := range r.fields {
		names[name] = true
	}
	for _, p := range r.only {
		text, _, _ := p.expand(account, false) // all parameters are there
		for _, name := range strings.Split(text, ",") {
			names[strings.TrimSpace(name)] = true
		}
	}
	return names, false
}

// firstName is the field that a path leads into.
func firstName(path string) string {
	for name := range intent.Pointer(path).Tokens() {
		return name
	}
	return ""
}
