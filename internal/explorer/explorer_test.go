package explorer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
)

// result is what an exploration found.
type result struct {
	states, transitions int
	problem             string
	path                []string
}

func (r result) String() string {
	text := fmt.Sprintf("%d states, %d transitions", r.states, r.transitions)
	if r.problem != "" {
		text += "\n" + r.problem + ", by the shortest path:\n\t" + strings.Join(r.path, "\n\t")
	}
	return text
}

// explore visits the states of a scenario breadth first until a promise is broken or
// there are no more.
func (s *scenario) explore() (r result) {
	type node struct {
		from  int32
		label string
	}
	nodes := []node{{-1, "two writes are accepted"}}
	type visit struct {
		world
		node int32
	}
	first := s.start()
	seen := map[[16]byte]struct{}{first.digest(): {}}
	queue := []visit{{first, 0}}
	broken := func(at int32, label, problem string) result {
		r.states, r.problem = len(seen), problem
		if label != "" {
			r.path = []string{label}
		}
		for ; at >= 0; at = nodes[at].from {
			r.path = append([]string{nodes[at].label}, r.path...)
		}
		return r
	}
	for len(queue) > 0 {
		var next []visit
		for n := range queue {
			v := &queue[n]
			for _, m := range s.moves(&v.world, false) {
				r.transitions++
				if m.problem != "" {
					return broken(v.node, m.label, m.problem)
				}
				id := m.to.digest()
				if _, known := seen[id]; known {
					continue
				}
				seen[id] = struct{}{}
				nodes = append(nodes, node{v.node, m.label})
				next = append(next, visit{m.to, int32(len(nodes) - 1)})
			}
			if v.real == s.bounds.ticks && len(s.moves(&v.world, true)) == 0 {
				if problem := s.ends(v.world); problem != "" {
					return broken(v.node, "nothing goes wrong any more", problem)
				}
			}
		}
		queue = next
	}
	r.states = len(seen)
	return r
}

// alone has no other actor, crowded has one, and in stepping the ledger's clock does
// not keep time.
var (
	alone    = bounds{ticks: 3, crashes: 1, faults: 1}
	crowded  = bounds{ticks: 2, faults: 1, interference: 1}
	stepping = bounds{ticks: 3, faults: 1, steps: 1}
)

// TestExplore visits all that can happen to two writes of one record.
func TestExplore(t *testing.T) {
	pairs := [][2]intent.WriteType{
		{intent.Create, intent.Delete}, {intent.Create, intent.Create}, {intent.Update, intent.Update}, {intent.Upsert, intent.Delete},
	}
	states, transitions := 0, 0
	for _, class := range []string{"plain", "native", "unique", "conditional", "stamped", "no stamps", "irreversible", "lagging"} {
		for _, pair := range pairs {
			for name, b := range map[string]bounds{"alone": alone, "beside another actor": crowded, "with a clock that steps": stepping} {
				if b.steps > 0 && (!slices.Contains([]string{"plain", "native", "unique", "lagging"}, class) || pair == pairs[1]) {
					continue // to the others time means what it means to these
				}
				s := newScenario(class, pair[0], pair[1], b)
				t.Run(s.name+", "+name, func(t *testing.T) {
					r := s.explore()
					states, transitions = states+r.states, transitions+r.transitions
					t.Log(r)
					if r.problem != "" {
						t.Fail()
					}
				})
			}
		}
	}
	t.Logf("together %d states, %d transitions", states, transitions)
}

// TestExploreFindsBrokenRules breaks one rule of the model at a time.
func TestExploreFindsBrokenRules(t *testing.T) {
	for _, c := range []struct {
		broken, class string
		writes        [2]intent.WriteType
		bounds        bounds
	}{
		{"an executor sends although its lease is over", "plain", [2]intent.WriteType{intent.Create, intent.Update}, bounds{ticks: 5}},
		{"nothing waits for the horizon", "plain", [2]intent.WriteType{intent.Create, intent.Update}, bounds{ticks: 3, faults: 1}},
		{"a delete does not wait for a create that may still arrive", "unique", [2]intent.WriteType{intent.Create, intent.Delete}, bounds{ticks: 3, faults: 2}},
		{"a step of the ledger's clock counts as time that has passed", "plain", [2]intent.WriteType{intent.Create, intent.Update}, bounds{ticks: 3, faults: 1, steps: 1}},
		{"a lost send ends with its lease", "unique", [2]intent.WriteType{intent.Create, intent.Delete}, bounds{ticks: 3, faults: 1, steps: 1}},
		{"the destination forgets the key sooner than it declares", "native", [2]intent.WriteType{intent.Create, intent.Update}, bounds{ticks: 4, faults: 1}},
	} {
		t.Run(c.broken, func(t *testing.T) {
			s := newScenario(c.class, c.writes[0], c.writes[1], c.bounds)
			s.broken = c.broken
			r := s.explore()
			t.Log(r)
			if r.problem == "" {
				t.Error("the explorer found nothing")
			}
			s.broken = ""
			if r := s.explore(); r.problem != "" {
				t.Errorf("with the rule kept: %s", r)
			}
		})
	}
}

// TestExploreKnown names what the engine is known to get wrong. A promise that is kept
// again leaves this table.
func TestExploreKnown(t *testing.T) {
	for name, c := range map[string]struct {
		class   string
		writes  [2]intent.WriteType
		bounds  bounds
		putBack bool
	}{
		"a repeat without a condition replaces what another actor did since the last read": {
			"plain", [2]intent.WriteType{intent.Update, intent.Update}, bounds{ticks: 3, faults: 1, interference: 1}, false},
		"an answered update is sent again after another actor has set the earlier value": {
			"plain", [2]intent.WriteType{intent.Update, intent.Update}, bounds{ticks: 3, interference: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(c.class, c.writes[0], c.writes[1], c.bounds)
			s.strict, s.putBack = !c.putBack, c.putBack
			r := s.explore()
			t.Log(r)
			if r.problem == "" {
				t.Error("the engine keeps this promise: let TestExplore cover it")
			}
		})
	}
}
