package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/readback-go/readback/gate"
)

// maxCases bounds the combinations of words with which a rule is tested for whether it can fire
// at all. With more, it is not tested.
const maxCases = 512

// A rule is tested by evaluating it with what is known before any step arrives, and everything
// else unknown. A result of false then holds for every step, so no warning is wrong; some rules
// that never fire are not detected.

func (l *loader) warnings(s *Set) []Warning {
	var all []Warning
	reached := make([]string, len(s.rules))
	for i, r := range s.rules {
		reached[i] = l.reach(r)
	}
	for i, r := range s.rules {
		for _, text := range []string{reached[i], shadow(s.rules, i)} {
			if text != "" {
				all = append(all, Warning{Path: s.path, Line: r.at.Line, Rule: r.id, Text: text})
			}
		}
	}
	return all
}

// reach describes a problem with when a rule can fire, "" for none.
func (l *loader) reach(r *rule) string {
	ever := l.outcomes(r.when, nil)
	if ever == always {
		r.parts = nil // it matches whenever any other does
	}
	first := l.outcomes(r.when, map[string]any{retryPath: idempotent})
	switch {
	case ever == always && r.decision != gate.Allow:
		return "is always true: it decides about every step"
	case ever == always:
		return "is always true, and allows what is allowed without it"
	case ever == never:
		return "is never true, whatever the step says: it never fires"
	case l.outcomes(r.when, map[string]any{"intent": nil}) == fails && ever != fails:
		return "has no answer for a step that declares no intent, so that no such step gets a decision; ask has(intent.…) or intent != null first"
	case ever != fails && l.missing(r) != "":
		return l.missing(r)
	case ever == fails:
		return "can never be answered: a step that it is asked about gets no decision"
	case first == fails:
		return "has no answer at the first gate of a step, so that no step gets a decision"
	case first == never && !slices.Contains(r.when.asks, retryPath):
		return "never fires for a step with retry_policy idempotent, the default, which is decided about once, at its first gate, where " +
			known(r.when.asks) + `; if it is meant for the others, say so: step.retry_policy == "reevaluate" && …`
	}
	return ""
}

// missing reports that a rule asks for a member that a step may omit, and does not check first
// whether it is there.
func (l *loader) missing(r *rule) string {
	for _, field := range []string{"step.input", "step.tool_input"} {
		if l.outcomes(r.when, map[string]any{field: map[string]any{}}) == fails {
			return fmt.Sprintf("has no answer for a step of which %s is empty, so that no such step gets a decision; ask has(%s.…) first", field, field)
		}
	}
	return ""
}

// known describes a rule's fields at the first gate, in words.
func known(asks []string) string {
	var all []string
	for _, path := range asks {
		if f, ok := fieldOf(path); ok && f.first != nil {
			all = append(all, fmt.Sprintf("%s is %#v", path, f.first))
		}
	}
	return strings.Join(all, " and ")
}

const retryPath = "step.retry_policy"

// firstGate adds what is known of an idempotent step: the rules are asked about it only at its
// first gate.
func firstGate(fixed map[string]any) map[string]any {
	if fixed[retryPath] != idempotent {
		return fixed
	}
	all := map[string]any{}
	for _, f := range stepFields {
		if f.first != nil {
			all["step."+f.name] = f.first
		}
	}
	for path, v := range fixed {
		if _, first := all[path]; !first {
			all[path] = v
		}
	}
	return all
}

// outcome is the possible result of a rule.
type outcome string

const (
	open   outcome = "" // either, or not known
	always outcome = "always"
	never  outcome = "never"
	fails  outcome = "fails"
)

// outcomes evaluates an expression with the known values, for every possible word of its fields,
// and combines the results.
func (l *loader) outcomes(e *expression, given map[string]any) outcome {
	program, err := l.env.Program(e.ast, cel.EvalOptions(cel.OptPartialEval, cel.OptExhaustiveEval), cel.CostLimit(maxCost))
	if err != nil {
		return open
	}
	result := open
	for i, fixed := range combinations(e.asks, given) {
		one := l.outcome(program, e, firstGate(fixed))
		if one == open || i > 0 && one != result {
			return open
		}
		result = one
	}
	return result
}

// combinations are all possible words of a rule's fields, or only the known values if they are
// too many.
func combinations(asks []string, given map[string]any) []map[string]any {
	all := []map[string]any{given}
	for _, path := range asks {
		f, _ := fieldOf(path)
		options := make([]any, 0, len(f.words))
		for _, w := range f.words {
			options = append(options, w)
		}
		if f.kind == cel.BoolType {
			options = []any{false, true}
		}
		if _, fixed := given[path]; fixed || len(options) == 0 || !strings.HasPrefix(path, "step.") || strings.Count(path, ".") > 1 {
			continue
		}
		if len(all)*len(options) > maxCases {
			return []map[string]any{given}
		}
		var next []map[string]any
		for _, have := range all {
			for _, o := range options {
				next = append(next, with(have, path, o))
			}
		}
		all = next
	}
	return all
}

func with(have map[string]any, path string, v any) map[string]any {
	next := map[string]any{path: v}
	for k, each := range have {
		next[k] = each
	}
	return next
}

func (l *loader) outcome(program cel.Program, e *expression, fixed map[string]any) outcome {
	step := &object{kind: stepType, values: map[string]any{}}
	unknown := []*cel.AttributePatternType{cel.AttributePattern("workflow"), cel.AttributePattern("tenant")}
	if _, none := fixed["intent"]; !none {
		unknown = append(unknown, cel.AttributePattern("intent"))
	}
	for _, f := range stepFields {
		if v, ok := fixed["step."+f.name]; !ok {
			unknown = append(unknown, cel.AttributePattern("step").QualString(f.name))
		} else if v != "" {
			step.values[f.name] = v
		}
	}
	vars, err := cel.PartialVars(map[string]any{"step": step, "intent": types.NullValue}, unknown...)
	if err != nil {
		return open
	}
	out, details, err := program.Eval(vars)
	switch {
	case err != nil:
		return fails
	case types.IsUnknown(out):
		return l.residue(e, details)
	}
	return of(out)
}

func of(v ref.Val) outcome {
	switch v {
	case types.True:
		return always
	case types.False:
		return never
	}
	return open
}

// residue checks what is left of an expression that could not be evaluated: of two branches
// neither may be able to hold.
func (l *loader) residue(e *expression, details *cel.EvalDetails) outcome {
	left, err := l.env.ResidualAst(e.ast, details)
	if err != nil {
		return open
	}
	return branches(left.NativeRep().Expr())
}

func branches(e ast.Expr) outcome {
	if e.Kind() == ast.LiteralKind {
		return of(e.AsLiteral())
	}
	if e.Kind() != ast.CallKind {
		return open
	}
	call := e.AsCall()
	var parts []outcome
	for _, arg := range call.Args() {
		parts = append(parts, branches(arg))
	}
	switch call.FunctionName() {
	case operators.Conditional:
		if parts[1] == parts[2] {
			return parts[1]
		}
	case operators.LogicalAnd:
		if slices.Contains(parts, never) {
			return never
		}
	case operators.LogicalOr:
		if !slices.ContainsFunc(parts, func(o outcome) bool { return o != never }) {
			return never
		}
	}
	return open
}

// shadow names another rule that makes this one redundant: it matches whenever this one does, and
// its decision wins.
func shadow(all []*rule, i int) string {
	r := all[i]
	for j, other := range all {
		if i == j || !contains(r.parts, other.parts) {
			continue
		}
		same := len(r.parts) == len(other.parts)
		switch {
		case careful[other.decision] > careful[r.decision]:
			return fmt.Sprintf("never decides: rule %s of line %d matches whenever it does, and %s wins over %s", other.id, other.at.Line, other.decision, r.decision)
		case same && j < i && other.decision == r.decision:
			return fmt.Sprintf("asks the same as rule %s of line %d, and decides the same", other.id, other.at.Line)
		}
	}
	return ""
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
