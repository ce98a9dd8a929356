package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/readback-go/readback/workflow"
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
		cel.EnableMacroCallTracking(), // so that an expression can be written down again
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxNesting),
	}
	for _, v := range variables {
		o = append(o, cel.Variable(v.name, v.kind))
	}
	return cel.NewCustomEnv(append([]cel.EnvOption{cel.StdLib()}, o...)...)
}

// fault is one thing wrong with an expression, and where in it: lines from 1,
// columns from 0, in characters.
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
	cost, err := env.EstimateCost(checked, sizesOf(checked))
	if err != nil {
		return start("its cost cannot be estimated: %v", err)
	}
	if cost.Max > maxCost {
		return start("may cost %s to evaluate, over lists of %d and texts of %d bytes; want at most %d: ask for less at once",
			costly(cost.Max), maxMembers, maxText, maxCost)
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery))
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

// sizes are the bounds of what an expression can look at.
type sizes struct {
	// ranges are the parts that it walks through, which no text is.
	ranges map[int64]bool
}

func sizesOf(a *cel.Ast) sizes {
	s := sizes{ranges: map[int64]bool{}}
	for _, n := range ast.MatchDescendants(ast.NavigateAST(a.NativeRep()), ast.KindMatcher(ast.ComprehensionKind)) {
		s.ranges[n.AsComprehension().IterRange().ID()] = true
	}
	return s
}

// EstimateSize bounds one value.
func (s sizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	least, most := uint64(0), uint64(maxText)
	switch kind := n.Type().Kind(); {
	case kind == types.ListKind, kind == types.MapKind, s.ranges[n.Expr().ID()]:
		most = maxMembers
	case kind == types.StringKind && declared(n.Path()):
		most = maxWord
	case kind != types.StringKind && kind != types.DynKind:
		least, most = 1, 1
	}
	return &checker.SizeEstimate{Min: least, Max: most}
}

// declared says that a value is a single word of a step or an intent, and not
// something within what they carry along.
func declared(path []string) bool {
	if len(path) == 1 && path[0] == "tenant" {
		return true
	}
	_, ok := fieldOf(strings.Join(path, "."))
	return ok
}

// EstimateCallCost leaves the costs of calls to the library.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

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

// conditions are the parts of an expression that must all be true, in a form in
// which equal ones are equal.
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

// values are what an expression is evaluated with.
func values(f *workflow.Facts) map[string]any {
	all := map[string]any{
		"step": newObject(stepType, stepFields, f), "workflow": newObject(workflowType, workflowFields, f),
		"intent": types.NullValue, "tenant": f.Tenant,
	}
	if f.Intent != nil {
		all["intent"] = newObject(intentType, objects["WriteIntent"], f)
	}
	return all
}
