package rules

import (
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// perState is the cost of one state of a pattern for each letter of the text.
const perState = 0.1

// sizes are the bounds of an expression's inputs.
type sizes struct {
	// ranges are the lists and maps that it iterates over, never texts.
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

// declared reports whether a value is a single word of a step or an intent, and not part of their
// payload.
func declared(path []string) bool {
	if len(path) == 1 && path[0] == "tenant" {
		return true
	}
	_, ok := fieldOf(strings.Join(path, "."))
	return ok
}

// EstimateCallCost bounds the cost of a pattern by its number of states: at each letter of the
// text it may be in all of them, and a counted repeat multiplies them. The library estimates all
// other calls.
func (s sizes) EstimateCallCost(function, _ string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if function != overloads.Matches {
		return nil
	}
	subject, pattern := matched(target, args)
	if subject == nil {
		return nil
	}
	text := (*subject).ComputedSize()
	if text == nil {
		text = s.EstimateSize(*subject)
	}
	most := text.Add(checker.SizeEstimate{Max: 1}).MultiplyByCostFactor(perState).Multiply(checker.CostEstimate{Max: states(pattern)})
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: most.Max + 1}}
}

// matched are the text and the pattern of text.matches(pattern), and of
// matches(text, pattern).
func matched(target *checker.AstNode, args []checker.AstNode) (text *checker.AstNode, pattern ast.Expr) {
	switch {
	case target != nil && len(args) == 1:
		return target, args[0].Expr()
	case target == nil && len(args) == 2:
		return &args[0], args[1].Expr()
	}
	return nil, nil
}

// states is how many states a pattern has, 1 if it is not a pattern: another check reports that.
func states(pattern ast.Expr) uint64 {
	text, _ := quoted(pattern)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 1
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 1
	}
	return uint64(len(prog.Inst))
}

// quoted is a string literal of an expression.
func quoted(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// foreignPattern reports whether an expression matches a text with a pattern that is not a
// literal.
func foreignPattern(a *cel.Ast) bool {
	for _, n := range ast.MatchDescendants(ast.NavigateAST(a.NativeRep()), ast.FunctionMatcher(overloads.Matches)) {
		args := n.AsCall().Args()
		if _, ok := quoted(args[len(args)-1]); !ok {
			return true
		}
	}
	return false
}
