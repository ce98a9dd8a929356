package orders

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// World is the destination's state and its account of what happened. It is
// safe for concurrent use and takes its time from package time, so it lives in
// a synctest bubble as well as outside.
type World struct {
	options Options

	mu      sync.Mutex
	rows    map[string]*row     // by id, those that are gone included
	byKey   map[string][]*row   // every row that ever had the order_id
	byStamp map[string][]*row   // every row that ever had the stamp
	effects []Effect            // the oracle
	keys    map[string]*usedKey // by idempotency key
	faults  *fault.Schedule
	calls   []Call
	writes  int
	reads   int
	request int64
	lastID  int64
	broken  error // the log failed: nothing can be promised any more
}

// row is one record through time.
type row struct {
	id       string
	number   int64
	versions fault.History[*Order]
}

func (r *row) now() *Order { return r.versions[len(r.versions)-1].Value }

// Call is one request that reached the destination.
type Call struct {
	Request        int64 // numbered from 1, reads included
	At             time.Time
	Op             Op
	OrderID        string // "" where the request names none
	Stamp          string
	IdempotencyKey string      // as sent, even where it is ignored
	Faults         []FaultKind // the faults that met it
}

// New makes a world. With a log it begins where the log ends. Errors are about
// faults that cannot be.
func New(o Options) (*World, error) {
	w := &World{
		options: o,
		rows:    map[string]*row{},
		byKey:   map[string][]*row{},
		byStamp: map[string][]*row{},
		keys:    map[string]*usedKey{},
		faults:  fault.NewSchedule(nil, o.Seed),
	}
	if o.Log != nil {
		for _, e := range o.Log.effects {
			w.install(e)
		}
	}
	for _, f := range o.Faults {
		if err := w.Set(f); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Options returns what the world was made with.
func (w *World) Options() Options { return w.options }

// Effects returns all effects so far, in their order. Do not change what they
// point to.
func (w *World) Effects() []Effect {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.effects)
}

// Records returns what is there under an order_id now, oldest first, whatever
// reads would show. Do not change the fields.
func (w *World) Records(orderID string) []Order {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.under(orderID, (*row).now)
}

// Changes returns how often requests changed an order.
func (w *World) Changes(orderID string) int {
	n := 0
	for _, e := range w.Effects() {
		if e.OrderID == orderID && e.By == ByRequest && e.Applied() {
			n++
		}
	}
	return n
}

// Calls returns the requests that reached the world, the last 100 000 of them.
func (w *World) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// Count returns how many writes and reads reached the world, refused ones
// included. A client that was silently sending twice shows here.
func (w *World) Count() (writes, reads int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.reads
}

// Summary is [Summarize] of the effects so far.
func (w *World) Summary(expected ...string) Summary {
	return Summarize(w.Effects(), expected...)
}

// Seed creates an order of another actor. stamp may be "". fields need an order_id.
func (w *World) Seed(fields intent.Fields, stamp string) (Order, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.perform(write{op: OpCreate, by: ByOther, fields: fields, stamp: stamp}, nil)
	return a.order(), a.problem()
}

// Edit changes fields of the record with an id, as another actor would. A nil value is stored as
// null.
func (w *World) Edit(id string, fields intent.Fields) (Order, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.perform(write{op: OpUpdate, by: ByOther, id: id, fields: fields}, nil)
	return a.order(), a.problem()
}

// Change changes a record as another actor would, its order_id and its stamp
// included: a record can be given another key, and lose its marker.
func (w *World) Change(id string, change func(*Order)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rows[id]
	if r == nil || r.now() == nil {
		return fmt.Errorf("there is no order %s", id)
	}
	before, after := r.now(), *r.now()
	after.Fields = maps.Clone(before.Fields)
	after.Version++
	change(&after)
	after.Fields[fieldUpdated] = time.Now().UTC().Format(time.RFC3339Nano)
	orderID, _ := after.Fields[fieldOrderID].(string)
	if other := w.under(orderID, (*row).now); w.options.Unique && len(other) > 0 && other[0].ID != id {
		return fmt.Errorf("409 exists: there is an order %s", orderID)
	}
	return w.apply(Effect{By: ByOther, Op: OpUpdate, ID: id, OrderID: orderID, Before: before, After: &after})
}

// Remove deletes the record with an id, as another actor would.
func (w *World) Remove(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.perform(write{op: OpDelete, by: ByOther, id: id}, nil).problem()
}

// apply makes an effect true: first in the log, then here. It fills seq and
// time.
func (w *World) apply(e Effect) error {
	if w.broken != nil {
		return w.broken
	}
	if len(w.effects) >= MaxEffects {
		return errors.New("the destination is full")
	}
	e.Seq, e.At = int64(len(w.effects))+1, time.Now()
	if w.options.Log != nil {
		if w.broken = w.options.Log.append(e); w.broken != nil {
			return w.broken
		}
	}
	w.install(e)
	return nil
}

// install is the one place where state comes from, live and from the log.
func (w *World) install(e Effect) {
	w.effects = append(w.effects, e)
	w.request = max(w.request, e.Request)
	w.lastID = max(w.lastID, number(e.ID))
	if e.IdempotencyKey != "" && e.By == ByRequest {
		w.keys[e.IdempotencyKey] = &usedKey{at: e.At, fingerprint: e.Fingerprint, answer: answerOf(e)}
	}
	if !e.Applied() {
		return
	}
	r := w.rows[e.ID]
	if r == nil {
		r = &row{id: e.ID, number: number(e.ID)}
		w.rows[e.ID] = r
	}
	if !slices.Contains(w.byKey[e.OrderID], r) {
		w.byKey[e.OrderID] = append(w.byKey[e.OrderID], r)
	}
	r.versions = append(r.versions, fault.State[*Order]{At: e.At, Value: e.After})
	if s := e.After; s != nil && s.Stamp != "" && !slices.Contains(w.byStamp[s.Stamp], r) {
		w.byStamp[s.Stamp] = append(w.byStamp[s.Stamp], r)
	}
}

// find returns the orders with exactly this id or exactly this stamp, as at
// shows them.
func (w *World) find(orderID, stamp string, at func(*row) *Order) []Order {
	var found []Order
	if orderID != "" {
		found = w.under(orderID, at)
	}
	if stamp == "" {
		return found
	}
	for _, o := range orders(w.byStamp[stamp], at) {
		if o.Stamp == stamp && o.Fields[fieldOrderID] != orderID {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b Order) int { return cmp.Compare(number(a.ID), number(b.ID)) })
	return found
}

// under returns the orders that have an order_id, as at shows them.
func (w *World) under(orderID string, at func(*row) *Order) []Order {
	return slices.DeleteFunc(orders(w.byKey[orderID], at), func(o Order) bool { return o.Fields[fieldOrderID] != orderID })
}

func orders(rows []*row, at func(*row) *Order) []Order {
	var found []Order
	for _, r := range rows {
		if o := at(r); o != nil {
			c := *o
			c.Fields = maps.Clone(o.Fields)
			found = append(found, c)
		}
	}
	return found
}

// newID never gives an id twice, not even after a phantom or a restart.
func (w *World) newID() string {
	w.lastID++
	return idOf(w.lastID)
}

func idOf(n int64) string { return fmt.Sprintf("ord_%06d", n) }

func number(id string) int64 {
	var n int64
	_, _ = fmt.Sscanf(id, "ord_%d", &n) // ids are made by newID alone
	return n
}
