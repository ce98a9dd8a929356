package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Order is one record of the store.
type Order struct {
	ID     string
	Fields map[string]any
	Stamp  string
}

func (o Order) clone() Order {
	o.Fields = maps.Clone(o.Fields)
	return o
}

// doc is the order as tools show it.
func (o Order) doc() map[string]any {
	m := maps.Clone(o.Fields)
	m["id"] = o.ID
	if o.Stamp != "" {
		m["external_id"] = o.Stamp
	}
	return m
}

// World is the store behind the server. It is safe for concurrent use.
type World struct {
	*fault.Schedule

	mu      sync.Mutex
	orders  []Order
	was     []Order // before the last change
	next    int
	effects map[string]int
	calls   map[string]int
}

// NewWorld makes an empty store.
func NewWorld() *World {
	return &World{Schedule: fault.NewSchedule(Forms, 0), effects: map[string]int{}, calls: map[string]int{}}
}

// Orders lists the orders under a key now, in the order of their making; "" for
// all.
func (w *World) Orders(key string) []Order {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Order
	for _, o := range w.orders {
		if key == "" || o.Fields["order_id"] == key {
			all = append(all, o.clone())
		}
	}
	return all
}

// Effects is how many changes calls have made under a key.
func (w *World) Effects(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[key]
}

// Calls is how many calls of the named tools have arrived, those that did
// nothing included; of all tools where none is named.
func (w *World) Calls(tools ...string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for name, count := range w.calls {
		if len(tools) == 0 || slices.Contains(tools, name) {
			n += count
		}
	}
	return n
}

func (w *World) called(tool string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[tool]++
}

// Put creates an order as another actor would.
func (w *World) Put(fields map[string]any, stamp string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.save()
	w.add(fields, stamp)
}

// Alter changes fields of every order under a key, as another actor would, and reports how many
// there were.
func (w *World) Alter(key string, fields map[string]any) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.save()
	n := 0
	for i, o := range w.orders {
		if o.Fields["order_id"] == key {
			maps.Copy(w.orders[i].Fields, fields)
			n++
		}
	}
	return n
}

// save keeps the state for reads that lag.
func (w *World) save() {
	w.was = nil
	for _, o := range w.orders {
		w.was = append(w.was, o.clone())
	}
}

func (w *World) add(fields map[string]any, stamp string) Order {
	w.next++
	o := Order{ID: fmt.Sprintf("o-%d", w.next), Fields: maps.Clone(fields), Stamp: stamp}
	w.orders = append(w.orders, o)
	return o
}

func (w *World) remove(match func(Order) bool) {
	w.orders = slices.DeleteFunc(w.orders, match)
}

// change is what a call requests.
type change struct {
	tool   string
	id     string
	fields map[string]any
	stamp  string
}

// apply makes a change and returns the order, or an error that says why there is none. A fault
// alters what is stored.
func (w *World) apply(c change, f fault.Fault) (Order, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fields := altered(c.fields, f)
	i := slices.IndexFunc(w.orders, func(o Order) bool {
		return c.id != "" && o.ID == c.id || c.tool == Put && o.Fields["order_id"] == fields["order_id"]
	})
	if i < 0 && (c.tool == Update || c.tool == Delete) {
		return Order{}, fmt.Errorf("no order %s", c.id)
	}
	w.save()
	switch {
	case c.tool == Delete:
		gone := w.orders[i]
		w.remove(func(o Order) bool { return o.ID == gone.ID })
		w.effects[fmt.Sprint(gone.Fields["order_id"])]++
		return gone, nil
	case i >= 0:
		maps.Copy(w.orders[i].Fields, fields)
		w.effects[fmt.Sprint(w.orders[i].Fields["order_id"])]++
		return w.orders[i].clone(), nil
	}
	o := w.add(fields, c.stamp)
	w.effects[fmt.Sprint(fields["order_id"])]++
	return o, nil
}

// altered is what is stored instead of the request.
func altered(fields map[string]any, f fault.Fault) map[string]any {
	fields = maps.Clone(fields)
	switch {
	case f.Kind == fault.DroppedField:
		delete(fields, "note")
	case f.Kind == fault.NormalisedField && f.How == "number":
		if n, ok := fields["amount_cents"].(json.Number); ok {
			fields["amount_cents"] = string(n)
		}
	case f.Kind == fault.NormalisedField:
		if s, ok := fields["note"].(string); ok {
			fields["note"] = "*" + s
		}
	}
	return fields
}

// later lets something happen after a while.
func (w *World) later(after time.Duration, do func()) {
	time.AfterFunc(after, do)
}

// find lists the orders of which a field is so; lagging shows the state before
// the last change.
func (w *World) find(name string, value any, lagging bool) []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.orders
	if lagging {
		from = w.was
	}
	all := []any{}
	for _, o := range from {
		if doc := o.doc(); reflect.DeepEqual(doc[name], value) {
			all = append(all, doc)
		}
	}
	return all
}
