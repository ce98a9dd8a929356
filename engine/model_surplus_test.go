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

	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// after is one step of what happens to a write that is doubled.
type after struct {
	Kind  string
	Calls int // until a process dies
	How   string
	Pass  time.Duration
	Word  engine.Word
	Vice  simulated.Vice
}

func drawAfter(t *rapid.T) after {
	return after{
		Kind: rapid.SampledFrom([]string{"die", "die", "die", "pass", "pass", "vice", "vice", "edit kept", "edit surplus",
			"remove kept", "remove surplus", "clone", "other", "decide", "approve"}).Draw(t, "kind"),
		Calls: rapid.IntRange(0, 25).Draw(t, "calls"),
		How:   rapid.SampledFrom([]string{"before", "after", "landing"}).Draw(t, "how"),
		Pass:  time.Duration(rapid.IntRange(1, 900).Draw(t, "seconds")) * time.Second,
		Word: rapid.SampledFrom([]engine.Word{engine.WordAccept, engine.WordRetry, engine.WordAbandon,
			engine.WordCompensate}).Draw(t, "word"),
		Vice: rapid.SampledFrom([]simulated.Vice{simulated.LostAnswer, simulated.DroppedBefore, simulated.BadGateway, simulated.LateCommit,
			simulated.PhantomSuccess, simulated.UnreadableRead, simulated.Throttled, simulated.Refused}).Draw(t, "vice"),
	}
}

// Whatever happens meanwhile: the record that was verified is never removed, nor
// more than one, and a write whose effect stays is never called undone. Run more
// of it with -run ModelOfRemovals -rapid.checks=10000.
func TestModelOfRemovals(t *testing.T) {
	histories(t)
	removed := 0
	rapid.Check(t, func(rt *rapid.T) {
		class := rapid.SampledFrom([]simulated.Class{simulated.Plain, simulated.Lagging}).Draw(rt, "class")
		gate := rapid.IntRange(0, 3).Draw(rt, "gate") == 0
		steps := rapid.SliceOfN(rapid.Custom(drawAfter), 1, 10).Draw(rt, "steps")
		var problem error
		synctest.Test(t, func(t *testing.T) {
			h := &doubling{bench: newBench(t, class.Options(), nil), gate: gate}
			h.out, h.kept = h.doubled()
			h.born()
			h.prompt = class == simulated.Plain
			for _, s := range steps {
				h.prompt = h.prompt && (s.Kind != "die" || s.How != "landing") && (s.Kind != "vice" || s.Vice != simulated.LateCommit)
				h.step(s)
			}
			h.world.Clear()
			h.engine.Close()
			h.born() // one that lives to the end
			h.pass(2*time.Hour, 10*time.Second)
			h.pass(40*time.Hour, 10*time.Minute)
			problem = h.judge()
			removed += len(h.removals())
			h.engine.Close()
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
	if removed == 0 {
		t.Error("nothing was ever removed: the histories show nothing")
	}
	t.Logf("%d surplus records were removed", removed)
}

// doubling is one history of a doubled write.
type doubling struct {
	*bench
	out   engine.Outcome
	kept  string
	gate  bool
	life1 *mortal
	// prompt says that no request was late and no read behind.
	prompt bool
	undo   bool // a person asked for the whole write to be undone
}

// born gives the process a new life.
func (h *doubling) born() {
	o := removing()
	if h.gate {
		o.Risks = gated.Risks
	}
	d := h.world.Destination()
	h.life1 = &mortal{Ledger: h.ledger, Connector: d.Connector, settled: func(ledger.Record) {}}
	d.Connector = doomed{h.life1}
	h.engine = h.engineOn(h.life1, d, o)
}

// process is one that lives.
func (h *doubling) process() {
	if h.life1.isDead() {
		h.engine.Close()
		h.born()
	}
}

func (h *doubling) pass(d, idle time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.engine.Work(ctx, &engine.WorkOptions{Idle: idle}) }) // it may die
	wg.Wait()
	synctest.Wait()
}

func (h *doubling) step(s after) {
	h.process()
	switch s.Kind {
	case "die":
		h.life1.doom(s.Calls, s.How)
		h.pass(s.Pass, 10*time.Second)
	case "pass":
		h.pass(s.Pass, 10*time.Second)
	case "vice":
		h.set(simulated.Fault{Vice: s.Vice, Times: 1, Delay: 15 * time.Second})
	case "edit kept", "edit surplus", "remove kept", "remove surplus":
		h.meddle(s.Kind)
	case "clone":
		h.seed(asStored("A-1"), h.stampOf(h.out))
	case "other":
		_, _ = h.engine.Enqueue(context.Background(), call(order("A-1", intent.Update), 1)) // or it is there already
	case "decide":
		h.undo = h.undo || s.Word == engine.WordCompensate
		h.resolve(h.out.ID, s.Word)
	case "approve":
		if child, there := h.child(h.out.ID); there {
			h.resolve(child.ID, engine.WordApprove)
		}
	}
}

func (h *doubling) resolve(id ledger.ID, word engine.Word) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = h.engine.Resolve(ctx, "acme", id, engine.Decision{Word: word, By: "ada", Reason: "she says so"}) // or it does not wait for it
}

// meddle is what somebody else does to a record.
func (h *doubling) meddle(what string) {
	for _, r := range h.world.Records("A-1") {
		switch {
		case what == "edit kept" && r.ID == h.kept, what == "edit surplus" && r.ID != h.kept:
			_, _ = h.world.Edit(r.ID, intent.Fields{"note": "theirs"})
		case what == "remove kept" && r.ID == h.kept, what == "remove surplus" && r.ID != h.kept:
			_ = h.world.Remove(r.ID)
		}
	}
}

// last reports whether the record that was verified was gone when the other one
// was removed, or whether somebody had worked on that one.
func (h *doubling) last(gone []string) bool {
	for _, e := range h.world.Effects() {
		switch {
		case e.ID == h.kept && e.After == nil && e.Op == simulated.OpDelete:
			return len(gone) > 0 && !slices.Contains(gone, h.kept)
		case slices.Contains(gone, e.ID) && e.ID != h.kept && e.Op == simulated.OpUpdate:
			return true
		case slices.Contains(gone, e.ID) && e.Op == simulated.OpDelete:
			return false
		}
	}
	return false
}

// stays reports whether the record that was verified is there.
func (h *doubling) stays() bool {
	return slices.ContainsFunc(h.world.Records("A-1"), func(o simulated.Order) bool { return o.ID == h.kept })
}

// judge asks the destination's own log what came of it.
func (h *doubling) judge() error {
	rec, gone := h.state(h.out.ID), h.removals()
	fail := func(format string, args ...any) error {
		child, _ := h.child(h.out.ID)
		return fmt.Errorf(format+"%s\n%s", append(args, h.life(rec.ID), h.life(child.ID))...)
	}
	switch {
	case len(gone) > 1:
		return fail("removed %v", gone)
	case slices.Contains(gone, h.kept) && !h.undo:
		return fail("removed %v, which was verified", gone)
	case rec.Settlement == ledger.Compensated && (!h.undo || h.stays()):
		return fail("called undone, with %v removed", gone)
	case rec.State != ledger.Settled && rec.State != ledger.Review:
		return fail("%s for ever", rec.Phase())
	case h.prompt && !h.undo && h.last(gone):
		return fail("removed %v, when what was verified was gone, or after somebody worked on it", gone)
	}
	return nil
}
