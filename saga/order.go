package saga

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

const (
	// MaxGrace is the longest grace period. Schedule a write that is due later than in a week
	// elsewhere.
	MaxGrace = 7 * 24 * time.Hour
	// maxCalls bounds the attempts of one step over its lifetime, whatever callers request: each
	// leaves a write in the document.
	maxCalls = 100
	// maxCall is the largest call number of an intent.
	maxCall = 1_000_000
)

// destinations is the interface that a plan is checked against.
type destinations interface {
	Check(w intent.WriteIntent) error
	Profile(w intent.WriteIntent) (connectors.Profile, error)
}

// checked is a valid step, with its destination's profile.
type checked struct {
	Step
	class  intent.Reversibility
	revert Revert
	record ledger.Record
	at     int // in the plan
}

// check returns what is wrong with a plan, or its steps in the order of execution. It records and
// sends nothing.
func (p Plan) check(d destinations) (Plan, []checked, error) {
	p, err := p.filled()
	if err != nil {
		return p, nil, err
	}
	steps := make([]checked, len(p.Steps))
	for i := range p.Steps {
		if steps[i], err = p.step(i, d); err != nil {
			return p, nil, err
		}
	}
	for _, check := range []func([]checked) error{p.names, p.cycle, p.pivots, p.dependencies, p.records} {
		if err := check(steps); err != nil {
			return p, nil, err
		}
	}
	return p, ordered(steps), nil
}

// step checks one step by itself.
func (p Plan) step(i int, d destinations) (checked, error) {
	s := checked{Step: p.Steps[i], at: i, class: classOf(p.Steps[i].Intent), revert: p.Steps[i].Revert}
	w := s.Intent
	if err := d.Check(w); err != nil {
		return s, p.refused(i, "/intent", err)
	}
	profile, err := d.Profile(w)
	if err != nil {
		return s, p.refused(i, "/intent", err)
	}
	if s.record, err = recordOf(w, profile); err != nil {
		return s, p.refused(i, "/intent", err)
	}
	irreversible := slices.Contains(profile.Irreversible, w.Write)
	if irreversible {
		s.revert = Never
	}
	switch {
	case profile.WriteOnly:
		return s, p.wrong(i, "/intent/destination", "one at which the step can be read back",
			"is %q, where nothing can be read of kind %q: the saga could neither continue after this step nor go back", w.Destination, w.Kind)
	case !slices.Contains([]Revert{Easy, Hard, Never}, s.Revert):
		return s, p.wrong(i, "/revert", "easy (or nothing), hard or never", "is %q", string(s.Revert))
	case s.Grace < 0 || s.Grace > MaxGrace:
		return s, p.wrong(i, "/grace", fmt.Sprintf("0 to %s", MaxGrace), "is %s", s.Grace)
	case w.Call+maxCalls > maxCall:
		return s, p.wrong(i, "/intent/call", fmt.Sprintf("at most %d, which leaves numbers for repeats", maxCall-maxCalls), "is %d", w.Call)
	case s.class == intent.Compensable && irreversible:
		return s, p.wrong(i, "/intent/reversibility", "pivot or retryable",
			"is compensable, and %q says that a %s of kind %q can never be taken back", w.Destination, w.Write, w.Kind)
	case s.class == intent.Compensable && s.Revert == Never:
		return s, p.wrong(i, "/intent/reversibility", "pivot or retryable, or revert easy or hard", "is compensable, and revert says that it can never be taken back")
	case s.class == intent.Compensable && s.Undo == nil && !slices.Contains(profile.Undo, w.Write):
		return s, p.wrong(i, "/undo", "the write that undoes it", "is missing: the connector of %q cannot undo a %s of kind %q by itself", w.Destination, w.Write, w.Kind)
	case s.class != intent.Compensable && s.Undo != nil:
		return s, p.wrong(i, "/undo", "it left out, or the reversibility compensable", "is given, and a %s step is never undone", s.class)
	}
	if s.Undo != nil {
		if err := d.Check(*s.Undo); err != nil {
			return s, p.refused(i, "/undo", err)
		}
	}
	return s, nil
}

// refused wraps another package's error about an intent of a step.
func (p Plan) refused(i int, at string, err error) error {
	e := &PlanError{Step: p.Steps[i].Name, Path: fmt.Sprintf("/steps/%d%s", i, at), Problem: "is not acceptable: " + err.Error(), Err: err}
	var outside *engine.ScopeError
	if errors.As(err, &outside) {
		e.Path += outside.Field
	}
	var invalid *intent.InvalidError
	if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
		first := invalid.Problems[0]
		e.Path, e.Problem, e.Want = e.Path+first.Path, first.Problem, first.Want
	}
	return e
}

func classOf(w intent.WriteIntent) intent.Reversibility {
	return cmp.Or(w.Reversibility, intent.Pivot)
}

// recordOf is the write of a step as it is reserved.
func recordOf(w intent.WriteIntent, p connectors.Profile) (ledger.Record, error) {
	rec, err := ledger.NewRecord(w)
	if w.Write == intent.Create && p.FreshKeys { // its key is made for it, and names no other record
		rec.KeyDigest = ""
	}
	return rec, err
}

// names refuses duplicate names, and dependencies on missing steps.
func (p Plan) names(steps []checked) error {
	at := map[string]int{}
	for i, s := range steps {
		if first, taken := at[s.Name]; taken {
			return p.wrong(i, "/name", "another name", "is that of step %d too", first)
		}
		at[s.Name] = i
	}
	for i, s := range steps {
		for j, name := range s.After {
			path := fmt.Sprintf("/after/%d", j)
			if _, known := at[name]; !known {
				return p.wrong(i, path, "the name of another step of the plan", "is %q, and there is no such step", name)
			}
			if slices.Index(s.After, name) != j {
				return p.wrong(i, path, "each step once", "names %q twice", name)
			}
		}
	}
	return nil
}

// cycle refuses steps that wait for each other, and names them.
func (p Plan) cycle(steps []checked) error {
	const visiting, visited = 1, 2
	state := map[string]int{}
	byName := map[string]checked{}
	for _, s := range steps {
		byName[s.Name] = s
	}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		switch state[name] {
		case visited:
			return nil
		case visiting:
			return append(slices.Clone(path[slices.Index(path, name):]), name)
		}
		state[name] = visiting
		path = append(path, name)
		for _, before := range byName[name].After {
			if found := visit(before); found != nil {
				return found
			}
		}
		path, state[name] = path[:len(path)-1], visited
		return nil
	}
	for i, s := range steps {
		if found := visit(s.Name); found != nil {
			slices.Reverse(found) // in order of execution, not of waiting
			return p.wrong(i, "/after", "dependencies without a cycle", "waits for itself: %s", strings.Join(found, " -> "))
		}
	}
	return nil
}

// pivots refuses a second pivot: when the first is done and the second fails, the saga can go
// neither on nor back.
func (p Plan) pivots(steps []checked) error {
	first := -1
	for i, s := range steps {
		switch {
		case s.class != intent.Pivot:
		case first < 0:
			first = i
		default:
			return p.wrong(i, "/intent/reversibility", "one pivot at the most: compensable for what can be undone, retryable for what is repeated until it succeeds",
				"is pivot (which is the default), and step %q is one too: when one of two pivots is done and the other fails, there is no way on and none back", steps[first].Name)
		}
	}
	return nil
}

// rank is a step's position: compensable before the pivot before retryable, and among these the
// hardest to take back last.
func (s checked) rank() int {
	classes := []intent.Reversibility{intent.Compensable, intent.Pivot, intent.Retryable}
	return slices.Index(classes, s.class)*3 + slices.Index([]Revert{Easy, Hard, Never}, s.revert)
}

// kind is a step in words.
func (s checked) kind() string {
	if s.class == intent.Pivot {
		return "the pivot"
	}
	return fmt.Sprintf("%s (%s to take back)", s.class, map[Revert]string{Easy: "easy", Hard: "hard", Never: "impossible"}[s.revert])
}

// dependencies refuses those that force a step that is harder to take back before one that is
// easier.
func (p Plan) dependencies(steps []checked) error {
	byName := map[string]checked{}
	for _, s := range steps {
		byName[s.Name] = s
	}
	for i, s := range steps {
		for j, name := range s.After {
			if before := byName[name]; before.rank() > s.rank() {
				return p.wrong(i, fmt.Sprintf("/after/%d", j), "compensable steps before the pivot, retryable ones after it, and the hardest to take back last",
					"makes it wait for %q, which is %s, while it is %s itself", name, before.kind(), s.kind())
			}
		}
	}
	return nil
}

// records refuses two steps about one record that no dependency orders, and two that are one
// business operation.
func (p Plan) records(steps []checked) error {
	before := ancestors(steps)
	for i, s := range steps {
		for _, other := range steps[:i] {
			a, b := s.record, other.record
			if a.KeyDigest != "" && a.KeyDigest == b.KeyDigest && !before[s.Name][other.Name] && !before[other.Name][s.Name] {
				return p.wrong(i, "/after", fmt.Sprintf("a dependency between %q and %q", other.Name, s.Name), "leaves open whether it comes before or after step %q, which is about the same record", other.Name)
			}
			if a.IdempotencyKey != "" && a.IdempotencyKey == b.IdempotencyKey && a.Tool == b.Tool {
				return p.wrong(i, "/intent/idempotency_key", "another key, or none", "is that of step %q too: the second would be taken for a repeat of the first", other.Name)
			}
		}
	}
	return nil
}

// ancestors is what each step depends on, directly or not. There is no cycle.
func ancestors(steps []checked) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range ordered(steps) {
		all[s.Name] = map[string]bool{}
		for _, dep := range s.After {
			all[s.Name][dep] = true
			maps.Copy(all[s.Name], all[dep])
		}
	}
	return all
}

// ordered is the steps in order of execution: of those whose dependencies are done always the
// lowest rank, and of equals the first in the plan.
func ordered(steps []checked) []checked {
	done := map[string]bool{}
	var order []checked
	for len(order) < len(steps) {
		best := -1
		for i, s := range steps {
			waits := slices.ContainsFunc(s.After, func(name string) bool { return !done[name] })
			if !done[s.Name] && !waits && (best < 0 || s.rank() < steps[best].rank()) {
				best = i
			}
		}
		done[steps[best].Name] = true
		order = append(order, steps[best])
	}
	return order
}
