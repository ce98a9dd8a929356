package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// repeats counts calls that got the outcome of an earlier one.
type repeats struct {
	mu sync.Mutex
	of map[ledger.ID]int
}

func (r *repeats) observe(a engine.Activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Kind == engine.ActivityRepeated {
		r.of[a.Record.ID]++
	}
}

func TestRepeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &repeats{of: map[ledger.ID]int{}}
		b := newBench(t, orders.Plain.Options(), &engine.Options{Observer: m.observe})
		w := order("A-1", intent.Create)
		id := b.do(w).ID
		if len(m.of) != 0 {
			t.Errorf("the first call was counted: %v", m.of)
		}
		b.do(w)
		b.enqueue(w)
		if _, err := b.engine.Wait(t.Context(), "acme", id, true); err != nil { // waiting for the outcome is no call for the write
			t.Fatal(err)
		}
		other := w
		other.Expect = intent.Fields{"amount_cents": jsonNumber(1)}
		if _, err := b.engine.Do(t.Context(), other); err == nil {
			t.Fatal("another digest was taken")
		}
		queued := b.enqueue(order("A-2", intent.Create))
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { b.do(order("A-3", intent.Create)) })
		}
		wg.Wait()
		third := b.do(order("A-3", intent.Create)).ID
		if m.of[id] != 2 || m.of[queued] != 0 || m.of[third] != 5 {
			t.Errorf("%v, want 2 of %s and 5 of %s", m.of, id, third)
		}
	})
}
