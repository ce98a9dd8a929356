package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/policies"
)

func TestFirstGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		before := b.store.commits.Load()
		got := b.ask(wf, "transfer", asking{StepType: "tool_call", IdempotencyKey: "wire:invoice-7721", StepInput: raw(map[string]any{"amount": 1})})
		same(t, "commits of one gate", b.store.commits.Load()-before, int64(1))
		now := time.Now()
		if got.Lease == nil || got.LeaseID == "" {
			t.Fatal("the first gate got no lease")
		}
		want := gate.GateResponse{
			Decision: gate.Allow, StepID: "transfer", DecisionID: "dec_" + wf + "_transfer", Reason: "the rules say allow",
			PolicyIDs: []string{"p1"}, PoliciesMatched: []gate.PolicyMatch{{PolicyID: "p1", PolicyName: "first", Action: "allow"}},
			DecisionSource: "fresh",
			RetryContext: gate.RetryContext{GateCount: 1, PriorCompletionStatus: gate.PriorNone, FirstAttemptAt: now, LastAttemptAt: now,
				LastDecision: gate.Allow, IdempotencyKey: "wire:invoice-7721"},
			Lease: &gate.Lease{LeaseGranted: true, LeaseID: got.LeaseID, LeaseHolder: "agent-1", LeaseExpiresAt: now.Add(time.Minute), Fence: 1},
		}
		same(t, "the answer", got, want)
	})
}

// checks are refusals, each before all later ones.
var checks = map[string]struct {
	reason  string
	prepare func(b *bench, wf string)
	step    string
	ask     asking
	want    gate.Code
}{
	"terminal before key": {
		reason: "a workflow that has ended is reported before anything about the step",
		prepare: func(b *bench, wf string) {
			b.ask(wf, "a", asking{StepType: "tool_call", IdempotencyKey: "k"})
			b.end(wf, b.gate.Fail)
		},
		step: "a", ask: asking{StepType: "tool_call", IdempotencyKey: "other"}, want: gate.Terminal,
	},
	"key before input": {
		reason:  "the key is compared before the input",
		prepare: func(b *bench, wf string) { b.ask(wf, "a", asking{StepType: "tool_call", IdempotencyKey: "k"}) },
		step:    "a", ask: asking{StepType: "tool_call", StepInput: raw(map[string]any{"x": 1})}, want: gate.KeyMismatch,
	},
	"absent then set": {
		reason:  "a key that comes later is another one",
		prepare: func(b *bench, wf string) { b.ask(wf, "a", call()) },
		step:    "a", ask: asking{StepType: "tool_call", IdempotencyKey: "k"}, want: gate.KeyMismatch,
	},
	"input before cached block": {
		reason: "what is repeated must be what was asked, whatever was decided",
		prepare: func(b *bench, wf string) {
			b.rules.says = gate.Block
			b.ask(wf, "a", call())
		},
		step: "a", ask: asking{StepType: "tool_call", StepInput: raw(map[string]any{"x": 1})}, want: gate.InputMismatch,
	},
	"missing input": {
		reason: "an input that is left out is another one",
		prepare: func(b *bench, wf string) {
			b.ask(wf, "a", asking{StepType: "tool_call", StepInput: raw(map[string]any{})})
		},
		step: "a", ask: call(), want: gate.InputMismatch,
	},
	"hold before another's": {
		reason: "the step's own hold is reported before another step's",
		prepare: func(b *bench, wf string) {
			held(b)
			b.ask(wf, "a", call())
		},
		step: "a", ask: asking{StepType: "tool_call", RetryPolicy: "reevaluate"}, want: gate.ApprovalHold,
	},
	"another step waits": {
		reason: "nothing new begins while the last other step waits for a reviewer",
		prepare: func(b *bench, wf string) {
			held(b)
			b.ask(wf, "a", call())
		},
		step: "b", ask: call(), want: gate.ApprovalPending,
	},
}

func held(b *bench) { b.rules.says = gate.RequireApproval }

func TestOrderOfChecks(t *testing.T) {
	for name, tt := range checks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				tt.prepare(b, wf)
				before, committed := b.view(wf), b.store.commits.Load()
				e := b.refused(wf, tt.step, tt.ask)
				if e.Code != tt.want {
					t.Errorf("refused with %s, want %s: %s", e, tt.want, tt.reason)
				}
				same(t, "commits of a refusal", b.store.commits.Load()-committed, int64(0))
				same(t, "the workflow after a refusal", b.view(wf), before)
			})
		})
	}
}

func TestNoSuchWorkflow(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	foreign := gate.Caller{Tenant: "other", Name: "x"}
	for name, c := range map[string]gate.Caller{"of another tenant": foreign, "without a tenant": agent} {
		id := wf
		if c == agent {
			id = "wf_00000000"
		}
		_, err := b.gate.Gate(t.Context(), c, id, "a", call())
		if e := asError(t, err); e.Code != gate.NotFound || e.Message != "Workflow not found" {
			t.Errorf("gate in a workflow %s: %v", name, e)
		}
	}
}

func TestMismatchSaysBothSides(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "transfer", asking{StepType: "tool_call", IdempotencyKey: "wire:invoice-7721"})
	for name, refuse := range map[string]func() error{
		"gate": func() error { _, err := b.gate.Gate(t.Context(), agent, wf, "transfer", call()); return err },
		"complete": func() error {
			_, err := b.gate.CompleteStep(t.Context(), agent, wf, "transfer", gate.CompleteRequest{})
			return err
		},
	} {
		e := asError(t, refuse())
		same(t, name, *e, gate.Error{Code: gate.KeyMismatch, Field: "idempotency_key", WorkflowID: wf, StepID: "transfer",
			Message: "idempotency_key does not match the key recorded on gate", Expected: "wire:invoice-7721"})
	}
}

func TestRepeatIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		first := asking{StepType: "tool_call", StepInput: raw(map[string]any{"a": 1, "b": map[string]any{"c": 2}}), ToolContext: &gate.ToolContext{ToolName: "pay"}}
		b.ask(wf, "a", first)
		b.rules.says = gate.Block // which no caller receives
		time.Sleep(time.Second)
		first.StepInput = []byte(` {"b":{"c":2.0}, "a":1} `)
		before := b.store.commits.Load()
		got := b.ask(wf, "a", first)
		same(t, "commits of a repeat", b.store.commits.Load()-before, int64(1))
		same(t, "decision, cached, source", []any{got.Decision, got.Cached, got.DecisionSource}, []any{gate.Allow, true, "cached"})
		same(t, "times the rules were asked", len(b.rules.asked), 1)
		now := time.Now()
		same(t, "retry context", got.RetryContext, gate.RetryContext{GateCount: 2, PriorCompletionStatus: gate.PriorNotCompleted,
			FirstAttemptAt: now.Add(-time.Second), LastAttemptAt: now, LastDecision: gate.Allow})
	})
}

func TestReevaluate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		b.ask(wf, "a", call())
		b.rules.says = gate.Block
		again := asking{StepType: "tool_call", RetryPolicy: "reevaluate", StepInput: raw(map[string]any{"n": 2})}
		got := b.ask(wf, "a", again)
		same(t, "decision, source, last", []any{got.Decision, got.DecisionSource, got.RetryContext.LastDecision}, []any{gate.Block, "fresh", gate.Allow})
		if got.Lease != nil {
			t.Errorf("a blocked step has a lease: %+v", got.Lease)
		}
		f := b.rules.asked[1]
		same(t, "what the rules were asked", []any{f.GateCount, f.LastDecision, f.PriorCompletionStatus, f.RetryPolicy, f.Input["n"]},
			[]any{2, gate.Allow, gate.PriorNotCompleted, "reevaluate", 2.0})
		again.RetryPolicy = ""
		if got = b.ask(wf, "a", again); !got.Cached || got.Decision != gate.Block {
			t.Errorf("what was recorded anew is not what is repeated: %+v", got)
		}
	})
}

func TestPriorOutput(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, output string
		include        bool
		want           string
	}{
		"on request":     {"an object is given when asked for", `{"id": 7}`, true, `{"id":7}`},
		"not asked for":  {"a caller pays only for what it requested", `{"id":7}`, false, ""},
		"an array":       {"the contract knows objects and null", `[1]`, true, ""},
		"a scalar":       {"the contract knows objects and null", `7`, true, ""},
		"nothing":        {"there is none", ``, true, ""},
		"angle brackets": {"what comes back is what went in", `{"html":"<b>&"}`, true, `{"html":"<b>&"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				b.ask(wf, "a", call())
				time.Sleep(time.Second)
				b.complete(wf, "a", gate.CompleteRequest{Output: []byte(tt.output)})
				done := time.Now()
				time.Sleep(time.Hour)
				r := call()
				r.IncludePriorOutput = tt.include
				got := b.ask(wf, "a", r)
				same(t, tt.reason, string(got.RetryContext.PriorOutput), tt.want)
				got.RetryContext.PriorOutput = nil
				same(t, "retry context", got.RetryContext, gate.RetryContext{GateCount: 2, CompletionCount: 1, PriorCompletionStatus: gate.PriorCompleted,
					PriorOutputAvailable: true, PriorCompletionAt: &done, FirstAttemptAt: done.Add(-time.Second), LastAttemptAt: time.Now(), LastDecision: gate.Allow})
				if got.Lease == nil || got.LeaseGranted {
					t.Errorf("a completed step was lent: %+v", got.Lease)
				}
			})
		})
	}
}

func TestRulesWithoutAnAnswer(t *testing.T) {
	for name, change := range map[string]func(*rules){
		"an error": func(r *rules) { r.fails = errBoom },
		"one rule": func(r *rules) {
			r.fails = fmt.Errorf("in the file: %w", &gate.UnansweredError{Rule: "dear", Err: errBoom})
		},
		"no decision":   func(r *rules) { r.says = "" },
		"another word":  func(r *rules) { r.says = "perhaps" },
		"a status word": func(r *rules) { r.says = "approved" },
	} {
		b := newBench(t, nil)
		wf := b.begin()
		change(b.rules)
		before := b.store.commits.Load()
		if e := b.refused(wf, "a", call()); e.Code != gate.Internal {
			t.Errorf("%s: %v, want %s", name, e, gate.Internal)
		} else if blamed := strings.HasSuffix(e.Message, "nothing was recorded: rule dear: "+errBoom.Error()); blamed != (name == "one rule") {
			t.Errorf("%s: message %q", name, e.Message)
		}
		same(t, name+": commits", b.store.commits.Load(), before)
	}
}

func TestOneGateAmongManySteps(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	for _, id := range []string{"a", "b", "c"} {
		b.ask(wf, id, call())
	}
	v := b.view(wf)
	for i, s := range v.Steps {
		same(t, "index of "+s.StepID, s.StepIndex, i)
	}
	same(t, "current step", v.CurrentStepIndex, 2)
	before := b.store.commits.Load()
	b.rules.says = gate.RequireApproval
	b.ask(wf, "d", call())
	same(t, "commits of a gate that holds", b.store.commits.Load()-before, int64(1))
	if e := b.refused(wf, "b", asking{StepType: "tool_call", RetryPolicy: "reevaluate"}); e.Code != gate.ApprovalPending {
		t.Errorf("reevaluating beside a hold: %v", e)
	}
	if got := b.ask(wf, "b", call()); got.Decision != gate.Allow {
		t.Errorf("a cached decision beside a hold is %s", got.Decision)
	}
}

func TestRecordedGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		for i := range 25 {
			b.ask(wf, "a", asking{StepType: "tool_call", RetryPolicy: "reevaluate", StepInput: raw(map[string]any{"n": i / 2})})
		}
		all, err := b.gate.Recorded(t.Context(), tenant, 100)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "how many are kept", len(all), 20)
		for i, r := range all {
			same(t, "count, input, ruled", []any{r.Facts.GateCount, r.Facts.Input["n"], r.Ruled}, []any{i + 6, float64((i + 5) / 2), gate.Allow})
		}
		some, err := b.gate.Recorded(t.Context(), "other", 100)
		if err != nil || len(some) != 0 {
			t.Errorf("another tenant sees %d gates, %v", len(some), err)
		}
	})
}

// permissive is a long file of rules that all match, and allow.
type permissive int

func (n permissive) Decide(context.Context, gate.Facts) (gate.Ruling, error) {
	r := gate.Ruling{Decision: gate.Allow, Reason: "as always"}
	for i := range int(n) {
		r.Matched = append(r.Matched, gate.PolicyMatch{PolicyID: fmt.Sprint(i), Action: string(gate.Allow)})
	}
	return r, nil
}

// Of very many matches, the deciding ones are kept.
func TestWhatHeldAStepIsKept(t *testing.T) {
	b := newBench(t, func(o *gate.Options) {
		o.Rules, o.Risks = permissive(100), []policies.RiskRule{{Name: "money"}}
	})
	got := b.ask(b.begin(), "a", call())
	same(t, "the first that is kept", got.PoliciesMatched[0].PolicyID, "risk:money")
	same(t, "the second", got.PoliciesMatched[1].PolicyID, "0")
	same(t, "how many are", len(got.PoliciesMatched), 64)
}
