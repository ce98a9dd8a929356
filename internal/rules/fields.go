package rules

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/readback-go/readback/gate"
)

// field is one value that a rule can ask about.
type field struct {
	name string
	kind *types.Type
	// get is its value; nil if the step lacks it.
	get func(f *gate.Facts) any
	// otherwise is the value that a rule sees if the step lacks it. Nil: none, and a rule that
	// asks for it has no answer.
	otherwise any
	// first is its value at the first gate of a step. Nil: not known.
	first any
	// words are all of its possible values. Default: not known.
	words []string
	// open reports whether its value may be recorded with a match.
	open bool
}

// The types of the values.
var (
	stepType         = cel.ObjectType("Step")
	verificationType = cel.ObjectType("Verification")
	workflowType     = cel.ObjectType("Workflow")
	intentType       = cel.ObjectType("WriteIntent")
	anyType          = cel.MapType(cel.StringType, cel.DynType)
)

var (
	decisionWords = []string{"", string(gate.Allow), string(gate.Block), string(gate.RequireApproval)}
	riskWords     = []string{"auto", "log", "approve"}
	policyWords   = []string{idempotent, "reevaluate"}
)

// idempotent is the retry policy under which the rules rule on a step only once.
const idempotent = "idempotent"

// objects are the fields of every type, by its name.
var objects = map[string][]field{
	"Step":         stepFields,
	"Verification": verificationFields,
	"Workflow":     workflowFields,
	"WriteIntent":  intentFields(),
}

func text(name string, get func(f *gate.Facts) string, words ...string) field {
	return field{name: name, kind: cel.StringType, otherwise: "", words: words, open: true, get: func(f *gate.Facts) any {
		if s := get(f); s != "" {
			return s
		}
		return nil
	}}
}

func number(name string, get func(f *gate.Facts) int, first any) field {
	return field{name: name, kind: cel.IntType, first: first, open: true, get: func(f *gate.Facts) any { return int64(get(f)) }}
}

var stepFields = []field{
	text("step_id", func(f *gate.Facts) string { return f.StepID }),
	text("name", func(f *gate.Facts) string { return f.StepName }),
	text("type", func(f *gate.Facts) string { return f.StepType }, "llm_call", "tool_call", "connector_call", "human_task"),
	text("tool", func(f *gate.Facts) string { return f.Tool }),
	text("tool_type", func(f *gate.Facts) string { return f.ToolType }),
	text("model", func(f *gate.Facts) string { return f.Model }),
	text("provider", func(f *gate.Facts) string { return f.Provider }),
	text("risk", func(f *gate.Facts) string { return orAuto(f.Risk) }, riskWords...),
	{name: "cost", kind: cel.DoubleType, open: true, get: func(f *gate.Facts) any { return f.Cost }},
	number("tokens", func(f *gate.Facts) int { return f.TokensIn + f.TokensOut }, nil),
	number("tokens_in", func(f *gate.Facts) int { return f.TokensIn }, nil),
	number("tokens_out", func(f *gate.Facts) int { return f.TokensOut }, nil),
	text("retry_policy", retryPolicy, policyWords...),

	number("gate_count", func(f *gate.Facts) int { return f.GateCount }, int64(1)),
	number("completion_count", func(f *gate.Facts) int { return f.CompletionCount }, int64(0)),
	{name: "prior_completion_status", kind: cel.StringType, first: string(gate.PriorNone), open: true,
		words: []string{string(gate.PriorNone), string(gate.PriorCompleted), string(gate.PriorNotCompleted)},
		get:   func(f *gate.Facts) any { return priorStatus(f) }},
	{name: "prior_output_available", kind: cel.BoolType, first: false, open: true, get: func(f *gate.Facts) any { return f.PriorOutputAvailable }},
	{name: "last_decision", kind: cel.StringType, otherwise: "", first: "", words: decisionWords, open: true, get: lastDecision},
	{name: "first_attempt_age_seconds", kind: cel.IntType, first: int64(0), open: true, get: firstAge},
	// Whose operation it is is not recorded with a match.
	{name: "idempotency_key", kind: cel.StringType, otherwise: "", get: text("", func(f *gate.Facts) string { return f.IdempotencyKey }).get},

	{name: "verification", kind: verificationType, otherwise: &object{kind: verificationType}, get: verification},
	{name: "input", kind: anyType, otherwise: map[string]any{}, get: func(f *gate.Facts) any { return given(f.Input) }},
	{name: "tool_input", kind: anyType, otherwise: map[string]any{}, get: func(f *gate.Facts) any { return given(f.ToolInput) }},
}

var verificationFields = []field{
	text("effect", func(f *gate.Facts) string { return f.Verification.Effect }, "present", "absent", "unknown"),
	text("verdict", func(f *gate.Facts) string { return f.Verification.Verdict }),
}

var workflowFields = []field{
	text("id", func(f *gate.Facts) string { return f.WorkflowID }),
	text("name", func(f *gate.Facts) string { return f.WorkflowName }),
	text("source", func(f *gate.Facts) string { return f.Source }, "langgraph", "langchain", "crewai", "external"),
}

// intentFields are the members of a WriteIntent that rules can ask about. An omitted member has
// its default.
func intentFields() []field {
	member := func(name string, kind *types.Type, otherwise any, words ...string) field {
		return field{name: name, kind: kind, otherwise: otherwise, words: words, get: func(f *gate.Facts) any { return typed(kind, name, f.Intent[name]) }}
	}
	var all []field
	for _, name := range []string{"tenant", "workflow", "step", "tool", "destination", "kind", "idempotency_key", "correlation_id", "compensates"} {
		all = append(all, member(name, cel.StringType, ""))
	}
	return append(all,
		member("write", cel.StringType, "", "create", "update", "upsert", "delete"),
		member("risk", cel.StringType, "auto", riskWords...),
		member("reversibility", cel.StringType, "pivot", "compensable", "pivot", "retryable"),
		member("on_mismatch", cel.StringType, "escalate", "escalate", "retry", "compensate", "repair"),
		member("call", cel.IntType, int64(0)),
		member("count", cel.IntType, int64(1)),
		member("deadline", cel.TimestampType, nil),
		member("key", anyType, map[string]any{}),
		member("expect", anyType, map[string]any{}),
		member("payload", anyType, map[string]any{}),
		member("require", anyType, map[string]any{}),
		member("compare", anyType, map[string]any{}),
		member("absent", cel.ListType(cel.StringType), []any{}),
		member("ignore", cel.ListType(cel.StringType), []any{}),
		member("sensitive", cel.ListType(cel.StringType), []any{}),
		member("context", anyType, map[string]any{}),
	)
}

func orAuto(risk string) string {
	if risk == "" {
		return "auto"
	}
	return risk
}

func retryPolicy(f *gate.Facts) string {
	if f.RetryPolicy == "" {
		return idempotent
	}
	return f.RetryPolicy
}

func priorStatus(f *gate.Facts) string {
	if f.PriorCompletionStatus == "" {
		return string(gate.PriorNone)
	}
	return string(f.PriorCompletionStatus)
}

// lastDecision is the previous gate's decision. The first gate has none.
func lastDecision(f *gate.Facts) any {
	if f.GateCount <= 1 || f.LastDecision == "" {
		return nil
	}
	return string(f.LastDecision)
}

// firstAge is in whole seconds, so that an immediate gate has age 0.
func firstAge(f *gate.Facts) any {
	if f.GateCount <= 1 {
		return int64(0)
	}
	return int64(f.FirstAttemptAge.Seconds())
}

func verification(f *gate.Facts) any {
	if f.Verification == nil {
		return nil
	}
	return newObject(verificationType, verificationFields, f)
}

func given(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// Variables are the names that rules can use, in the order of the
// documentation: "step.gate_count", "tenant".
func Variables() []string {
	all := []string{"tenant"}
	for _, of := range []struct {
		prefix, object string
	}{{"step.", "Step"}, {"step.verification.", "Verification"}, {"workflow.", "Workflow"}, {"intent.", "WriteIntent"}} {
		for _, f := range objects[of.object] {
			all = append(all, of.prefix+f.name)
		}
	}
	return all
}

// fieldOf finds a field by its path ("step.tool"), and its parent.
func fieldOf(path string) (field, bool) {
	object := map[string]string{"step": "Step", "workflow": "Workflow", "intent": "WriteIntent", "step.verification": "Verification"}
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return field{}, false
	}
	for _, f := range objects[object[path[:i]]] {
		if f.name == path[i+1:] {
			return f, true
		}
	}
	return field{}, false
}
