package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/rules"
)

func parse(t *testing.T, text string) *rules.Set {
	t.Helper()
	s, _, err := rules.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// full is a step with every fact set.
var full = gate.Facts{
	Tenant: "acme", WorkflowID: "wf_1a2b3c4d", WorkflowName: "pay", Source: "langgraph",
	StepID: "transfer", StepName: "Transfer", StepType: "tool_call", Tool: "wire", ToolType: "bank", Model: "m-1", Provider: "p",
	RetryPolicy: "reevaluate", Risk: "approve", Cost: 12.5, TokensIn: 100, TokensOut: 20,
	GateCount: 4, CompletionCount: 1, PriorCompletionStatus: gate.PriorCompleted, PriorOutputAvailable: true,
	LastDecision: gate.RequireApproval, FirstAttemptAge: 90*time.Second + 900*time.Millisecond, IdempotencyKey: "wire:7721",
	Verification: &gate.Verification{Effect: "absent", Verdict: "absent"},
	Input:        map[string]any{"amount": json.Number("1200"), "tags": []any{"vip"}, "none": nil, "big": json.Number("1e999")},
	ToolInput:    map[string]any{"amount": float64(1200), "note": "x"},
	Intent: map[string]any{"kind": "transfer", "write": "create", "call": float64(2), "key": map[string]any{"invoice": "7721"},
		"expect": map[string]any{"amount": json.Number("1200.50"), "lines": []any{map[string]any{"n": float64(1)}}},
		"absent": []any{"/error"}, "deadline": "2026-01-31T12:00:00Z", "count": "two"},
}

func TestConditions(t *testing.T) {
	bare := gate.Facts{GateCount: 1, LastDecision: gate.Block, FirstAttemptAge: time.Hour}
	tests := map[string]struct {
		reason string
		facts  gate.Facts
		when   string
		want   bool
	}{
		"tenant":             {"by its name", full, `tenant == "acme"`, true},
		"workflow":           {"all three", full, `workflow.id == "wf_1a2b3c4d" && workflow.name == "pay" && workflow.source == "langgraph"`, true},
		"words of a step":    {"all of them", full, `[step.step_id, step.name, step.type, step.tool, step.tool_type, step.model, step.provider, step.risk] == ["transfer", "Transfer", "tool_call", "wire", "bank", "m-1", "p", "approve"]`, true},
		"cost and tokens":    {"a cost is compared with whole numbers too", full, `step.cost > 12 && step.cost < 12.6 && step.tokens == 120 && step.tokens_in == 100 && step.tokens_out == 20`, true},
		"retries":            {"as in the retry context", full, `step.gate_count == 4 && step.completion_count == 1 && step.prior_completion_status == "completed" && step.prior_output_available && step.last_decision == "require_approval" && step.idempotency_key == "wire:7721" && step.retry_policy == "reevaluate"`, true},
		"age":                {"whole seconds", full, `step.first_attempt_age_seconds == 90`, true},
		"verification":       {"what a read found", full, `has(step.verification) && step.verification.effect == "absent" && step.verification.verdict == "absent"`, true},
		"no verification":    {"it was not read: it is neither", bare, `!has(step.verification) && step.verification.effect == ""`, true},
		"input":              {"numbers are compared as numbers", full, `step.input.amount > 1000 && "vip" in step.input.tags && step.input.none == null && step.tool_input.amount == step.input.amount`, true},
		"doubles":            {"the digits do not change the type", full, `step.tool_input.amount * 1.5 == 1800.0`, true},
		"type asked first":   {"what a text or null compares with is not asked", full, `type(step.tool_input.note) == double && step.tool_input.note > 5 || type(step.input.none) == double && step.input.none > 5`, false},
		"no input":           {"asked before", bare, `has(step.input.amount) && step.input.amount > 1000`, false},
		"nothing known":      {"the defaults", bare, `step.retry_policy == "idempotent" && step.risk == "auto" && step.tool == "" && !has(step.tool) && step.prior_completion_status == "none"`, true},
		"first gate":         {"there is no earlier one", bare, `step.last_decision == "" && step.first_attempt_age_seconds == 0`, true},
		"intent":             {"its members", full, `intent.kind == "transfer" && intent.write == "create" && intent.call == 2 && intent.key.invoice == "7721" && intent.expect.amount > 1200 && intent.expect.lines[0].n == 1 && "/error" in intent.absent`, true},
		"intent's defaults":  {"what it leaves out means something", full, `intent.risk == "auto" && intent.reversibility == "pivot" && intent.on_mismatch == "escalate" && !has(intent.risk) && has(intent.kind)`, true},
		"intent's deadline":  {"a time", full, `intent.deadline < timestamp("2026-02-01T00:00:00Z")`, true},
		"intent's own":       {"an empty mapping has no members", full, `has(intent.payload.x)`, false},
		"no intent":          {"null, and nothing of it is set", bare, `intent == null && !has(intent.kind) && !has(intent.expect.amount)`, true},
		"intent not null":    {"there is one", full, `intent != null`, true},
		"error outvoted":     {"what cannot be answered does not matter then", bare, `step.cost > 5 && intent.kind == "x"`, false},
		"error outvoted too": {"in either order", bare, `intent.kind == "x" && step.cost > 5`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := parse(t, one("|\n      "+tt.when)).Decide(t.Context(), tt.facts)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Decision == gate.Block; got != tt.want {
				t.Errorf("%s is %t: %s", tt.when, got, tt.reason)
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	long := gate.Facts{GateCount: 1, StepName: strings.Repeat("n", 60_000), Tool: strings.Repeat("t", 70_000),
		Input: map[string]any{"items": make([]any, 1000), "more": make([]any, 1001), "text": strings.Repeat("x", 70_000), "wide": map[string]any{}}}
	for i := range 1001 {
		long.Input["wide"].(map[string]any)[fmt.Sprint(i)] = nil
	}
	tests := map[string]struct {
		reason string
		facts  gate.Facts
		when   string
		want   string
	}{
		"no intent":   {"what is not known is no reason to allow", gate.Facts{}, `intent.kind == "x"`, "there is no WriteIntent here to ask for its kind; ask has() or != null first"},
		"no member":   {"likewise", full, `intent.expect.total > 1`, "no such key: total"},
		"no deadline": {"there is no time that would be right", gate.Facts{Intent: map[string]any{}}, `intent.deadline < timestamp("2026-02-01T00:00:00Z")`, "deadline is not given; ask has() first"},
		"wrong type":  {"a text that should be a number", full, `intent.count == 2`, "intent.count is not of type int"},
		"no whole":    {"a half is no count", gate.Facts{Intent: map[string]any{"call": 2.5}}, `intent.call == 2`, "intent.call is not of type int"},
		"no overload": {"a text against a number", full, `step.tool_input.note > 5`, "a value is of a type that does not fit (no such overload); ask for its type first, as in type(step.input.amount) == double"},
		"null":        {"likewise", full, `has(step.input.none) && step.input.none > 5`, "a value is of a type that does not fit (no such overload: _>_); ask for its type first, as in type(step.input.amount) == double"},
		"no number":   {"a number that no double holds", full, `step.input.big > 5`, "the number 1e999 is out of range"},
		"long text":   {"costs are estimated with less", long, `step.input.text.contains("y")`, "a text of 70000 bytes is longer than rules may read (65536)"},
		"long list":   {"likewise", long, `step.input.more.exists(i, i == 1)`, "a list of 1001 elements is longer than rules may read (1000)"},
		"large map":   {"likewise", long, `"a" in step.input.wide`, "a mapping of 1001 members is larger than rules may read (1000)"},
		"long word":   {"likewise", long, `step.tool == "x"`, "a word of 70000 bytes is longer than rules may read (1020)"},
		"long name":   {"costs are estimated with names as long as names are", long, `step.input.items.exists(i, step.name.contains("x"))`, "a word of 60000 bytes is longer than rules may read (1020)"},
		"long tenant": {"likewise", gate.Facts{Tenant: strings.Repeat("t", 1021)}, `tenant == "x"`, "a word of 1021 bytes is longer than rules may read (1020)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := one("|\n      "+tt.when) + "  - id: z\n    when: \"true\"\n    decision: allow\n    reason: r\n"
			r, err := parse(t, text).Decide(t.Context(), tt.facts)
			if !errors.Is(err, rules.ErrNoAnswer) {
				t.Fatalf("%s: ruling %v, error %v", tt.reason, r.Decision, err)
			}
			var one *gate.UnansweredError
			if !errors.As(err, &one) || one.Rule != "a" || one.Error() != tt.want {
				t.Errorf("the gate gets %+v; want rule a: %s", one, tt.want)
			}
			if want := "no answer: rule a (f:3): " + tt.want; err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
			if r.Decision != "" {
				t.Errorf("a decision, %q, beside the error", r.Decision)
			}
		})
	}
}

func TestMostCarefulWins(t *testing.T) {
	lines := map[gate.Decision]string{}
	for _, d := range []gate.Decision{gate.Allow, gate.Block, gate.RequireApproval} {
		lines[d] = "  - {id: " + string(d) + ", when: step.cost > 1, decision: " + string(d) + ", reason: because " + string(d) + "}\n"
	}
	tests := map[string]struct {
		reason string
		rules  []gate.Decision
		want   gate.Decision
	}{
		"block last":     {"the order does not matter", []gate.Decision{gate.Allow, gate.RequireApproval, gate.Block}, gate.Block},
		"block first":    {"the order does not matter", []gate.Decision{gate.Block, gate.RequireApproval, gate.Allow}, gate.Block},
		"approval last":  {"allow is no exception", []gate.Decision{gate.Allow, gate.RequireApproval}, gate.RequireApproval},
		"approval first": {"allow is no exception", []gate.Decision{gate.RequireApproval, gate.Allow}, gate.RequireApproval},
		"allow":          {"alone", []gate.Decision{gate.Allow}, gate.Allow},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := "version: 1\nrules:\n"
			for _, d := range tt.rules {
				text += lines[d]
			}
			r, err := parse(t, text).Decide(t.Context(), full)
			if err != nil || r.Decision != tt.want || r.Reason != "because "+string(tt.want) || len(r.Matched) != len(tt.rules) {
				t.Errorf("%s (%q), %d matched, %v; want %s: %s", r.Decision, r.Reason, len(r.Matched), err, tt.want, tt.reason)
			}
		})
	}
}

func TestMatchesAreRecorded(t *testing.T) {
	s := parse(t, `version: 1
rules:
  - id: cheap
    when: step.cost > 100
    decision: block
    reason: too dear
  - id: repeat
    name: Repeated transfers
    description: at most three transfers
    when: step.retry_policy == "reevaluate" && step.gate_count > 3 && step.idempotency_key != "" && step.input.amount > 5
    decision: require_approval
    reason: asked too often
    risk_level: high
`)
	got, err := s.Decide(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	repeat := gate.PolicyMatch{PolicyID: "repeat", PolicyName: "Repeated transfers", Action: "require_approval", Reason: "asked too often", RiskLevel: "high",
		PolicyDescription: "at most three transfers",
		MatchedRule:       `step.retry_policy == "reevaluate" && step.gate_count > 3 && step.idempotency_key != "" && step.input.amount > 5 (step.gate_count is 4, step.retry_policy is "reevaluate")`}
	want := gate.Ruling{Decision: gate.RequireApproval, Reason: "asked too often", Matched: []gate.PolicyMatch{repeat},
		Evaluated: []gate.PolicyMatch{{PolicyID: "cheap", PolicyName: "cheap", Action: "block", Reason: "does not hold: step.cost > 100 (step.cost is 12.5)"}, repeat}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what was asked, and why it matched (-want +got):\n%s", d)
	}
}

func TestNothingMatches(t *testing.T) {
	r, err := parse(t, one("step.cost > 100")).Decide(t.Context(), full)
	if err != nil || r.Decision != gate.Allow || r.Reason != "no rule matched" || len(r.Matched) != 0 || len(r.Evaluated) != 1 {
		t.Errorf("%+v, %v; want allow", r, err)
	}
}

func TestNoRulesNoAnswer(t *testing.T) {
	for name, s := range map[string]*rules.Set{"nil": nil, "zero": {}} {
		if r, err := s.Decide(t.Context(), full); !errors.Is(err, rules.ErrNoAnswer) || r.Decision != "" {
			t.Errorf("%s: %v, %v; want no answer", name, r.Decision, err)
		}
	}
}

func TestDecideEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := parse(t, one("step.cost > 100")).Decide(ctx, full)
	if !errors.Is(err, rules.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want no answer, since the caller has gone", err)
	}
}

// TestRulesThatRunTooLong: each of them ends in time, and all together do not.
func TestRulesThatRunTooLong(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nrules:\n")
	for i := range 300 {
		fmt.Fprintf(&text, "  - {id: r%d, when: \"step.input.items.all(i, step.input.items.all(j, i >= 0.0))\", decision: block, reason: r}\n", i)
	}
	items := make([]any, 1000)
	for i := range items {
		items[i] = float64(i)
	}
	r, err := parse(t, text.String()).Decide(t.Context(), gate.Facts{GateCount: 1, Input: map[string]any{"items": items}})
	if !errors.Is(err, rules.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) || r.Decision != "" {
		t.Errorf("%q, %v; want no answer, since the time was over", r.Decision, err)
	}
}

// TestDecideIsConcurrent: many gates ask one set at once, and each gets the answer about its own
// step.
func TestDecideIsConcurrent(t *testing.T) {
	s := parse(t, one("step.input.items.exists(i, i > 2) && step.gate_count > 3"))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 50 {
				f := gate.Facts{GateCount: n, Input: map[string]any{"items": []any{1.0, float64(n)}}}
				r, err := s.Decide(t.Context(), f)
				if want := n > 3; err != nil || (r.Decision == gate.Block) != want {
					t.Errorf("gate %d: %s, %v", n, r.Decision, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
