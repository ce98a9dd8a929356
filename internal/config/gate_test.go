package config_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/policies"
)

func TestBadGates(t *testing.T) {
	const begin = "ledger: a.db\ngate:\n"
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"unknown word":   {"a misspelt word must not be overlooked", "  ruls: x\n", []string{":3: gate.ruls: is not known; did you mean rules?"}},
		"nothing":        {"a gate without settings needs no word", "", []string{":2: gate: is empty; want a value, or the line taken out"}},
		"across":         {"there are two", "  across_workflows: warn\n", []string{":3: gate.across_workflows: is \"warn\"; want block or ignore"}},
		"lease":          {"longer than the longest", "  lease: 2h\n", []string{":2: gate.lease: is 2h0m0s; want at most 1h0m0s, the default of max_lease"}},
		"lease and most": {"longer than the longest", "  lease: 2m\n  max_lease: 1m\n", []string{":2: gate.lease: is 2m0s; want at most 1m0s, max_lease"}},
		"max_lease":      {"a dead worker would keep the step", "  max_lease: 2d\n", []string{":2: gate.max_lease: is 48h0m0s; want at most 24h0m0s: while the lease of a dead holder runs, no other worker gets the step"}},
		"timeout":        {"nothing allows by itself", "  approvals: {on_timeout: allow}\n", []string{":3: gate.approvals.on_timeout: is \"allow\"; want deny or escalate"}},
		"approvers":      {"one reviewer must", "  approvals: {approvers: 0}\n", []string{":3: gate.approvals.approvers: is 0; want how many different people must approve, 1 to 10"}},
		"many approvers": {"it is more than the limit", "  approvals: {approvers: 11}\n", []string{":3: gate.approvals.approvers: is 11; want how many different people must approve, 1 to 10"}},
		"within":         {"60 of what", "  approvals: {within: 60}\n", []string{":3: gate.approvals.within: \"60\" is no duration; want one such as 30d or 12h, at most 100 years"}},
		"forgotten":      {"a key that is forgotten blocks nothing", "  window: 60d\nretention: {keep: 1d, remember: 30d}\n", []string{":2: gate.window: is 1440h0m0s; want at most retention.remember, 720h0m0s: what was forgotten blocks nothing"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, problems(t, begin+tt.text, environment())); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}

func TestBadRisks(t *testing.T) {
	const begin = "ledger: a.db\ndestinations:\n  orders: {type: simulated, url: 'http://127.0.0.1:1'}\nrisk:\n"
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"no list":       {"one rule is a list of one", "  class: approve\n", []string{":5: risk: is a mapping; want a list"}},
		"unknown word":  {"a misspelt word must not be overlooked", "  - {destinatio: orders}\n", []string{":5: risk[0].destinatio: is not known; did you mean destination?"}},
		"no such place": {"a misspelt name would let go what was to be held", "  - {tool: a}\n  - {destination: order}\n", []string{":6: risk[1].destination: is \"order\", which no destination is called; want one of orders, or a pattern for some of them"}},
		"pattern for none": {"likewise", "  - {destination: crm*}\n",
			[]string{":5: risk[0].destination: is \"crm*\", which no destination is called; want one of orders, or a pattern for some of them"}},
		"lower":      {"a rule that looks as if it lowered", "  - {tool: a, class: auto}\n", []string{":5: risk[0].class: is auto, which raises nothing, and a rule never lowers what an intent or another rule asks for; want log or approve"}},
		"class":      {"there are two", "  - {tool: a, class: high}\n", []string{":5: risk[0].class: is \"high\"; want log or approve"}},
		"no pattern": {"it would be for every write, or for none", "  - {tool: 'a[', kind: 'b['}\n", []string{":5: risk[0].tool: is \"a[\", which is no pattern; want a name, in which * matches any letters and ? one letter", ":5: risk[0].kind: is \"b[\", which is no pattern; want a name, in which * matches any letters and ? one letter"}},
		"writes":     {"there are four", "  - {writes: [create, read]}\n", []string{":5: risk[0].writes[1]: is \"read\"; want create, update, upsert or delete"}},
		"not asked":  {"log asks no reviewer", "  - {tool: a, class: log, approvers: 2}\n", []string{":5: risk[0]: has approvers, within or on_timeout, and class log, for which no reviewer is asked; want class approve, or these left out"}},
		"one name":   {"reviewers see which rule holds the write", "  - {name: a, tool: b}\n  - {name: a, tool: c}\n", []string{":6: risk[1].name: is \"a\", as that of line 5; want another one: reviewers see which rule holds a write"}},
		"timeout":    {"nothing allows by itself", "  - {tool: a, on_timeout: approve}\n", []string{":5: risk[0].on_timeout: is \"approve\"; want deny or escalate"}},
		"approvers":  {"one reviewer must", "  - {tool: a, approvers: -1}\n", []string{":5: risk[0].approvers: has the wrong type; want a whole number"}},
		"no time":    {"no reviewer could", "  - {tool: a, within: 0s}\n", []string{":5: risk[0].within: \"0s\" is no duration; want one such as 30d or 12h, at most 100 years"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, problems(t, begin+tt.text, environment())); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}

func TestRisksAndGate(t *testing.T) {
	path := write(t, `
ledger: a.db
destinations:
  orders: {type: simulated, url: 'http://127.0.0.1:1'}
gate:
  across_workflows: ignore
  approvals: {on_timeout: escalate}
risk:
  - destination: ord*
  - {tool: mail, class: log, writes: create}
`)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	wantGate := config.Gate{IgnoreOthers: true, Approvals: config.Approvals{OnTimeout: policies.OnTimeoutEscalate}, Line: 5}
	if d := cmp.Diff(wantGate, c.Gate); d != "" {
		t.Errorf("gate (-want +got):\n%s", d)
	}
	want := []policies.RiskRule{{Destination: "ord*", Class: intent.RiskApprove}, {Tool: "mail", Class: intent.RiskLog, Writes: []intent.WriteType{intent.Create}}}
	if d := cmp.Diff(want, c.Risks); d != "" {
		t.Errorf("a rule without a class asks people (-want +got):\n%s", d)
	}
}

func TestNoGate(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a.db\nrisk:\n"))
	if err != nil || c.Gate != (config.Gate{}) || c.Risks != nil {
		t.Errorf("gate %+v, risks %v, %v; want none", c.Gate, c.Risks, err)
	}
}

func TestRulesAreBesideTheConfiguration(t *testing.T) {
	path := write(t, "ledger: a.db\ngate: {rules: policies/rules.yaml, lease: 10s, window: 7d}\n")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Gate{Rules: filepath.Join(filepath.Dir(path), "policies/rules.yaml"), Lease: 10 * time.Second, Window: 7 * 24 * time.Hour, Line: 2}
	if d := cmp.Diff(want, c.Gate); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
