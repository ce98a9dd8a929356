package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// The model of a queue: several upserts of one record come through processes that die, to a
// destination that loses, delays and refuses, under guards that hold now and then; some are
// read in batches. In every case the destination's own log must show them in the order in which
// the ledger accepted them, and all of them must be verified at the end.

const queueWrites = 4

type queuePlan struct {
	Class orders.Class
	Batch bool
	Holds []bool // of the next sends
	Moves []move
}

func drawQueuePlan(t *rapid.T) queuePlan {
	harmless := []orders.FaultKind{orders.LostAnswer, orders.DroppedBefore, orders.BadGateway, orders.LateCommit,
		orders.UnreadableRead, orders.Unreachable, orders.Throttled} // its declarations about its reads are true
	draw := rapid.Custom(func(t *rapid.T) move {
		m := drawMove(t)
		m.Kind = rapid.SampledFrom([]string{"submit", "submit", "enqueue", "enqueue", "fault", "pass", "die"}).Draw(t, "kind")
		m.Write, m.Fault = rapid.IntRange(0, queueWrites-1).Draw(t, "wish"), rapid.SampledFrom(harmless).Draw(t, "fault")
		return m
	})
	return queuePlan{
		Class: rapid.SampledFrom([]orders.Class{orders.Unique, orders.Native}).Draw(t, "class"),
		Batch: rapid.Bool().Draw(t, "batch"),
		Holds: rapid.SliceOfN(rapid.Bool(), 0, 12).Draw(t, "holds"),
		Moves: rapid.SliceOfN(draw, 2, 20).Draw(t, "moves"),
	}
}

// moody is a guard that holds some sends.
type moody struct {
	engine.Unguarded

	mu     sync.Mutex
	holds  []bool
	inside int
}

func (g *moody) Enter(context.Context, ledger.Record) (func(engine.Sent), *engine.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.holds) > 0 {
		hold := g.holds[0]
		if g.holds = g.holds[1:]; hold {
			return nil, &engine.Hold{Rule: "rate", Reason: "too many", For: 3 * time.Second}
		}
	}
	g.inside++
	return func(engine.Sent) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside--
	}, nil
}

type queueRun struct {
	*bench
	plan    queuePlan
	guard   *moody
	lives   [modelEngines]*mortal
	engines [modelEngines]*engine.Engine
}

func (l *queueRun) born(n int) {
	d := l.world.Destination()
	l.lives[n] = &mortal{Ledger: l.ledger, Connector: d.Connector, settled: func(ledger.Record) {}}
	d.Connector = l.lives[n]
	o := &engine.Options{Guards: l.guard}
	if l.plan.Batch {
		o.Verify = []policies.Verification{{Mode: policies.Sample, Part: 0.5, Within: time.Hour}}
	}
	l.engines[n] = l.engineOn(l.lives[n], d, o)
}

func (l *queueRun) process(n int) *engine.Engine {
	if l.lives[n].isDead() {
		l.engines[n].Close()
		l.born(n)
	}
	return l.engines[n]
}

func (l *queueRun) step(m move) {
	switch m.Kind {
	case "submit":
		ctx, cancel := context.WithTimeout(context.Background(), m.Pass/10)
		defer cancel()
		_, _ = l.process(m.Engine).Do(ctx, wish("A-1", m.Write, intent.Upsert)) // the destination's log shows the result
	case "enqueue":
		_, _ = l.process(m.Engine).Enqueue(context.Background(), wish("A-1", m.Write, intent.Upsert)) // likewise
	case "fault":
		f := orders.Fault{Kind: m.Fault, Times: m.Times}
		if m.Fault == orders.LateCommit {
			f.Delay = min(m.Pass, 25*time.Second)
		}
		l.set(f)
	case "pass":
		l.pass(m.Pass / 10)
	case "die":
		l.process(m.Engine)
		l.lives[m.Engine].doom(m.Calls, m.How)
	}
}

func (l *queueRun) pass(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for n := range modelEngines {
		e := l.process(n)
		wg.Go(func() { _ = runWorker(ctx, e, &engine.WorkOptions{Idle: 10 * time.Second, Grace: time.Second}) }) // it returns nil
	}
	wg.Wait()
}

// effects prints the destination's log, for failures.
func (l *queueRun) effects() string {
	text := ""
	for _, e := range l.world.Effects() {
		text += fmt.Sprintf("\n  %s %s of %s by %s, stamp %s", e.At.Format("15:04:05.000"), e.Op, e.ID, e.By, e.Stamp)
	}
	return text
}

// verdict compares the destination's log with the order of the queue.
func (l *queueRun) verdict() error {
	taken, err := l.ledger.List(context.Background(), ledger.Filter{Tenant: "acme"})
	if err != nil {
		return err
	}
	slices.Reverse(taken) // oldest first
	place, lost, latest := make(map[string]int), make(map[int]bool), 0
	for i, rec := range taken {
		w, err := intent.DecodeStored(rec.Intent)
		if err != nil {
			return err
		}
		place[w.Stamp()] = i
		switch {
		case rec.Settlement == ledger.Verified:
			latest = i
		case rec.Settlement == ledger.NotApplied && rec.Sends-rec.Unsent >= policies.DefaultBudget: // all were lost
			lost[i] = true
		default:
			return fmt.Errorf("write %d is %s: %s%s%s", i, rec.Phase(), rec.Reason, l.life(rec.ID), l.effects())
		}
	}
	last := 0
	for _, e := range l.world.Effects() {
		if !e.Applied() {
			continue
		}
		switch at := place[e.Stamp]; {
		case lost[at]:
			return fmt.Errorf("write %d has an effect, and is settled as not applied%s", at, l.life(taken[at].ID))
		case at < last:
			return fmt.Errorf("write %d landed after write %d%s%s", at, last, l.life(taken[at].ID), l.life(taken[last].ID))
		default:
			last = at
		}
	}
	if last != latest {
		return fmt.Errorf("write %d was the last to land, and %d is the last that was verified", last, latest)
	}
	if l.guard.inside != 0 {
		return fmt.Errorf("%d sends are inside the guard for ever", l.guard.inside)
	}
	return nil
}

func TestModelOfALine(t *testing.T) {
	histories(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := drawQueuePlan(rt)
		var problem error
		synctest.Test(t, func(t *testing.T) {
			o := p.Class.Options()
			o.StampUpdates = true
			o.Recheck = connectors.Bound{}
			l := &queueRun{bench: newBench(t, o, nil), plan: p, guard: &moody{holds: p.Holds}}
			for n := range modelEngines {
				l.born(n)
			}
			for _, m := range p.Moves {
				l.step(m)
			}
			l.world.Clear()
			for range 4 { // a process that dies in one of them is restarted in the next
				l.pass(2 * time.Hour)
			}
			for _, e := range l.engines {
				e.Close()
			}
			problem = l.verdict()
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}
