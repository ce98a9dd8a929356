package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/readback-go/readback/gate"
)

const (
	// maxExpression bounds one expression in bytes, maxNesting its depth: typical ones have some
	// hundred bytes, and the type checker is recursive.
	maxExpression = 8 << 10
	maxNesting    = 100
	// maxCost bounds one expression, as estimated at load, in units of CEL: at most about a tenth
	// of a microsecond each, so that one rule takes at most a second and typically microseconds.
	maxCost = 10_000_000
	// interruptEvery is after how many elements of a list the time is checked.
	interruptEvery = 100
)

// variables are the names at the root, and their types.
var variables = []struct {
	name string
	kind *types.Type
}{{"step", stepType}, {"workflow", workflowType}, {"intent", intentType}, {"tenant", cel.StringType}}

func environment() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	o := []cel.EnvOption{
		cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(provider{registry}),
		cel.CrossTypeNumericComparisons(true), // step.cost > 100
		cel.ExtendedValidations(),
		cel.EnableMacroCallTracking(), // so that an expression can be printed again
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxNesting),
	}
	for _, v := range variables {
		o = append(o, cel.Variable(v.name, v.kind))
	}
	return cel.NewCustomEnv(append([]cel.EnvOption{cel.StdLib()}, o...)...)
}

// fault is one error in an expression, and its place: lines from 1, columns from 0, in
// characters.
type fault struct {
	line, column int
	what         string
}

// expression is a rule's when.
type expression struct {
	text    string
	ast     *cel.Ast
	program cel.Program
	// asks are the fields that it names ("step.tool"), in order.
	asks []string
}

func compile(env *cel.Env, source string) (*expression, []fault) {
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		var all []fault
		for _, e := range issues.Errors() {
			all = append(all, fault{e.Location.Line(), e.Location.Column(), oneLine(e.Message)})
		}
		return nil, all
	}
	start := func(what string, args ...any) (*expression, []fault) {
		return nil, []fault{{1, 0, fmt.Sprintf(what, args...)}}
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return start("is of type %s; want a condition, which is true or false", checked.OutputType())
	}
	if len(ast.MatchDescendants(ast.NavigateAST(checked.NativeRep()), ast.KindMatcher(ast.StructKind))) > 0 {
		return start("makes a value with { }; want a condition about those that there are")
	}
	if foreignPattern(checked) {
		return start("matches a text with a pattern that is not written in the rule; want the pattern as a text in quotes: the caller must not choose the cost")
	}
	cost, err := env.EstimateCost(checked, sizesOf(checked))
	if err != nil {
		return start("its cost cannot be estimated: %v", err)
	}
	if cost.Max > maxCost {
		return start("may cost %s to evaluate, over lists of %d and texts of %d bytes; want at most %d: ask for less at once",
			costly(cost.Max), maxMembers, maxText, maxCost)
	}
	// The estimated cost is not counted again at run time: that would take most of the time, and
	// no value larger than estimated is evaluated.
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return start("cannot be made ready: %v", err)
	}
	return &expression{text: source, ast: checked, program: program, asks: asked(checked)}, nil
}

func costly(cost uint64) string {
	if cost == math.MaxUint64 {
		return "without a bound"
	}
	return fmt.Sprint(cost)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// asked lists the fields that an expression names.
func asked(a *cel.Ast) []string {
	var all []string
	for _, n := range ast.MatchDescendants(ast.NavigateAST(a.NativeRep()), ast.KindMatcher(ast.SelectKind)) {
		if path := pathOf(n); path != "" && !slices.Contains(all, path) {
			if _, ok := fieldOf(path); ok {
				all = append(all, path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// pathOf is "step.tool" for that expression, "" for anything else.
func pathOf(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		if operand := pathOf(e.AsSelect().Operand()); operand != "" {
			return operand + "." + e.AsSelect().FieldName()
		}
	}
	return ""
}

// conditions are the parts of an expression that must all be true, in a normal form.
func conditions(a *cel.Ast) ([]string, error) {
	var parts []string
	var split func(e ast.Expr) error
	split = func(e ast.Expr) error {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
			for _, arg := range e.AsCall().Args() {
				if err := split(arg); err != nil {
					return err
				}
			}
			return nil
		}
		part, err := cel.ExprToString(e, a.NativeRep().SourceInfo())
		parts = append(parts, part)
		return err
	}
	err := split(a.NativeRep().Expr())
	slices.Sort(parts)
	return slices.Compact(parts), err
}

// values are the inputs of an evaluation.
func values(f *gate.Facts) map[string]any {
	all := map[string]any{
		"step": newObject(stepType, stepFields, f), "workflow": newObject(workflowType, workflowFields, f),
		"intent": types.NullValue, "tenant": word(f.Tenant),
	}
	if f.Intent != nil {
		all["intent"] = newObject(intentType, objects["WriteIntent"], f)
	}
	return all
}
