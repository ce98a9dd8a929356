package gate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
)

// hush removes every reason from a trace.
type hush struct{}

func (hush) Reveals(string, string) bool { return false }
func (hush) Clean(_ string, v any, _ ...intent.WriteIntent) {
	if t, ok := v.(*gate.StepTrace); ok {
		for i := range t.Decisions {
			t.Decisions[i].Reason = "hushed"
		}
	}
}

func TestTheTraceOfAStep(t *testing.T) {
	b := newBench(t, func(o *gate.Options) { o.Redaction = hush{} })
	b.rules.says = gate.Block
	asking := engine.WithTraceparent(t.Context(), agentsTrace)
	made, err := b.gate.Create(asking, agent, gate.CreateRequest{WorkflowName: "payout"})
	if err != nil {
		t.Fatal(err)
	}
	const gates = 22 // more than are kept
	for range gates {
		if _, err := b.gate.Gate(asking, agent, made.WorkflowID, "pay", call()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.gate.Trace(t.Context(), alice, made.WorkflowID, "pay")
	if err != nil || got.Decision != gate.Block || got.Gates != gates || len(got.Decisions) != 20 || got.WorkflowName != "payout" {
		t.Fatalf("%+v, %v", got, err)
	}
	want := gate.StepDecision{By: agent.Name, Decision: gate.Block, Reason: "hushed", Trace: agentsTrace,
		Asked: gate.StepAsked{Tool: "pay", RetryPolicy: "idempotent", Risk: "auto"},
		Known: gate.StepKnown{Gates: 3, Prior: gate.PriorNotCompleted, Last: gate.Block}}
	if diff := cmp.Diff(want, got.Decisions[0], cmpopts.IgnoreFields(gate.StepDecision{}, "At", "Rules", "Asked.Digest", "Known.Since")); diff != "" || got.Decisions[0].At.IsZero() || got.Decisions[0].Asked.Digest == "" {
		t.Errorf("at %v (-want +got):\n%s", got.Decisions[0].At, diff)
	}
	if _, omitted := got.Entries(); omitted != 2 {
		t.Errorf("%d answers are reported as omitted, want 2", omitted)
	}
	foreign := alice
	foreign.Tenant = "other"
	for name, ask := range map[string]func() error{
		"another tenant": func() error { _, err := b.gate.Trace(t.Context(), foreign, made.WorkflowID, "pay"); return err },
		"no such step":   func() error { _, err := b.gate.Trace(t.Context(), alice, made.WorkflowID, "none"); return err },
		"its steps":      func() error { _, err := b.gate.Steps(t.Context(), foreign, made.WorkflowID, 0, 0); return err },
		"no such flow":   func() error { _, err := b.gate.Steps(t.Context(), alice, "wf_none", 0, 0); return err },
	} {
		var refused *gate.Error
		if err := ask(); !errors.As(err, &refused) || refused.Code != gate.NotFound {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
}

// story is a step with the decisions about it, as in its trace.
type story struct {
	reason string
	do     func(b *bench, wf string) // to the step "pay"
	status string
	what   []string // of each entry
	known  []string // a piece of each, "" for none
	by     []gate.Describer
}

func under(key string) asking {
	r := call()
	r.IdempotencyKey = key
	return r
}

var stories = map[string]story{
	"allowed twice": {"the second asks no rule, and finds it lent", func(b *bench, wf string) { b.ask(wf, "pay", call()); b.ask(wf, "pay", call()) }, "allowed",
		[]string{"The gate answered allow, and granted the lease to the caller", "The gate answered allow again, without asking the rules, and did not lend the step"},
		[]string{"it was asked for the first time", "it was asked for 2 times by then, first 0s before, was not reported as completed, had been answered allow"}, []gate.Describer{gate.TheGate, gate.TheGate}},
	"completed": {"a replay of what is done", func(b *bench, wf string) {
		b.ask(wf, "pay", call())
		b.complete(wf, "pay", gate.CompleteRequest{})
		time.Sleep(time.Minute)
		b.ask(wf, "pay", call())
	}, "completed", []string{"The gate answered allow, and granted the lease to the caller", "The gate answered allow again, without asking the rules, and did not lend the step"},
		[]string{"first time", "first 1m0s before, was reported as completed"}, []gate.Describer{gate.TheGate, gate.TheGate}},
	"held and approved": {"a reviewer decided between two answers", func(b *bench, wf string) {
		b.rules.says = gate.RequireApproval
		b.ask(wf, "pay", call())
		time.Sleep(time.Minute)
		_, _ = b.gate.Approve(b.t.Context(), alice, wf, "pay", gate.Comment{Comment: "checked"})
		time.Sleep(time.Minute)
		b.ask(wf, "pay", call())
	}, "allowed", []string{"The gate answered require_approval", "It was approved", "The gate answered allow again, without asking the rules, and granted the lease to the caller"},
		[]string{"first time", "", "had been answered require_approval"}, []gate.Describer{gate.TheGate, gate.AReviewer, gate.TheGate}},
	"too late": {"the clock decides as well", func(b *bench, wf string) {
		b.rules.says = gate.RequireApproval
		b.ask(wf, "pay", call())
		time.Sleep(48 * time.Hour)
		b.ask(wf, "pay", call())
	}, "blocked", []string{"The gate answered require_approval", "Its time was over", "The gate answered block again, without asking the rules"},
		[]string{"first time", "", "first 48h0m0s before"}, []gate.Describer{gate.TheGate, gate.TheClock, gate.TheGate}},
	"blocked by another": {"the rules would have allowed it", func(b *bench, wf string) {
		other := b.begin()
		b.ask(other, "pay", under("wire:1"))
		b.ask(wf, "pay", under("wire:1"))
	}, "blocked", []string{"The gate answered block"}, []string{"it was asked for the first time; the rules alone gave allow"}, []gate.Describer{gate.TheGate}},
	"seen at the destination": {"what a read found was known", func(b *bench, wf string) {
		r := call()
		r.Intent = []byte(`{"destination":"orders","kind":"order","key":{"order_id":"A-1"},"write":"create","expect":{"amount_cents":1999}}`)
		b.ask(wf, "pay", r)
		time.Sleep(time.Hour)
		b.dest.set(engine.ReadResult{Effect: engine.EffectPresent, Reason: "it is there"})
		b.ask(wf, "pay", r)
	}, "allowed", []string{"The gate answered allow, and granted the lease to the caller", "The gate answered allow again, without asking the rules, and did not lend the step"},
		[]string{"first time", "at the destination its effect was present, verdict "}, []gate.Describer{gate.TheGate, gate.TheGate}},
}

// TestTimelineEntries: the time, the request, the answer, whether it is an earlier one, whether the
// step was leased, and the known facts.
func TestTimelineEntries(t *testing.T) {
	for name, tt := range stories {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				tt.do(b, wf)
				got, err := b.gate.Trace(t.Context(), alice, wf, "pay")
				if err != nil || got.Status() != tt.status {
					t.Fatalf("%s: it is %q, %v; want %q", tt.reason, got.Status(), err, tt.status)
				}
				entries, _ := got.Entries()
				var what []string
				var by []gate.Describer
				for i, one := range entries {
					what, by = append(what, one.What), append(by, one.By)
					if i < len(tt.known) && (!strings.Contains(one.Known, tt.known[i]) || tt.known[i] == "" && one.Known != "") {
						t.Errorf("%s: known at %d was %q, want %q in it", tt.reason, i, one.Known, tt.known[i])
					}
				}
				if diff := cmp.Diff(tt.what, what); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
				}
				if diff := cmp.Diff(tt.by, by); diff != "" {
					t.Errorf("%s: who (-want +got):\n%s", tt.reason, diff)
				}
			})
		})
	}
}

// TestABlockedStepIsListedUnderItsWorkflow: a page at a time, in the order of the steps' arrival,
// with the workflow that blocked them.
func TestABlockedStepIsListedUnderItsWorkflow(t *testing.T) {
	b := newBench(t, nil)
	first, wf := b.begin(), b.begin()
	b.ask(first, "pay", under("wire:1"))
	b.complete(first, "pay", gate.CompleteRequest{IdempotencyKey: "wire:1"})
	const steps = 45 // more than are read at once
	for i := range steps {
		b.ask(wf, fmt.Sprintf("step-%02d", i), call())
	}
	r := under("wire:1")
	r.ToolContext = &gate.ToolContext{ToolName: "pay"}
	b.ask(wf, "blocked", r)
	var got []string
	for offset, pages := 0, 0; ; pages++ {
		l, err := b.gate.Steps(t.Context(), alice, wf, 40, offset)
		if err != nil || l.Total != steps+1 || l.Status != gate.InProgress || pages > 1 {
			t.Fatalf("page %d: %d of %d, %s, %v", pages, len(l.Steps), l.Total, l.Status, err)
		}
		for _, s := range l.Steps {
			got = append(got, s.StepID+" "+s.Status())
		}
		if offset = l.More(); offset == 0 {
			last := l.Steps[len(l.Steps)-1]
			if p := last.Prior; p == nil || p.PriorWorkflowID != first || p.PriorWriteID != string(b.operation(first, "pay").ID) || p.PriorOutcome != nil {
				t.Errorf("in its way: %+v", last.Prior)
			}
			break
		}
	}
	if len(got) != steps+1 || got[0] != "step-00 allowed" || got[44] != "step-44 allowed" || got[45] != "blocked blocked" {
		t.Errorf("%q", got)
	}
	if l, err := b.gate.Steps(t.Context(), alice, wf, 0, 500); err != nil || len(l.Steps) != 0 || l.More() != 0 {
		t.Errorf("behind the end: %+v, %v", l, err)
	}
	if _, err := b.gate.Steps(t.Context(), alice, wf, -1, 0); err == nil {
		t.Error("a limit below zero was taken")
	}
}

// TestUndoneSteps: steps that asked for an operation and are not completed are found without
// their IDs, and no others.
func TestUndoneSteps(t *testing.T) {
	b := newBench(t, nil)
	holder, blocked, done, other := b.begin(), b.begin(), b.begin(), b.begin()
	wire := func(key, tool string) asking {
		r := under(key)
		r.ToolContext = &gate.ToolContext{ToolName: tool}
		return r
	}
	b.ask(holder, "pay", wire("wire:1", "bank"))
	b.ask(blocked, "pay", wire("wire:1", "bank"))
	b.ask(other, "other tool", wire("wire:1", "post"))
	b.ask(other, "other key", wire("wire:2", "bank"))
	b.ask(other, "no key", wire("", "bank"))
	b.ask(done, "pay", wire("wire:3", "bank"))
	b.complete(done, "pay", gate.CompleteRequest{IdempotencyKey: "wire:3"})
	foreign := alice
	foreign.Tenant = "other"
	for name, tt := range map[string]struct {
		reason string
		who    gate.Caller
		key    string
		want   []string
	}{
		"begun and blocked": {"the newest first", alice, "wire:1", []string{blocked + "/pay blocked", holder + "/pay allowed"}},
		"completed":         {"its write says where it is", alice, "wire:3", nil},
		"no one's":          {"no such key", alice, "wire:4", nil},
		"no key":            {"steps without one have no operation", alice, "", nil},
		"another tenant":    {"its keys are its own", foreign, "wire:1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, more, err := b.gate.Undone(t.Context(), tt.who, "bank", tt.key)
			var got []string
			for _, s := range found {
				got = append(got, s.WorkflowID+"/"+s.StepID+" "+s.Status())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || more || err != nil {
				t.Errorf("%s: %t, %v (-want +got):\n%s", tt.reason, more, err, diff)
			}
		})
	}
}

// TestUndoneIsBounded: steps that were not searched are reported.
func TestUndoneIsBounded(t *testing.T) {
	b := newBench(t, nil)
	find := func(reason, key string, want int, wantMore bool) {
		t.Helper()
		found, more, err := b.gate.Undone(t.Context(), alice, "bank", key)
		if err != nil || len(found) != want || more != wantMore {
			t.Errorf("%s: %d found, more %t, %v; want %d, %t", reason, len(found), more, err, want, wantMore)
		}
	}
	asks := func(wf string, n int, key string) {
		r := under(key)
		r.ToolContext = &gate.ToolContext{ToolName: "bank"}
		for i := range n {
			b.ask(wf, fmt.Sprintf("%s-%d", key, i), r)
		}
	}
	old, wf := b.begin(), b.begin()
	asks(old, 1, "wire:1")
	asks(wf, 101, "wire:2")
	find("the oldest of few", "wire:1", 1, false)
	find("more than are returned", "wire:2", 100, true)
	asks(wf, 898, "wire:3")
	find("the last that is read", "wire:1", 1, false)
	asks(b.begin(), 1, "wire:4")
	find("behind those that are read", "wire:1", 0, true)
}
