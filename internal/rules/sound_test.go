package rules_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/rules"
)

// atoms are realistic conditions, about everything that a first gate decides and some things that
// it does not.
var atoms = []string{
	"step.gate_count > 3", "step.gate_count >= 1", "step.gate_count == step.completion_count + 1", "step.completion_count > 0",
	"step.prior_completion_status == 'none'", "step.prior_completion_status != 'completed'", "step.prior_output_available",
	"step.first_attempt_age_seconds > 60", "step.last_decision == 'block'", "has(step.last_decision)", "step.last_decision in ['', 'allow']",
	"step.type == 'tool_call'", "step.type == 'toolcall'", "step.risk != 'auto'", "step.risk in ['auto', 'log', 'approve']",
	"step.retry_policy == 'idempotent'", "step.retry_policy == 'reevaluate'", "step.tool == 'wire'", "step.cost > 5", "step.cost > step.gate_count * 2",
	"intent == null", "has(intent.kind)", "intent.kind == 'x'", "has(intent.expect.amount)", "intent.expect.amount > 5",
	"step.input.all(k, step.gate_count > 3)", "has(step.input.a)", "step.input.a == 'b'", "step.tool_input.a == 'b'", "step.verification.effect == 'present'", "has(step.verification)",
	"10 / step.completion_count > 3", "10 / step.gate_count > 3", "true", "false",
}

// warning are conditions that cause a warning, one for each kind: combinations of atoms do not
// have all of them in every run.
var warning = map[string]string{
	"never fires for a":                                "step.gate_count > 3",
	"is never true, whatever":                          "step.type == 'toolcall'",
	"is always true: it":                               "step.risk in ['auto', 'log', 'approve']",
	"has no answer for a step that declares no intent": "intent.kind == 'x'",
	"has no answer for a step of which":                "step.input.a == 'b'",
	"has no answer at":                                 "10 / step.completion_count > 3",
	"can never be answered: a":                         "1 / 0 > 2",
}

func expressions() *rapid.Generator[string] {
	return rapid.Deferred(func() *rapid.Generator[string] {
		atom := rapid.SampledFrom(atoms)
		return rapid.OneOf(atom, atom, rapid.Custom(func(t *rapid.T) string {
			part := func() string { return "(" + expressions().Draw(t, "part") + ")" }
			switch rapid.SampledFrom([]string{"&&", "&&", "||", "?", "!"}).Draw(t, "operator") {
			case "&&":
				return part() + " && " + part()
			case "||":
				return part() + " || " + part()
			case "?":
				return part() + " ? " + part() + " : " + part()
			}
			return "!" + part()
		}))
	})
}

// steps are possible gate requests: a first gate, and later ones of a step that is reevaluated.
func steps(t *rapid.T) gate.Facts {
	word := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
	f := gate.Facts{
		RetryPolicy: word("policy", "idempotent", "reevaluate"), StepType: word("type", "llm_call", "tool_call", "connector_call", "human_task"),
		Tool: word("tool", "", "wire"), Risk: word("risk", "auto", "log", "approve"), Cost: rapid.Float64Range(0, 10).Draw(t, "cost"),
		GateCount: 1, PriorCompletionStatus: gate.PriorNone, LastDecision: gate.Decision(word("decision", "allow", "block")),
	}
	if f.RetryPolicy == "reevaluate" && rapid.Bool().Draw(t, "again") {
		f.GateCount = rapid.IntRange(2, 6).Draw(t, "gates")
		f.FirstAttemptAge = time.Duration(rapid.IntRange(0, 100).Draw(t, "age")) * time.Second
		f.PriorCompletionStatus = gate.PriorNotCompleted
		if f.CompletionCount = rapid.IntRange(0, 1).Draw(t, "completions"); f.CompletionCount > 0 {
			f.PriorCompletionStatus, f.PriorOutputAvailable = gate.PriorCompleted, true
		}
	}
	if rapid.Bool().Draw(t, "read") {
		f.Verification = &gate.Verification{Effect: word("effect", "present", "absent", "unknown")}
	}
	if rapid.Bool().Draw(t, "with input") {
		f.Input = map[string]any{"a": word("a", "b", "c")}
	}
	if rapid.Bool().Draw(t, "with tool input") {
		f.ToolInput = map[string]any{"a": word("tool's a", "b", "c")}
	}
	if rapid.Bool().Draw(t, "with intent") {
		f.Intent = map[string]any{"kind": word("kind", "x", "y"), "expect": map[string]any{"amount": rapid.Float64Range(0, 10).Draw(t, "amount")}}
	}
	return f
}

// TestWarningsAreTrue: a warning about a rule holds for every step.
func TestWarningsAreTrue(t *testing.T) {
	for kind, when := range warning {
		if _, warnings, err := rules.Parse("f", []byte(one(fmt.Sprintf("%q", when)))); err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, kind) {
			t.Errorf("%s: warnings %v, %v; want %q", when, warnings, err, kind)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		when := rapid.OneOf(rapid.SampledFrom(slices.Sorted(maps.Values(warning))), expressions(), expressions(), expressions()).Draw(t, "when")
		s, warnings, err := rules.Parse("f", []byte(one(fmt.Sprintf("%q", when))))
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for range 20 {
			f := steps(t)
			r, err := s.Decide(t.Context(), f)
			for _, w := range warnings {
				if wrong := contradicts(w.Text, f, r.Decision == gate.Block, err); wrong {
					t.Fatalf("%s\nis warned of: %s\nand is %q (error %v) for %+v", when, w.Text, r.Decision, err, f)
				}
			}
		}
	})
}

// contradicts reports whether a step's result is one that a warning excludes.
func contradicts(text string, f gate.Facts, fires bool, err error) bool {
	switch {
	case strings.HasPrefix(text, "never fires for"):
		return fires && f.RetryPolicy == "idempotent"
	case strings.HasPrefix(text, "is never true"):
		return fires
	case strings.HasPrefix(text, "is always true"):
		return !fires
	case strings.HasPrefix(text, "has no answer for a step that declares no intent"):
		return err == nil && f.Intent == nil
	case strings.HasPrefix(text, "has no answer for a step of which step.input is empty"):
		return err == nil && f.Input == nil
	case strings.HasPrefix(text, "has no answer for a step of which step.tool_input is empty"):
		return err == nil && f.ToolInput == nil
	case strings.HasPrefix(text, "has no answer at the first gate"):
		return err == nil && f.GateCount == 1 && f.RetryPolicy == "idempotent"
	case strings.HasPrefix(text, "can never be answered"):
		return err == nil
	}
	return true // a warning that is not checked here
}
