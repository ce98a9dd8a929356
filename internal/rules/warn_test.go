package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/rules"
)

const (
	cached   = "never fires for a step with retry_policy idempotent, the default, which is decided about once, at its first gate, where "
	sayOther = `; if it is meant for the others, say so: step.retry_policy == "reevaluate" && …`
	noIntent = "has no answer for a step that declares no intent, so that no such step gets a decision; ask has(intent.…) or intent != null first"
	nowhere  = "is never true, whatever the step says: it never fires"
)

func TestWarnings(t *testing.T) {
	tests := map[string]struct {
		reason string
		when   string
		want   string
	}{
		"count":            {"the trap of the cached decision", "step.gate_count > 3", cached + "step.gate_count is 1" + sayOther},
		"count negated":    {"in other words", "!(step.gate_count <= 3)", cached + "step.gate_count is 1" + sayOther},
		"count and more":   {"what else it asks does not matter", "step.tool == 'wire' && step.gate_count > 3", cached + "step.gate_count is 1" + sayOther},
		"either count":     {"both halves", "step.gate_count > 3 && step.cost > 1 || step.completion_count > 0", cached + "step.completion_count is 0 and step.gate_count is 1" + sayOther},
		"in two branches":  {"neither holds", "step.tool == 'x' ? step.gate_count > 3 : step.gate_count > 4", cached + "step.gate_count is 1" + sayOther},
		"prior status":     {"there is no prior attempt", "step.prior_completion_status in ['completed', 'gated_not_completed']", cached + `step.prior_completion_status is "none"` + sayOther},
		"prior output":     {"nor an output", "step.prior_output_available", cached + "step.prior_output_available is false" + sayOther},
		"age":              {"nor time that has passed", "step.first_attempt_age_seconds > 3600", cached + "step.first_attempt_age_seconds is 0" + sayOther},
		"last decision":    {"nor a decision", "step.last_decision == 'block'", cached + `step.last_decision is ""` + sayOther},
		"over an input":    {"whatever the input", "step.gate_count > 3 && step.input.items.exists(i, i.price > 10)", cached + "step.gate_count is 1" + sayOther},
		"asks the policy":  {"the author knows", "step.retry_policy == 'reevaluate' && step.gate_count > 3", ""},
		"asks the other":   {"and this one is wrong", "step.retry_policy == 'idempotent' && step.gate_count > 3", nowhere},
		"fires at first":   {"the first gate has it", "step.gate_count >= 1 && step.cost > 5", ""},
		"may fire":         {"one half can", "step.gate_count > 3 || step.cost > 5", ""},
		"unknown at first": {"the count is compared with what is unknown", "step.gate_count > step.tokens", ""},
		"misspelt word":    {"there is no such type", "step.type == 'toolcall'", nowhere},
		"right word":       {"there is one", "step.type == 'tool_call'", ""},
		"contradiction":    {"no step is both", "step.type == 'tool_call' && step.type == 'llm_call'", nowhere},
		"false":            {"plainly", "false", nowhere},
		"true":             {"plainly", "true", "is always true: it decides about every step"},
		"any word":         {"every risk there is", "step.risk in ['auto', 'log', 'approve']", "is always true: it decides about every step"},
		"intent unasked":   {"most steps have none", "intent.kind == 'wire'", noIntent},
		"intent asked":     {"the short way", "has(intent.kind) && intent.kind == 'wire'", ""},
		"intent not null":  {"the other way", "intent != null && intent.expect.amount > 100", ""},
		"input unasked":    {"many steps send none", "step.input.amount > 100", "has no answer for a step of which step.input is empty, so that no such step gets a decision; ask has(step.input.…) first"},
		"tool input":       {"likewise", "!(step.tool_input.n == 1)", "has no answer for a step of which step.tool_input is empty, so that no such step gets a decision; ask has(step.tool_input.…) first"},
		"input asked":      {"as the manual says", "has(step.input.amount) && step.input.amount > 100", ""},
		"input iterated":   {"an empty mapping can be iterated", "step.input.exists(k, k == 'a') && step.tool_input.size() > 1", ""},
		"input of a tool":  {"only steps of that tool need it", "step.tool == 'wire' && step.input.amount > 100", ""},
		"no answer":        {"it is no division", "1 / 0 > 2", "can never be answered: a step that it is asked about gets no decision"},
		"first no answer":  {"no step would ever begin", "10 / step.completion_count > 3", "has no answer at the first gate of a step, so that no step gets a decision"},
		"verification":     {"may be there at the first gate too", "step.verification.effect == 'present'", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, got, err := rules.Parse("f", []byte(one("|\n      "+tt.when)))
			if err != nil {
				t.Fatal(err)
			}
			var want []rules.Warning
			if tt.want != "" {
				want = []rules.Warning{{Path: "f", Line: 3, Rule: "a", Text: tt.want}}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.when, tt.reason, d)
			}
		})
	}
}

func TestShadows(t *testing.T) {
	type rule struct{ when, decision string }
	tests := map[string]struct {
		reason      string
		first, then rule
		want        []string // by rule
	}{
		"same":          {"one of them is needless", rule{"step.cost > 1", "block"}, rule{"step.cost  >  1", "block"}, []string{"f:7: rule b: asks the same as rule a of line 3, and decides the same"}},
		"outweighed":    {"block wins wherever it matches", rule{"step.cost > 1 && step.tool == 'x'", "allow"}, rule{"step.tool == 'x'", "block"}, []string{"f:3: rule a: never decides: rule b of line 7 matches whenever it does, and block wins over allow"}},
		"order of both": {"neither the file's nor the condition's order matters", rule{"step.tool == 'x'", "block"}, rule{"step.tool == 'x' && step.cost > 1", "require_approval"}, []string{"f:7: rule b: never decides: rule a of line 3 matches whenever it does, and block wins over require_approval"}},
		"narrower":      {"it gives another reason", rule{"step.tool == 'x'", "block"}, rule{"step.tool == 'x' && step.cost > 1", "block"}, nil},
		"more careful":  {"the narrower one decides something", rule{"step.tool == 'x'", "require_approval"}, rule{"step.tool == 'x' && step.cost > 1", "block"}, nil},
		"always":        {"a rule that always matches outweighs all", rule{"true", "block"}, rule{"step.cost > 1", "allow"}, []string{"f:3: rule a: is always true: it decides about every step", "f:7: rule b: never decides: rule a of line 3 matches whenever it does, and block wins over allow"}},
		"others":        {"two tools", rule{"step.tool == 'x'", "block"}, rule{"step.tool == 'y'", "allow"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := "version: 1\nrules:\n"
			for id, r := range map[string]rule{"a": tt.first} {
				text += "  - id: " + id + "\n    when: " + r.when + "\n    decision: " + r.decision + "\n    reason: r\n"
			}
			text += "  - id: b\n    when: " + tt.then.when + "\n    decision: " + tt.then.decision + "\n    reason: r\n"
			_, got, err := rules.Parse("f", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, w := range got {
				lines = append(lines, w.String())
			}
			if d := cmp.Diff(strings.Join(tt.want, "\n"), strings.Join(lines, "\n")); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}
