package rest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// maxEffects bounds the account of one fake. A test that makes more has
// lost its way.
const maxEffects = 100_000

// Object is one record in the API's own form: decoded JSON, numbers as
// json.Number. Members that begin with a dot are the fake's own and never
// shown.
type Object map[string]any

// Clone is a deep copy in decoded form: what was an int is a json.Number then.
func (o Object) Clone() Object {
	if o == nil {
		return nil
	}
	c := make(Object, len(o))
	for name, v := range o {
		c[name] = copied(v)
	}
	return c
}

// copied is a deep copy. Thousands of test runs copy every object at every read, so decoded
// values do not go through JSON.
func copied(v any) any {
	switch v := v.(type) {
	case nil, bool, string, json.Number:
		return v
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = copied(e)
		}
		return c
	case map[string]any:
		return map[string]any(Object(v).Clone())
	}
	raw, err := json.Marshal(map[string]any{"": v})
	if err != nil {
		panic(fmt.Sprintf("fakes/rest: an object that is no JSON: %v", err)) // a fake made it
	}
	c, err := object(raw)
	if err != nil {
		panic(fmt.Sprintf("fakes/rest: an object that is no JSON: %v", err)) // a fake made it
	}
	return c[""]
}

// Shown is a copy without the fake's own members.
func (o Object) Shown() Object {
	c := o.Clone()
	for name := range c {
		if name != "" && name[0] == '.' {
			delete(c, name)
		}
	}
	return c
}

// Text is a member that is a string, else "".
func (o Object) Text(name string) string {
	s, _ := o[name].(string)
	return s
}

// Effect is one change of the store.
type Effect struct {
	Seq        int
	At         time.Time
	By         fault.Origin
	Collection string
	ID         string
	Before     Object // nil: it was not there
	After      Object // nil: it is gone
}

type store struct {
	lastID int64
	order  []place                         // of first appearance
	rows   map[place]fault.History[Object] // what ever was
}

type place struct{ collection, id string }

func newStore() store { return store{rows: map[place]fault.History[Object]{}} }

// View shows the store as of a moment. It returns copies of objects.
type View struct {
	store *store
	at    time.Time
}

// At is the moment.
func (v View) At() time.Time { return v.at }

// Get returns one record, nil if there is none.
func (v View) Get(collection, id string) Object {
	return v.store.rows[place{collection, id}].AsOf(v.at).Clone()
}

// List returns the records of a collection, oldest first.
func (v View) List(collection string) []Object {
	var all []Object
	for _, p := range v.store.order {
		if p.collection != collection {
			continue
		}
		if o := v.store.rows[p].AsOf(v.at); o != nil {
			all = append(all, o.Clone())
		}
	}
	return all
}

// Next is a number that no record of the fake has had.
func (v View) Next() int64 {
	v.store.lastID++
	return v.store.lastID
}

func (f *Fake) now() View { return View{&f.store, time.Now()} }

// Now shows the current state, whatever reads would show.
func (f *Fake) Now(collection string) []Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now().List(collection)
}

// Effects returns all effects so far, in their order.
func (f *Fake) Effects() []Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.effects)
}

// Put stores a record as another actor would. build gets the current view and returns the
// record's id and the record.
func (f *Fake) Put(collection string, build func(now View) (string, Object)) (string, Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, o := build(f.now())
	f.apply(fault.ByOther, collection, id, o)
	return id, o.Clone()
}

// Edit changes a record as another actor would, and reports whether it was there.
func (f *Fake) Edit(collection, id string, change func(o Object)) bool {
	return f.change(fault.ByOther, collection, id, change)
}

func (f *Fake) change(by fault.Origin, collection, id string, change func(o Object)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.now().Get(collection, id)
	if o == nil {
		return false
	}
	change(o)
	f.apply(by, collection, id, o)
	return true
}

// apply is the one place where state comes from.
func (f *Fake) apply(by fault.Origin, collection, id string, after Object) {
	if len(f.effects) >= maxEffects {
		panic("fakes/rest: too many effects")
	}
	p := place{collection, id}
	before := f.now().Get(collection, id)
	if before == nil && after == nil {
		return
	}
	if _, known := f.store.rows[p]; !known {
		f.store.order = append(f.store.order, p)
	}
	now := time.Now()
	f.store.rows[p] = append(f.store.rows[p], fault.State[Object]{At: now, Value: after.Clone()})
	f.effects = append(f.effects, Effect{
		Seq: len(f.effects) + 1, At: now, By: by, Collection: collection, ID: id,
		Before: before, After: after.Clone(),
	})
}

// Number is n in the form in which objects hold it.
func Number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
