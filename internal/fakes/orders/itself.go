package orders

import (
	"maps"
	"time"
)

// afterwards makes the changes that the destination makes by itself.
func (w *World) afterwards(e Effect, met hits) {
	if f, ok := met.get(DuplicateByOthers); ok && e.After != nil {
		w.later(delay(f), func() { w.duplicate(e, f) })
	}
	if f, ok := met.get(Rollback); ok {
		w.later(delay(f), func() { w.rollback(e) })
	}
}

// later runs f with the lock held: now if there is no delay.
func (w *World) later(delay time.Duration, f func()) {
	if delay <= 0 {
		f()
		return
	}
	time.AfterFunc(delay, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
	})
}

func (w *World) duplicate(e Effect, f Fault) {
	second := *e.After
	second.ID, second.Version, second.Fields = w.newID(), 1, maps.Clone(e.After.Fields)
	if f.How == "nostamp" {
		second.Stamp = ""
	}
	// A failing log has made the world refuse everything.
	_ = w.apply(Effect{By: ByItself, Op: OpCreate, ID: second.ID, OrderID: e.OrderID, Request: e.Request, After: &second})
}

func (w *World) rollback(e Effect) {
	now := w.rows[e.ID].now()
	back := Effect{By: ByItself, Op: OpUpdate, ID: e.ID, OrderID: e.OrderID, Request: e.Request, Before: now}
	switch {
	case e.Before == nil:
		back.Op = OpDelete
		if now == nil {
			return // gone already
		}
	default:
		o := *e.Before
		o.Fields = maps.Clone(e.Before.Fields)
		o.Version = e.Before.Version + 2 // never one that was seen
		if now != nil {
			o.Version = max(o.Version, now.Version+1)
		}
		back.After = &o
		if now == nil {
			back.Op = OpCreate
		}
	}
	_ = w.apply(back) // as in duplicate
}
