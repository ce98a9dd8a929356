package simulated

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// armed is a fault and how often it was met.
type armed struct {
	Fault
	passed, hit int
}

// hits are the faults that one request meets.
type hits []Fault

func (h hits) get(v Vice) (Fault, bool) {
	i := slices.IndexFunc(h, func(f Fault) bool { return f.Vice == v })
	if i < 0 {
		return Fault{}, false
	}
	return h[i], true
}

func (h hits) has(v Vice) bool {
	_, ok := h.get(v)
	return ok
}

func (h hits) vices() []Vice {
	var vs []Vice
	for _, f := range h {
		vs = append(vs, f.Vice)
	}
	return vs
}

// Set switches a vice on for the requests that come from now on. Errors wrap
// [ErrFault].
func (w *World) Set(f Fault) error {
	if err := f.check(w.options); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = slices.DeleteFunc(w.faults, func(a *armed) bool { return a.Times > 0 && a.hit >= a.Times })
	if len(w.faults) >= maxFaults {
		return fmt.Errorf("%w: %d are on already", ErrFault, maxFaults)
	}
	w.faults = append(w.faults, &armed{Fault: f})
	return nil
}

// Clear switches all vices off. What is under way (late commits, duplicates,
// rollbacks) still comes.
func (w *World) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = nil
}

// arrive counts a request and says what it meets.
func (w *World) arrive(c Call) (int64, hits) {
	w.request++
	c.Request, c.At = w.request, time.Now()
	if c.Op == OpRead {
		w.reads++
	} else {
		w.writes++
	}
	met := w.pick(c.Op, c.OrderID, func(v Vice) bool { return v != Unreachable })
	c.Vices = met.vices()
	if len(w.calls) >= maxCalls {
		w.calls = slices.Delete(w.calls, 0, maxCalls/2)
	}
	w.calls = append(w.calls, c)
	return c.Request, met
}

// dial reports whether a connection can be had for a request. It is asked by
// the in-process transport alone; what it refuses never arrives.
func (w *World) dial(op Op) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pick(op, "", func(v Vice) bool { return v == Unreachable })) == 0
}

func (w *World) pick(op Op, orderID string, wanted func(Vice) bool) hits {
	subject := string(op) + " " + orderID
	if slices.ContainsFunc(w.faults, func(a *armed) bool { return a.Chance > 0 }) {
		w.nth[subject]++
	}
	var met hits
	for _, a := range w.faults {
		if !wanted(a.Vice) || !a.on(op) ||
			(a.OrderID != "" && a.OrderID != orderID) ||
			(a.Times > 0 && a.hit >= a.Times) {
			continue
		}
		if a.passed < a.Skip {
			a.passed++
			continue
		}
		if a.Chance > 0 && w.roll(a.Vice, subject) >= a.Chance {
			continue
		}
		a.hit++
		met = append(met, a.Fault)
	}
	return met
}

// roll is a number in [0, 1) that follows from the seed, the vice, the subject
// and how often the subject came, and from nothing else: requests about other
// orders do not shift it.
func (w *World) roll(v Vice, subject string) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s %d", v, subject, w.nth[subject])
	return rand.New(rand.NewPCG(w.options.Seed, h.Sum64())).Float64()
}
