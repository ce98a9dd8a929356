package simulation

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

var (
	oneSeed = flag.Uint64("simulation.seed", 1, "the seed that TestSeed runs")
	seeds   = flag.Int("simulation.seeds", 1200, "how many seeds TestSimulation runs")
	from    = flag.Uint64("simulation.from", 1, "the first of them")
)

// TestSeed runs one seed and prints its trace.
func TestSeed(t *testing.T) {
	r := simulate(t, newPlan(*oneSeed))
	t.Log(r.trace())
	for _, p := range r.problems {
		t.Error(p)
	}
}

// rightly are the rules by which a reviewer decides although no other actor interfered: a create
// of a record that an earlier write made, and an undo of what a later write changed.
var rightly = []string{"pre-state", "undo", "compensate"}

// needless reports whether a review of a write that no other actor met could have
// been spared. An irreversible write without a key cannot be repeated, and neither
// can one after a phantom success, after its deadline or without sends left.
func (r *run) needless(rec ledger.Record, phantom bool) bool {
	irreversible := r.plan.class.irreversible
	forbidden := strings.Contains(rec.Reason, "the deadline has passed") || strings.Contains(rec.Reason, "the budget of sends is used up")
	return !slices.Contains(rightly, rec.Rule) && !(irreversible && (phantom || r.plan.class.base != orders.Native)) && !forbidden
}

// report is what many seeds came to.
type report struct {
	seeds      int
	writes     map[string]int
	alone      map[string]int // the writes of runs that no other actor and no crooked fault met
	reviews    map[string]int // of those, the writes that a reviewer had to decide
	actions    int
	faults     map[string]int
	reasons    map[string][]uint64 // why, by class
	violations map[string][]uint64
}

func (p *report) add(r *run) {
	class := r.plan.class.name
	p.seeds++
	p.writes[class] += len(r.plan.writes)
	p.actions += len(r.acted)
	met := map[string]bool{}
	for _, c := range r.world.Calls() {
		for _, v := range c.Faults {
			p.faults[string(v)]++
			met[string(v)] = true
		}
	}
	for i, s := range r.plan.stops {
		if r.used[i] {
			p.faults[s.how]++
		}
	}
	p.faults["clock step"] += len(r.plan.steps)
	if len(r.acted) == 0 && !r.plan.there && !met["rollback"] && !met["dropped-field"] {
		p.alone[class] += len(r.plan.writes)
		for _, w := range r.plan.writes {
			if rec := r.final[idOf(w.intent)]; rec.State == ledger.Review && r.needless(rec, met["phantom-success"]) {
				p.reviews[class]++
				why, _, _ := strings.Cut(rec.Reason, " (")
				why = class + ": " + why
				p.reasons[why] = append(p.reasons[why], r.plan.seed)
			}
		}
	}
	for _, text := range r.problems {
		rule, _, _ := strings.Cut(text, ":")
		p.violations[rule] = append(p.violations[rule], r.plan.seed)
	}
}

func (p *report) String() string {
	var b strings.Builder
	total := 0
	for _, n := range p.writes {
		total += n
	}
	fmt.Fprintf(&b, "%d seeds, %d writes, %d actions of another actor\n", p.seeds, total, p.actions)
	for _, name := range slices.Sorted(maps.Keys(p.faults)) {
		fmt.Fprintf(&b, "  %-24s %8d\n", name, p.faults[name])
	}
	b.WriteString("reviews per 10,000 writes, in runs that no other actor touched:\n")
	for _, c := range classes {
		n := max(p.alone[c.name], 1)
		fmt.Fprintf(&b, "  %-24s %8.1f (%d of %d)\n", c.name, float64(p.reviews[c.name])*10000/float64(n), p.reviews[c.name], p.alone[c.name])
	}
	for _, why := range slices.Sorted(maps.Keys(p.reasons)) {
		s := p.reasons[why]
		fmt.Fprintf(&b, "    %4d  %s, seeds %v\n", len(s), why, s[:min(len(s), 5)])
	}
	b.WriteString("violations:\n")
	for _, rule := range slices.Sorted(maps.Keys(p.violations)) {
		s := p.violations[rule]
		slices.Sort(s)
		fmt.Fprintf(&b, "  %-24s %8d  seeds %v\n", rule, len(s), s[:min(len(s), 12)])
	}
	return b.String()
}

// TestDeterministic: one seed is one run, but where sagas and the gate pause for a
// moment that no test can seed: there its trace can differ by milliseconds.
func TestDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		if p := newPlan(seed); p.disk || slices.ContainsFunc(p.writes, func(w write) bool { return w.saga || len(w.gate) > 0 }) {
			continue
		}
		if one, two := simulate(t, newPlan(seed)).trace(), simulate(t, newPlan(seed)).trace(); one != two {
			a, b := strings.Split(one, "\n"), strings.Split(two, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("seed %d, line %d:\n%s\n%s", seed, i, a[i], b[i])
					break
				}
			}
		}
	}
}

// TestSimulation runs many seeds.
func TestSimulation(t *testing.T) {
	p := &report{writes: map[string]int{}, alone: map[string]int{}, reviews: map[string]int{}, reasons: map[string][]uint64{}, faults: map[string]int{}, violations: map[string][]uint64{}}
	for seed := *from; seed < *from+uint64(*seeds/need.OneIn(20)); seed++ {
		p.add(simulate(t, newPlan(seed)))
	}
	t.Log(p)
	for rule, found := range p.violations {
		slices.Sort(found)
		t.Errorf("%s: %d seeds; go test ./internal/simulation -run TestSeed -simulation.seed=%d -v", rule, len(found), found[0])
	}
}
