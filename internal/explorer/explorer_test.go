package explorer

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/need"
)

// TestMain collects garbage less often: half of the time would go there.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

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
		from int32
		move int16
	}
	nodes := []node{{-1, 0}}
	type visit struct {
		world
		node int32
	}
	start := s.start()
	known := map[[16]byte]struct{}{s.digest(&start): {}}
	queue := []visit{{start, 0}}
	broken := func(at int32, last, problem string) result {
		r.states, r.problem = len(known), problem
		var way []int16
		for ; nodes[at].from >= 0; at = nodes[at].from {
			way = append(way, nodes[at].move)
		}
		slices.Reverse(way)
		s.labels = true
		defer func() { s.labels = false }()
		w := s.start()
		for _, n := range way {
			m := s.moves(&w, false)[n]
			r.path = append(r.path, m.label)
			w = m.to
		}
		r.path = append(r.path, last)
		if last == "" {
			for _, m := range s.moves(&w, false) {
				if m.problem == problem {
					r.path[len(r.path)-1] = m.label
					break
				}
			}
		}
		return r
	}
	for len(queue) > 0 {
		var next []visit
		for n := range queue {
			v := &queue[n]
			for at, m := range s.moves(&v.world, false) {
				r.transitions++
				if m.problem != "" {
					return broken(v.node, "", m.problem)
				}
				id := s.digest(&m.to)
				if _, visited := known[id]; visited {
					continue
				}
				known[id] = struct{}{}
				nodes = append(nodes, node{v.node, int16(at)})
				next = append(next, visit{m.to, int32(len(nodes) - 1)})
			}
			if v.real == int32(s.bounds.ticks) && len(s.moves(&v.world, true)) == 0 {
				if problem := s.ends(v.world); problem != "" {
					return broken(v.node, "nothing goes wrong any more", problem)
				}
			}
		}
		queue = next
	}
	r.states = len(known)
	return r
}

// What may happen beside two writes: crashes and faults, another actor, a clock that
// steps.
var (
	alone   = bounds{ticks: 3, crashes: 1, faults: 1}
	crowded = bounds{ticks: 2, faults: 1, interference: 1}
	stepped = bounds{ticks: 2, faults: 1, steps: 1}
)

var (
	classes = []string{"plain", "native", "unique", "conditional", "stamped", "no stamps", "irreversible", "lagging"}
	pairs   = [][2]intent.WriteType{
		{intent.Create, intent.Delete}, {intent.Create, intent.Create}, {intent.Update, intent.Update}, {intent.Upsert, intent.Delete},
		{intent.Delete, intent.Create},
	}
)

// explored explores a scenario to its end.
func explored(t *testing.T, s *scenario, how string) {
	t.Run(s.name+", "+how, func(t *testing.T) {
		r := s.explore()
		t.Log(r)
		if r.problem != "" {
			t.Fail()
		}
	})
}

var far = flag.Bool("explorer.far", false, "have TestExplore visit all that can happen within larger bounds: ten minutes")

// TestExplore visits all that can happen to two writes of one record; with -short,
// to some pairs of writes at each class.
func TestExplore(t *testing.T) {
	if *far {
		exploreFar(t)
		return
	}
	n := 0
	for _, class := range classes {
		for _, pair := range pairs {
			if n++; n%need.OneIn(7) != 0 {
				continue
			}
			for how, b := range map[string]bounds{"alone": alone, "beside another actor": crowded} {
				explored(t, newScenario(class, pair[0], pair[1], b), how)
			}
		}
	}
	for _, class := range []string{"plain", "unique", "lagging"} {
		explored(t, newScenario(class, intent.Create, intent.Create, crowded).alike(), "beside another actor")
	}
}

func exploreFar(t *testing.T) {
	for _, class := range classes {
		for _, pair := range pairs {
			for how, b := range map[string]bounds{
				"alone":                {ticks: 4, crashes: 1, faults: 2},
				"beside another actor": {ticks: 3, faults: 1, interference: 1},
				"the clock steps":      {ticks: 3, faults: 1, steps: 1},
			} {
				explored(t, newScenario(class, pair[0], pair[1], b), how)
			}
			explored(t, newScenario(class, pair[0], pair[1], bounds{ticks: 3, faults: 1, steps: 1}).leaping(), "the clock steps by more than a day")
		}
		for _, one := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert} {
			for _, how := range []intent.MismatchPolicy{intent.MismatchCompensate, intent.MismatchRepair} {
				explored(t, newScenario(class, one, intent.Update, bounds{ticks: 3, faults: 1, interference: 1}).mending(0, how), "beside another actor")
			}
		}
	}
}

// TestExploreClock does so where the ledger's clock steps.
func TestExploreClock(t *testing.T) {
	n := 0
	for _, class := range []string{"plain", "native", "unique", "conditional", "lagging"} {
		for _, pair := range [][2]intent.WriteType{{intent.Create, intent.Delete}, {intent.Update, intent.Update}} {
			if n++; n%need.OneIn(7) != 0 {
				continue
			}
			explored(t, newScenario(class, pair[0], pair[1], stepped), "the clock steps")
		}
	}
	explored(t, newScenario("plain", intent.Upsert, intent.Delete, stepped), "the clock steps")
	for _, class := range []string{"plain", "unique", "lagging"} {
		explored(t, newScenario(class, intent.Create, intent.Delete, stepped).leaping(), "the clock steps by more than a day")
	}
	explored(t, newScenario("plain", intent.Upsert, intent.Upsert, stepped).leaping(), "the clock steps by more than a day")
}

// TestExploreMending does so where a send can be stored in part, and where a reviewer
// has the first write undone.
func TestExploreMending(t *testing.T) {
	n := 0
	for _, class := range []string{"plain", "conditional", "no stamps", "lagging"} {
		for _, one := range []intent.WriteType{intent.Create, intent.Update} {
			for _, how := range []intent.MismatchPolicy{intent.MismatchCompensate, intent.MismatchRepair} {
				if n++; n%need.OneIn(7) != 0 {
					continue
				}
				explored(t, newScenario(class, one, intent.Update, crowded).mending(0, how), "beside another actor")
			}
		}
	}
	for _, c := range []struct {
		class    string
		one, two intent.WriteType
		bounds   bounds
	}{
		{"plain", intent.Create, intent.Update, bounds{ticks: 2, faults: 1, interference: 1, undos: 1}},
		{"plain", intent.Update, intent.Update, bounds{ticks: 1, faults: 1, interference: 1, undos: 1}},
		{"conditional", intent.Update, intent.Update, bounds{ticks: 1, faults: 1, interference: 1, undos: 1}},
		{"lagging", intent.Create, intent.Update, bounds{ticks: 1, faults: 1, interference: 1, undos: 1}},
		{"plain", intent.Delete, intent.Create, bounds{ticks: 2, faults: 1, interference: 1, undos: 1}},
	} {
		if n++; n%need.OneIn(7) != 0 {
			continue
		}
		s := newScenario(c.class, c.one, c.two, c.bounds)
		s.writes[0].Reversibility = intent.Compensable
		explored(t, s, "undone")
	}
}

// TestExploreFindsBrokenRules breaks one rule of the model at a time. With -short the
// same situations are not all explored with the rule kept.
func TestExploreFindsBrokenRules(t *testing.T) {
	create, update, remove := intent.Create, intent.Update, intent.Delete
	compensated := func(s *scenario) { s.mending(0, intent.MismatchCompensate) }
	repaired := func(s *scenario) { s.mending(0, intent.MismatchRepair) }
	leaping := func(s *scenario) { s.leaping() }
	alike := func(s *scenario) { s.alike() }
	for n, c := range []struct {
		broken, class string
		one, two      intent.WriteType
		change        func(*scenario)
		bounds        bounds
	}{
		{"an executor sends although its lease is over", "plain", create, update, nil, bounds{ticks: 6}},
		{"nothing waits for the horizon", "plain", create, update, nil, bounds{ticks: 3, faults: 1}},
		{"a delete does not wait for a create that may still arrive", "unique", create, remove, nil, bounds{ticks: 3, faults: 2}},
		{"the destination forgets the key sooner than it declares", "native", create, update, nil, bounds{ticks: 4, faults: 1}},
		{"a clock step counts as time that passed", "plain", create, update, nil, bounds{ticks: 2, faults: 1, steps: 1}},
		{"a lost send counts as ended when its lease ends", "unique", create, remove, nil, bounds{ticks: 2, faults: 1, steps: 1}},
		{"a step of more than a day ends the wait for a send", "unique", create, remove, leaping, bounds{ticks: 2, faults: 1, steps: 1}},
		{"the last recheck does not wait for a create that may still arrive", "unique", create, remove, leaping, bounds{ticks: 2, faults: 1, steps: 1}},
		{"a create is fulfilled by a read that lags", "lagging", create, create, alike, bounds{ticks: 2, interference: 1}},
		{"a repeat does not ask what the last read showed", "plain", update, update, nil, bounds{ticks: 2, faults: 1, interference: 1}},
		{"the undo does not ask whose the record is", "no stamps", update, update, compensated, bounds{ticks: 2, faults: 1, interference: 1}},
		{"the undo does not require what the write left", "plain", create, update, compensated, bounds{ticks: 2, faults: 1, interference: 1}},
		{"a write counts as undone when its undo was sent", "plain", create, update, compensated, bounds{ticks: 2, faults: 2}},
		{"the repair does not ask whose the record is", "plain", update, update, repaired, bounds{ticks: 2, faults: 1, interference: 1}},
	} {
		t.Run(c.broken, func(t *testing.T) {
			scenario := func() *scenario {
				s := newScenario(c.class, c.one, c.two, c.bounds)
				if c.change != nil {
					c.change(s)
				}
				return s
			}
			s := scenario()
			s.broken = c.broken
			r := s.explore()
			t.Log(r)
			if r.problem == "" {
				t.Error("the explorer found nothing")
			}
			if n%need.OneIn(5) != 0 {
				return
			}
			if r := scenario().explore(); r.problem != "" {
				t.Errorf("with the rule kept: %s", r)
			}
		})
	}
}

// TestExploreKnown names what the engine is known to get wrong. A promise that is kept
// again leaves this table.
func TestExploreKnown(t *testing.T) {
	for name, c := range map[string]struct {
		one, two intent.WriteType
		bounds   bounds
		change   func(*scenario)
		problem  string
	}{
		"a repeat without a condition replaces what another actor did between its read and its arrival": {
			intent.Update, intent.Update, bounds{ticks: 3, faults: 1, interference: 1},
			func(s *scenario) { s.strict = true }, "send 2 of write 1 replaces or deletes what another actor left"},
		"an update that was not answered is sent again after another actor has set the earlier value": {
			intent.Update, intent.Update, bounds{ticks: 3, faults: 1, interference: 1},
			func(s *scenario) { s.putBack = true }, "send 2 of write 1 replaces or deletes what another actor left"},
		"a process that begins after the clock stepped by more than a day takes that for time in which none counted": {
			intent.Create, intent.Delete, stepped,
			func(s *scenario) {
				s.leaping()
				s.young, s.profile.Unique = true, []intent.WriteType{intent.Create}
			}, "write 1 took effect 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("plain", c.one, c.two, c.bounds)
			c.change(s)
			r := s.explore()
			t.Log(r)
			if r.problem != c.problem {
				t.Error("the engine keeps this promise, or breaks another one first: let TestExplore cover it")
			}
		})
	}
}
