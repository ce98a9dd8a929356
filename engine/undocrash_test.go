package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// undoCase is one lifecycle of an undo: its process dies at a call.
type undoCase struct {
	write intent.WriteType
	fault orders.FaultKind
	how   string
	calls int
}

// Whatever call of its process is the last, and whatever becomes of its request, another
// process continues a begun undo, and it has one effect.
func TestUndoSurvivesEveryCrash(t *testing.T) {
	kinds := []orders.FaultKind{"", orders.LostAnswer, orders.DroppedBefore, orders.LateCommit, orders.PhantomSuccess,
		orders.BadGateway, orders.UnreadableRead, orders.Refused}
	n := 0
	for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
		for _, kind := range kinds {
			for _, how := range []string{"before", "after", "landing"} {
				if n++; n%need.OneIn(5) != 0 {
					continue
				}
				for calls := range 13 {
					c := undoCase{write, kind, how, calls}
					synctest.Test(t, func(t *testing.T) { c.run(t) })
				}
			}
		}
	}
}

func (c undoCase) run(t *testing.T) {
	b := newBench(t, orders.Plain.Options(), nil)
	if c.write != intent.Create {
		b.seed(seeded, "")
	}
	time.Sleep(time.Hour)
	was := b.fieldsNow()
	done := b.do(compensable(order("A-1", c.write)))
	time.Sleep(time.Hour)
	made := len(b.effects())
	if c.fault != "" {
		b.set(orders.Fault{Kind: c.fault, Times: 1})
	}
	d := b.world.Destination()
	m := &mortal{Ledger: b.ledger, Connector: d.Connector, settled: func(ledger.Record) {}}
	d.Connector = m
	m.doom(c.calls, c.how)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := b.engineOn(m, d, nil).Undo(ctx, "acme", done.ID, unwanted)
	if !m.isDead() && err != nil {
		t.Errorf("%+v: %+v, %v", c, out, err)
	}
	b.worked(2 * time.Hour)
	out = b.undo(done.ID, unwanted)
	now, effects := b.fieldsNow(), len(b.effects())-made
	switch diff := cmp.Diff(was, now); {
	case out.Status == ledger.StatusReview && c.fault == orders.Refused && effects == 0:
	case out.Status != ledger.Compensated || diff != "" || effects != 1:
		t.Errorf("%+v: %s with %d effects: %s%s%s", c, out.Status, effects, diff, b.life(done.ID), b.life(out.Undoing))
	}
}

// worked runs a worker that polls rarely.
func (b *bench) worked(d time.Duration) {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	if err := runWorker(ctx, b.engine, &engine.WorkOptions{Idle: 2 * time.Minute}); err != nil {
		b.t.Error(err)
	}
}

// effects returns the changes that requests made at the destination.
func (b *bench) effects() []orders.Effect {
	var all []orders.Effect
	for _, e := range b.world.Effects() {
		if e.Applied() && e.By == orders.ByRequest {
			all = append(all, e)
		}
	}
	return all
}
