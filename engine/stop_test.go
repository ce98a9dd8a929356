package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// switched is a guard with a stop that is set at a time.
type switched struct {
	*gate
	from, until time.Time
}

func (s switched) on() *engine.Hold {
	if now := time.Now(); now.Before(s.from) || now.After(s.until) {
		return nil
	}
	return &engine.Hold{Rule: "stopped", Reason: "ada stopped it", For: time.Second}
}

func (s switched) Enter(ctx context.Context, rec ledger.Record) (func(engine.Sent), *engine.Hold) {
	if hold := s.on(); hold != nil {
		return nil, hold
	}
	return s.gate.Enter(ctx, rec)
}

func (s switched) Stopped(context.Context, ledger.Record) *engine.Hold { return s.on() }

// slowAppend is a ledger with slow announcements of repeats.
type slowAppend struct {
	ledger.Ledger
	took time.Duration
}

func (s slowAppend) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	rec, err := s.Ledger.Append(ctx, id, fence, events...)
	if err == nil && rec.State == ledger.Sending {
		time.Sleep(s.took)
	}
	return rec, err
}

// A stop during the announcement holds that send too, and the write is sent when it is
// released.
func TestStopHoldsWhatIsBeingAnnounced(t *testing.T) {
	for name, c := range map[string]struct {
		announced time.Duration
		repeat    bool
	}{
		"the first send, within what the fence is fresh for": {900 * time.Millisecond, false},
		"the first send, long":                               {4 * time.Second, false},
		"a repeat":                                           {4 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				g := switched{&gate{}, time.Now().Add(100 * time.Millisecond), time.Now().Add(time.Minute)}
				var l ledger.Ledger = &stalling{Ledger: b.ledger, reserve: c.announced}
				if c.repeat {
					b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
					l = slowAppend{b.ledger, c.announced}
				}
				b.engine = b.engineOn(l, b.world.Destination(), guarded(g))
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
				defer cancel()
				out, err := b.engine.Do(ctx, order("A-1", intent.Create))
				if err != nil || out.Status != ledger.InProgress || len(b.world.Records("A-1")) != 0 {
					t.Fatalf("while it is stopped: %+v, %v, %d records%s", out, err, len(b.world.Records("A-1")), b.life(out.ID))
				}
				if out = b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || len(b.world.Records("A-1")) != 1 {
					t.Errorf("released: %+v%s", out, b.life(out.ID))
				}
				if g.inside != 0 || g.twice {
					t.Errorf("%d are inside, left twice: %t", g.inside, g.twice)
				}
			})
		})
	}
}

// A write that was held for days is not given up at the first failure after its release: a day
// is for trying.
func TestWhatWasHeldForDaysIsTried(t *testing.T) {
	for name, c := range map[string]struct {
		class orders.Class
		fault orders.FaultKind
	}{
		"throttled":                {orders.Unique, orders.Throttled},
		"unreachable":              {orders.Unique, orders.Unreachable},
		"pre-state cannot be read": {orders.Plain, orders.UnreadableRead},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				g := switched{&gate{}, time.Now(), time.Now().Add(26 * time.Hour)}
				b.engine = b.engineOn(b.ledger, b.world.Destination(), guarded(g))
				id := b.enqueue(order("A-1", intent.Create))
				b.work(26 * time.Hour)
				b.set(orders.Fault{Kind: c.fault, Times: 1})
				b.work(time.Hour)
				if got := b.state(id); got.Settlement != ledger.Verified {
					t.Errorf("%s: %s", got.Phase(), got.Reason)
				}
			})
		})
	}
}
