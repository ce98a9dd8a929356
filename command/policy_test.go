package command

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/policies"
)

const goodRules = `version: 1
rules:
  - id: dear
    when: step.cost > 100
    decision: require_approval
    reason: more than a hundred dollars
  - id: again
    when: step.gate_count > 3
    decision: block
    reason: asked for too often
`

func TestPolicyCheck(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	good := p.write("rules.yaml", goodRules)
	r := p.want(exitVerified, p.run("policy", "check", good))
	says(t, r, "rules.yaml: 2 rules, 1 warning", "line 3 dear require_approval more than a hundred dollars",
		"warning: "+good+":7: rule again: never fires for a step with retry_policy idempotent")
	p.want(exitAttention, p.run("policy", "check", "--strict", good))
	answer := decode(t, p.want(exitVerified, p.run("policy", "check", "--json", good)))
	warned, _ := answer["warnings"].([]any)
	listed, _ := answer["rules"].([]any)
	if len(warned) != 1 || len(listed) != 2 || warned[0].(map[string]any)["line"] != float64(7) {
		t.Errorf("the answer in JSON has %d rules and the warnings %v", len(listed), warned)
	}
	p.want(exitVerified, p.run("policy", "check", "--strict", p.write("fine.yaml", strings.Split(goodRules, "  - id: again")[0])))
}

func TestPolicyCheckOfBadRules(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	bad := p.write("rules.yaml", strings.ReplaceAll(goodRules, "step.cost", "step.csot"))
	r := p.want(exitInvalid, p.run("policy", "check", bad))
	says(t, r, bad+":4: rules[0].when: column 15: undefined field 'csot'", "No rule was used.")
	failed := decode(t, p.want(exitInvalid, p.run("policy", "check", "--json", bad)))["error"].(map[string]any)
	want := []any{map[string]any{"line": float64(4), "field": "rules[0].when", "problem": "column 15: undefined field 'csot'"}}
	if d := cmp.Diff(want, failed["rules"]); d != "" || failed["kind"] != "rules" {
		t.Errorf("kind %v, problems (-want +got):\n%s", failed["kind"], d)
	}
	says(t, p.want(exitUsage, p.run("policy", "check", filepath.Join(p.dir, "none.yaml"))), "no such file")
	says(t, p.want(exitUsage, p.run("policy")), "want check or test")
}

func TestGateOptions(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, `gate:
  rules: rules.yaml
  lease: 5m
  max_lease: 2h
  window: 48h
  across_workflows: ignore
  approvals: {approvers: 2, within: 3h, on_timeout: escalate}
risk:
  - {tool: wire, approvers: 3}
`)
	path := p.write("rules.yaml", goodRules)
	p.submit(exitVerified, order("A-1", ""))
	c, err := config.Load(p.config)
	if err != nil {
		t.Fatal(err)
	}
	d := &server.Instance{Config: c, Process: server.Process{Log: slog.New(slog.DiscardHandler)}}
	o, err := d.GateOptions()
	if err != nil {
		t.Fatal(err)
	}
	ruling, err := o.Rules.Decide(t.Context(), gate.Facts{Cost: 101})
	if err != nil || ruling.Decision != gate.RequireApproval {
		t.Errorf("the rules say %q, %v", ruling.Decision, err)
	}
	want := &gate.Options{Risks: []policies.RiskRule{{Tool: "wire", Class: intent.RiskApprove, Approvers: 3}}, Lease: 5 * time.Minute, MaxLease: 2 * time.Hour,
		Window: 48 * time.Hour, AcrossWorkflows: gate.AcrossIgnore,
		Approvals: gate.Approvals{Approvers: 2, Within: 3 * time.Hour, OnTimeout: policies.OnTimeoutEscalate}}
	if diff := cmp.Diff(want, o, cmpopts.IgnoreFields(gate.Options{}, "Rules", "Logger")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	says(t, p.want(exitVerified, p.run("doctor")), "ok rules "+path+" has 2 rules, and 1 warning: readback policy check "+path)

	p.write("rules.yaml", strings.ReplaceAll(goodRules, "block", "stop"))
	if _, err := d.GateOptions(); !errors.Is(err, rules.ErrInvalid) {
		t.Errorf("a gate with rules that are none: %v", err)
	}
	says(t, p.want(exitInvalid, p.run("doctor")), "failed rules", `is "stop"; want one of allow, block, require_approval`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.GateOptions(); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "gate.rules") {
		t.Errorf("a gate whose rules are not there: %v", err)
	}
	o, err = (&server.Instance{Process: server.Process{Log: d.Log}}).GateOptions()
	if err != nil || o.Rules != nil || o.AcrossWorkflows == gate.AcrossIgnore {
		t.Errorf("a gate that nothing is said of: %+v, %v", o, err)
	}
}

func TestPolicyTestOnAFile(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	path := p.write("rules.yaml", goodRules+`  - id: amounts
    when: step.tool == "wire" && step.input.amount > 1000
    decision: block
    reason: too much
`)
	tests := map[string]struct {
		reason string
		steps  string
		code   int
		says   []string
	}{
		"as expected": {"cost, count and input", `{"step_id":"pay","cost":200,"expected":"require_approval"}

{"step_id":"pay","gate_count":4,"first_attempt_age_seconds":90,"expected":"block"}
{"step_id":"pay","tool":"wire","input":{"amount":1001},"expected":"block"}
{"step_id":"pay","expected":"allow"}
{"step_id":"other"}`, exitVerified, []string{"pay 4 block block again", "5 steps: 5 as before or expected, 0 changed (~), 0 without an answer; 0 not as expected (!)"}},
		"not as expected": {"the exit code says so", `{"step_id":"pay","cost":200,"expected":"allow"}`, exitAttention,
			[]string{"! pay 1 allow require_approval dear", "1 not as expected"}},
		"no answer": {"a rule that asks for what is not there", `{"step_id":"pay","tool":"wire"}`, exitAttention,
			[]string{"no answer: rule amounts (" + path + ":11): no such key: amount", "1 without an answer"}},
		"unknown field": {"a misspelt one would be left out", `{"step_id":"pay"}` + "\n" + `{"steps":"pay"}`, exitUsage, []string{`--steps: -:2: json: unknown field "steps"`}},
		"unknown word":  {"it could never be met", `{"expected":"deny"}`, exitUsage, []string{`expected is "deny"; want allow, block or require_approval`}},
		"two a line":    {"the second would be lost", `{"step_id":"a"} {"step_id":"b"}`, exitUsage, []string{"want one object a line"}},
		"nothing":       {"an empty file", "", exitVerified, []string{"No steps to try the rules on."}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := p.runIn(tt.steps, "policy", "test", path, "--steps", "-")
			if r.code != tt.code {
				t.Fatalf("%s: exit code %d, want %d\n%s", tt.reason, r.code, tt.code, r)
			}
			says(t, r, tt.says...)
		})
	}
	answer := decode(t, p.want(exitAttention, p.runIn(`{"step_id":"pay","cost":200,"expected":"allow"}`, "policy", "test", path, "--json", "--steps", "-")))
	if answer["differ"] != float64(1) || answer["steps"].([]any)[0].(map[string]any)["now"] != "require_approval" {
		t.Errorf("the answer in JSON is %v", answer)
	}
	p.want(exitUsage, p.run("policy", "test", path, "--limit", "0"))
	p.want(exitUsage, p.run("policy", "test", path, "--steps", filepath.Join(p.dir, "none")))
}
