package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// evalTime bounds all rules of a step together: the gate's callers wait for them.
	evalTime = 2 * time.Second
	// maxWhy bounds the expression and the values that are recorded with a match.
	maxWhy = 1000
)

// ErrNoAnswer is wrapped when a rule cannot be answered: it asks for a value that the step lacks,
// or takes too long. The message names the rule.
var ErrNoAnswer = errors.New("no answer")

// careful ranks decisions; the higher is the stricter.
var careful = map[gate.Decision]int{gate.Allow: 1, gate.RequireApproval: 2, gate.Block: 3}

// Decide asks every rule about a step. The strictest decision of those that match wins, block
// before require_approval before allow. Of several, the first in the file gives the reason. If
// none matches it is allow. It fails with [ErrNoAnswer] if one rule cannot be answered, whatever
// the others answer.
func (s *Set) Decide(ctx context.Context, f gate.Facts) (gate.Ruling, error) {
	if s == nil || len(s.rules) == 0 {
		return gate.Ruling{}, fmt.Errorf("%w: no rules were loaded", ErrNoAnswer)
	}
	ctx, cancel := context.WithTimeout(ctx, evalTime)
	defer cancel()
	ruling := gate.Ruling{Decision: gate.Allow, Reason: "no rule matched"}
	with := values(&f)
	first := true
	for _, r := range s.rules {
		matched, err := r.when.holds(ctx, with)
		if err != nil {
			return gate.Ruling{}, fmt.Errorf("%w: rule %s (%s:%d): %w", ErrNoAnswer, r.id, s.path, r.at.Line, &gate.UnansweredError{Rule: r.id, Err: err})
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
	case ctx.Err() != nil: // an expression without a list never checks the time
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

// match is a rule as recorded with the decision, with the values that it saw.
func (r *rule) match(matched bool, f *gate.Facts) gate.PolicyMatch {
	m := gate.PolicyMatch{PolicyID: r.id, PolicyName: r.name, Action: string(r.decision), RiskLevel: r.level, PolicyDescription: r.about}
	if !matched {
		m.Reason = "does not hold: " + clip(r.when.why(f))
		return m
	}
	m.Reason, m.MatchedRule = r.reason, clip(r.when.why(f))
	return m
}

// why is the expression and the values that it asked for, as far as they are single words or
// numbers of the step itself: the payload may hold any data.
func (e *expression) why(f *gate.Facts) string {
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

func clip(s string) string { return visible.Cut(s, maxWhy) }
