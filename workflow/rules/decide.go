package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/readback-go/readback/workflow"
)

// ErrNoAnswer is wrapped when a rule cannot be answered: it asks for something
// that the step does not say, or takes too long. The message names the rule.
var ErrNoAnswer = errors.New("no answer")

// careful says which decision is more careful than which.
var careful = map[workflow.Decision]int{workflow.Allow: 1, workflow.RequireApproval: 2, workflow.Block: 3}

// Decide asks every rule about a step. The most careful decision of those that
// match wins, block before require_approval before allow, and of several the
// first in the file gives the reason. Where none matches it is allow. It fails
// with [ErrNoAnswer] when one rule cannot be answered, whatever the others say:
// what they leave out is not known.
func (s *Set) Decide(ctx context.Context, f workflow.Facts) (workflow.Ruling, error) {
	if s == nil || len(s.rules) == 0 {
		return workflow.Ruling{}, fmt.Errorf("%w: no rules were loaded", ErrNoAnswer)
	}
	ctx, cancel := context.WithTimeout(ctx, evalTime)
	defer cancel()
	ruling := workflow.Ruling{Decision: workflow.Allow, Reason: "no rule matched"}
	with := values(&f)
	first := true
	for _, r := range s.rules {
		matched, err := r.when.holds(ctx, with)
		if err != nil {
			return workflow.Ruling{}, fmt.Errorf("%w: rule %s (%s:%d): %w", ErrNoAnswer, r.id, s.path, r.at.Line, &workflow.UnansweredError{Rule: r.id, Err: err})
		}
		m := r.match(matched, &f)
		ruling.Evaluated = append(ruling.Evaluated, m)
		if !matched {
			continue
		}
		ruling.Matched = append(ruling.Matched, m)
		if first || careful[r.decision] > careful[ruling.Decision] {
			ruling.Decision, ruling.Reason, first = r.decision, r.reason, false
		}
	}
	return ruling, nil
}

func (e *expression) holds(ctx context.Context, with map[string]any) (bool, error) {
	out, _, err := e.program.ContextEval(ctx, with)
	switch {
	case ctx.Err() != nil: // an expression without a list never looks at the time
		return false, fmt.Errorf("the time for it was over: %w", ctx.Err())
	case err != nil && strings.Contains(err.Error(), "no such overload"):
		return false, fmt.Errorf("a value is of a type that does not fit (%s); ask for its type first, as in type(step.input.amount) == double", oneLine(err.Error()))
	case err != nil:
		return false, errors.New(oneLine(err.Error()))
	}
	yes, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it is %v, and neither true nor false", out.Type())
	}
	return bool(yes), nil
}

// match is a rule as it is recorded with the decision, with what it saw.
func (r *rule) match(matched bool, f *workflow.Facts) workflow.PolicyMatch {
	m := workflow.PolicyMatch{PolicyID: r.id, PolicyName: r.name, Action: string(r.decision), RiskLevel: r.level, PolicyDescription: r.about}
	if !matched {
		m.Reason = "does not hold: " + clip(r.when.why(f))
		return m
	}
	m.Reason, m.MatchedRule = r.reason, clip(r.when.why(f))
	return m
}

// why is the expression and what it asked for, as far as that is a single word
// or number of the step itself: what a step carries along may be anybody's.
func (e *expression) why(f *workflow.Facts) string {
	var seen []string
	for _, path := range e.asks {
		if each, ok := fieldOf(path); ok && each.open && (f.Verification != nil || !strings.HasPrefix(path, "step.verification.")) {
			v := each.get(f)
			if v == nil {
				v = each.otherwise
			}
			seen = append(seen, fmt.Sprintf("%s is %#v", path, v))
		}
	}
	if len(seen) == 0 {
		return e.text
	}
	return e.text + " (" + strings.Join(slices.Compact(seen), ", ") + ")"
}

func clip(s string) string {
	if len(s) > maxWhy {
		return strings.ToValidUTF8(s[:maxWhy], "") + "…"
	}
	return s
}
