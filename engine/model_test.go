package engine_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// The model knows, for each logical write, the first request and the last returned outcome.
// Everything else it reads from the destination's own account, never from the ledger. Histories
// are drawn whole, then run in a bubble of fake time: submissions through two processes, alone
// and in crowds, with the same and with another digest; faults; time that passes; processes
// that die at any of their calls; reviewers' decisions; undos of settled writes; and other
// actors' changes of the records.
//
// More histories: go test ./engine -run Model -rapid.checks=10000. A failure prints the seed
// and the shortest history that it found.

const modelWrites, modelEngines = 3, 2

// plan is the setup of a history.
type plan struct {
	Class    orders.Class
	Versions bool
	Stamps   bool // updates have stamps too
	Horizon  bool // declared
	Settle   bool // declared
	Recheck  bool // declared
	Batch    bool // half of the reads are postponed
	Holds    []bool
	Writes   []task
	Moves    []move
}

// task is one logical write.
type task struct {
	Write      intent.WriteType
	There      bool // another actor's record is there before it
	Risk       intent.Risk
	OnMismatch intent.MismatchPolicy
	Undoable   bool
}

// move is one step of a history.
type move struct {
	Kind   string
	Write  int // which logical write
	Engine int // which process
	Fault  orders.FaultKind
	Times  int
	Pass   time.Duration
	Word   engine.Word
	Force  bool
	Calls  int // until a process dies
	How    string
}

// lossy are faults after which the truth can be found out in the end; the others may need a
// reviewer.
var (
	lossy = []orders.FaultKind{
		orders.LostAnswer, orders.DroppedBefore, orders.BadGateway, orders.LateCommit,
		orders.UnreadableRead, orders.LaggingRead, orders.Unreachable, orders.Throttled, orders.Refused,
	}
	crooked = []orders.FaultKind{
		orders.DroppedField, orders.NormalisedField, orders.DuplicateByOthers, orders.Rollback,
		orders.PhantomSuccess,
	}
)

func drawMove(t *rapid.T) move {
	kinds := append(append([]orders.FaultKind{}, lossy...), lossy...)
	return move{
		Kind: rapid.SampledFrom([]string{"submit", "submit", "submit", "crowd", "other", "fault", "fault", "pass", "pass",
			"die", "die", "decide", "foreign", "undo", "undo"}).Draw(t, "kind"),
		Write:  rapid.IntRange(0, modelWrites-1).Draw(t, "write"),
		Engine: rapid.IntRange(0, modelEngines-1).Draw(t, "engine"),
		Fault:  rapid.SampledFrom(append(kinds, crooked...)).Draw(t, "fault"),
		Times:  rapid.IntRange(1, 3).Draw(t, "times"),
		Pass:   time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second,
		Word: rapid.SampledFrom([]engine.Word{engine.WordAccept, engine.WordRetry, engine.WordAbandon,
			engine.WordCompensate, engine.WordApprove, engine.WordDeny}).Draw(t, "word"),
		Force: rapid.IntRange(0, 9).Draw(t, "force") == 0,
		Calls: rapid.IntRange(0, 7).Draw(t, "calls"),
		How:   rapid.SampledFrom([]string{"before", "after", "landing"}).Draw(t, "how"),
	}
}

func drawTask(t *rapid.T) task {
	write := rapid.SampledFrom([]intent.WriteType{intent.Create, intent.Create, intent.Update, intent.Upsert, intent.Delete}).Draw(t, "type")
	w := task{
		Write: write,
		There: write == intent.Update || write == intent.Delete || write == intent.Upsert && rapid.Bool().Draw(t, "there"),
		Risk:  rapid.SampledFrom([]intent.Risk{"", "", "", intent.RiskApprove}).Draw(t, "risk"),
	}
	if write != intent.Delete {
		w.OnMismatch = rapid.SampledFrom([]intent.MismatchPolicy{"", intent.MismatchRetry, intent.MismatchCompensate}).Draw(t, "mismatch")
	}
	w.Undoable = rapid.Bool().Draw(t, "undoable")
	return w
}

func drawPlan(t *rapid.T) plan {
	mostly := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) > 0 }
	p := plan{
		Class:    rapid.SampledFrom(orders.Classes()).Draw(t, "class"),
		Versions: rapid.Bool().Draw(t, "versions"), Stamps: rapid.Bool().Draw(t, "stamps"),
		Horizon: mostly("horizon"), Settle: mostly("settle"), Recheck: rapid.Bool().Draw(t, "recheck"),
		Batch: rapid.IntRange(0, 3).Draw(t, "batch") == 0, Holds: rapid.SliceOfN(rapid.Bool(), 0, 8).Draw(t, "holds"),
		Writes: rapid.SliceOfN(rapid.Custom(drawTask), modelWrites, modelWrites).Draw(t, "writes"),
		Moves:  rapid.SliceOfN(rapid.Custom(drawMove), 1, 20).Draw(t, "moves"),
	}
	if rapid.Bool().Draw(t, "tame") {
		p.tame()
	}
	return p
}

// tame keeps only what can be decided without a reviewer.
func (p *plan) tame() {
	p.Horizon, p.Settle = true, true
	for n := range p.Writes {
		p.Writes[n].Risk = ""
	}
	for n, m := range p.Moves {
		if m.Kind == "foreign" || m.Kind == "decide" || m.Kind == "undo" {
			p.Moves[n].Kind = "pass"
		}
		if i := slices.Index(crooked, m.Fault); i >= 0 {
			p.Moves[n].Fault = lossy[i]
		}
	}
}

// options returns the destination. It is honest: what it declares is true.
func (p plan) options() orders.Options {
	o := p.Class.Options()
	o.Versions, o.StampUpdates = p.Versions, p.Stamps
	o.Settle, o.Horizon = connectors.Bound{}, connectors.Bound{}
	if p.Settle {
		o.Settle = connectors.Within(orders.DefaultLag)
	}
	if p.Horizon {
		o.Horizon = connectors.Within(orders.DefaultHorizon)
	}
	if p.Recheck {
		o.Recheck = connectors.Within(2 * time.Hour)
	}
	return o
}

// fault returns the move's fault as an honest destination may have it.
func (p plan) fault(m move) (orders.Fault, bool) {
	f := orders.Fault{Kind: m.Fault, Times: m.Times}
	switch m.Fault {
	case orders.LateCommit:
		f.Delay = min(m.Pass, 25*time.Second)
		if !p.Horizon {
			f.Delay = m.Pass
		}
	case orders.DuplicateByOthers:
		f.Delay = m.Pass
		return f, p.Class != orders.Unique
	case orders.Rollback:
		f.Delay = m.Pass
	case orders.NormalisedField:
		f.How = "lower"
	}
	return f, true
}

// decidable reports whether nothing in the plan needs a reviewer: then no write may end in
// review.
func (p plan) decidable() bool {
	if !p.Horizon || !p.Settle {
		return false
	}
	for _, w := range p.Writes {
		if w.Risk != "" {
			return false
		}
	}
	for _, m := range p.Moves {
		if m.Kind == "foreign" || m.Kind == "decide" || m.Kind == "undo" || m.Kind == "fault" && slices.Contains(crooked, m.Fault) {
			return false
		}
	}
	return true
}

func (p plan) intent(n int) intent.WriteIntent {
	w := order(fmt.Sprint("M-", n), p.Writes[n].Write)
	w.Risk, w.OnMismatch = p.Writes[n].Risk, p.Writes[n].OnMismatch
	if w.OnMismatch == intent.MismatchCompensate || p.Writes[n].Undoable {
		w.Reversibility = intent.Compensable
	}
	return w
}

// histories sets how many are run where no flag sets it; with -short rapid runs a fifth of
// them.
func histories(t *testing.T) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if asked {
		return
	}
	if err := flag.Set("rapid.checks", "400"); err != nil {
		t.Fatal(err)
	}
}

func TestModel(t *testing.T) {
	histories(t)
	decidable := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		if p.decidable() {
			decidable++
		}
		var problem error
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, p)
			for _, m := range p.Moves {
				h.step(m)
				h.check()
			}
			h.end()
			problem = h.problem
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
	t.Logf("%d histories could be decided without a reviewer, and were", decidable)
}
