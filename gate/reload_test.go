package gate_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/policies"
)

// An auditor reads, and changes nothing, and neither does an invalid role.
func TestReadOnlyCallers(t *testing.T) {
	for name, role := range map[string]engine.Role{"an auditor": engine.RoleAuditor, "a role that is none": "Agent"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			wf := b.begun()
			who := gate.Caller{Tenant: tenant, Name: "eve", Role: role}
			ctx := t.Context()
			for what, err := range map[string]error{
				"create":   only(b.gate.Create(ctx, who, gate.CreateRequest{WorkflowName: "x"})),
				"gate":     only(b.gate.Gate(ctx, who, wf, "s1", gate.GateRequest{StepType: "tool_call"})),
				"complete": only(b.gate.CompleteStep(ctx, who, wf, "s1", gate.CompleteRequest{})),
				"approve":  only(b.gate.Approve(ctx, who, wf, "s1", gate.Comment{})),
				"reject":   only(b.gate.Reject(ctx, who, wf, "s1", gate.Comment{})),
				"end":      only(b.gate.Complete(ctx, who, wf, "")),
				"fail":     only(b.gate.Fail(ctx, who, wf, "")),
				"abort":    only(b.gate.Abort(ctx, who, wf, "")),
				"resume":   only(b.gate.Resume(ctx, who, wf, "")),
			} {
				var refused *gate.Error
				if !errors.As(err, &refused) || refused.Code != gate.Forbidden {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := b.gate.Get(ctx, who, wf); err != nil {
				t.Errorf("reading: %v", err)
			}
			if _, err := b.gate.Pending(ctx, who, 10); err != nil {
				t.Errorf("reading: %v", err)
			}
		})
	}
}

func only[T any](_ T, err error) error { return err }

func (b *bench) begun() string {
	b.t.Helper()
	created, err := b.gate.Create(b.t.Context(), agent, gate.CreateRequest{WorkflowName: "pay"})
	if err != nil {
		b.t.Fatal(err)
	}
	return created.WorkflowID
}

// Replaced rules apply to the next step, and loosen no earlier decision.
func TestRulesAreReplaced(t *testing.T) {
	b := newBench(t, nil)
	flows := map[string]string{}
	says := func(step string) gate.Decision {
		t.Helper()
		if flows[step] == "" {
			flows[step] = b.begun()
		}
		got, err := b.gate.Gate(t.Context(), agent, flows[step], step, gate.GateRequest{StepType: "tool_call"})
		if err != nil {
			t.Fatal(err)
		}
		return got.Decision
	}
	b.gate.SetRules(&rules{says: gate.RequireApproval})
	if got := says("first"); got != gate.RequireApproval {
		t.Errorf("the first step: %s", got)
	}
	b.gate.SetRules(&rules{says: gate.Block})
	if got := says("second"); got != gate.Block {
		t.Errorf("the second step: %s", got)
	}
	b.gate.SetRules(nil)
	if got := says("third"); got != gate.Allow {
		t.Errorf("the third step: %s", got)
	}
	if got := says("first"); got != gate.RequireApproval {
		t.Errorf("the step that is held: %s", got)
	}
	b.gate.SetRisks([]policies.RiskRule{{Name: "all"}})
	if got := says("fourth"); got != gate.RequireApproval {
		t.Errorf("the fourth step: %s", got)
	}
	b.gate.SetRisks(nil)
	if got := says("fourth"); got != gate.RequireApproval {
		t.Errorf("the step that a risk rule held: %s", got)
	}
}

func TestRulesAreReplacedWhileStepsAreGated(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begun()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				b.gate.SetRules(&rules{says: gate.Allow})
				b.gate.SetRisks([]policies.RiskRule{{Name: "log", Class: "log"}})
				if _, err := b.gate.Gate(t.Context(), agent, wf, string(rune('a'+i)), gate.GateRequest{StepType: "tool_call"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
