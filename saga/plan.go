package saga

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

// Plan is an ordered set of writes that belong together.
type Plan struct {
	// Tenant owns the saga and all its writes. Required.
	Tenant string
	// ID names the saga; it is the workflow of its intents. Required.
	ID string
	// CorrelationID is given to the intents that have none. Default none.
	CorrelationID string
	// Steps are the writes: 1 to [MaxSteps]. They are carried out one after another, in an order
	// that follows from their classes and dependencies and, where these leave it open, from their
	// position here.
	Steps []Step
}

// Step is one write of a plan. The reversibility of its intent is its class: compensable steps
// come before the pivot and are undone when the saga goes back, the pivot (also the zero value;
// at most one) decides the saga, and retryable steps come after it and are repeated until they
// succeed.
type Step struct {
	// Name is that of the intent's step. Unique in the plan. Required.
	Name string
	// Intent is the write. Its tenant, workflow and step are those of the plan, and may be
	// omitted.
	Intent intent.WriteIntent
	// After names the steps that must be done before. Default none.
	After []string
	// Revert is how hard it is to take the step back. Default easy, and never if the destination
	// declares that such a write is irreversible.
	Revert Revert
	// Grace is how long the step is held back once it is next, so that the saga can still be
	// cancelled. Default none, at most [MaxGrace].
	Grace time.Duration
	// Undo is the write that undoes the step, for the same record. It may omit what an intent
	// may, and tool, destination, kind and key. The record must also still equal what the step
	// wrote. Default: the connector of the destination builds it.
	Undo *intent.WriteIntent
}

// Revert is how hard it is to take a step back.
type Revert string

// The values. Steps that are hardest to take back come last.
const (
	Easy  Revert = ""
	Hard  Revert = "hard"
	Never Revert = "never"
)

// String returns the word for it.
func (r Revert) String() string {
	if r == Easy {
		return "easy"
	}
	return string(r)
}

// ErrPlan is wrapped by every [PlanError].
var ErrPlan = errors.New("invalid saga")

// PlanError is what is wrong with a plan. Nothing was recorded.
type PlanError struct {
	// Step is the name of the step, "" for the plan as a whole.
	Step string
	// Path is the place in the plan's JSON, a JSON Pointer.
	Path string
	// Problem is the error, Want the correct value.
	Problem, Want string
	Err           error // the cause, if another check refused it
}

func (e *PlanError) Error() string {
	what := "the plan"
	if e.Step != "" {
		what = fmt.Sprintf("step %q", e.Step)
	}
	text := fmt.Sprintf("%v: %s: %s %s", ErrPlan, what, e.Path, e.Problem)
	if e.Want != "" {
		text += "; want " + e.Want
	}
	return text
}

// Unwrap returns [ErrPlan] and the cause.
func (e *PlanError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrPlan}
	}
	return []error{ErrPlan, e.Err}
}

// wrong is a PlanError about a member of a step, or of the plan for i < 0.
func (p Plan) wrong(i int, member, want, format string, args ...any) error {
	e := &PlanError{Path: member, Problem: fmt.Sprintf(format, args...), Want: want}
	if i >= 0 {
		e.Step, e.Path = p.Steps[i].Name, fmt.Sprintf("/steps/%d%s", i, member)
	}
	return e
}

// named refuses a plan that lacks a name which others need.
func (p Plan) named() error {
	n := len(p.Steps)
	switch unnamed := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == "" }); {
	case p.Tenant == "":
		return p.wrong(-1, "/tenant", "the name of the tenant that owns the saga", "is missing")
	case p.ID == "":
		return p.wrong(-1, "/id", "a name for the saga, which is the workflow of its writes", "is missing")
	case n < 1 || n > MaxSteps:
		return p.wrong(-1, "/steps", fmt.Sprintf("1 to %d", MaxSteps), "has %d steps", n)
	case unnamed >= 0:
		return p.wrong(unnamed, "/name", "a name that no other step has", "is missing")
	}
	return nil
}

// correlated is a plan whose writes are found by a correlation ID, if neither it nor any of its
// intents has its own.
func (p Plan) correlated(id string) Plan {
	if p.CorrelationID != "" {
		return p
	}
	for _, s := range p.Steps {
		if s.Intent.CorrelationID != "" || s.Undo != nil && s.Undo.CorrelationID != "" {
			return p
		}
	}
	p.CorrelationID = id
	return p
}

// filled is the plan with every omitted value filled in. It refuses what contradicts the plan.
func (p Plan) filled() (Plan, error) {
	if err := p.named(); err != nil {
		return p, err
	}
	p.Steps = append([]Step(nil), p.Steps...)
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Revert == "easy" {
			s.Revert = Easy
		}
		if err := p.fill(i, "/intent", &s.Intent); err != nil {
			return p, err
		}
		if s.Undo == nil {
			continue
		}
		undo, err := p.fillUndo(i)
		if err != nil {
			return p, err
		}
		s.Undo = &undo
	}
	return p, nil
}

// fillUndo sets the tenant, workflow and step of a step's undoing. It is about the same record as
// the step.
func (p Plan) fillUndo(i int) (intent.WriteIntent, error) {
	of, undo := p.Steps[i].Intent, *p.Steps[i].Undo
	if len(undo.Key) == 0 {
		undo.Key = maps.Clone(of.Key)
	}
	undo.Tool = cmp.Or(undo.Tool, of.Tool)
	undo.Destination, undo.Kind = cmp.Or(undo.Destination, of.Destination), cmp.Or(undo.Kind, of.Kind)
	if err := p.fill(i, "/undo", &undo); err != nil {
		return undo, err
	}
	mine, err := of.KeyDigest()
	if err != nil {
		return undo, p.refused(i, "/intent", err)
	}
	if about, err := undo.KeyDigest(); err != nil || about != mine {
		return undo, p.wrong(i, "/undo/key", "destination, kind and key of the intent, or nothing", "is about another record than the step")
	}
	return undo, nil
}

// covered refuses a plan with a write, or an undoing, outside of a scope.
func (p Plan) covered(s *engine.Scope) error {
	for i, step := range p.Steps {
		if err := s.Covers(step.Intent); err != nil {
			return p.refused(i, "/intent", err)
		}
		if step.Undo == nil {
			continue
		}
		if err := s.Covers(*step.Undo); err != nil {
			return p.refused(i, "/undo", err)
		}
	}
	return nil
}

// fill sets the tenant, workflow and step of an intent.
func (p Plan) fill(i int, at string, w *intent.WriteIntent) error {
	for _, m := range []struct {
		name, plan string
		have       *string
	}{{"tenant", p.Tenant, &w.Tenant}, {"workflow", p.ID, &w.Workflow}, {"step", p.Steps[i].Name, &w.Step}} {
		if *m.have != "" && *m.have != m.plan {
			return p.wrong(i, at+"/"+m.name, fmt.Sprintf("%q, or nothing", m.plan), "is %q, which contradicts the plan", *m.have)
		}
		*m.have = m.plan
	}
	switch {
	case w.CorrelationID == "":
		w.CorrelationID = p.CorrelationID
	case p.CorrelationID != "" && w.CorrelationID != p.CorrelationID:
		return p.wrong(i, at+"/correlation_id", fmt.Sprintf("%q, or nothing", p.CorrelationID), "is %q, which contradicts the plan", w.CorrelationID)
	}
	if w.Compensates != "" {
		return p.wrong(i, at+"/compensates", "it left out; only the engine sets it", "is set")
	}
	return nil
}
