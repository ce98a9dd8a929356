package command

import (
	"testing"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
)

// TestPolicyTestOnRecordedSteps: a new file of rules is tried on what the gate
// decided by the old one.
func TestPolicyTestOnRecordedSteps(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	l, err := sqlite.Open(t.Context(), p.ledger, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(l, nil)
	who := gate.Caller{Tenant: "acme", Name: "bot"}
	made, err := g.Create(t.Context(), who, gate.CreateRequest{WorkflowName: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	cheap, dear := 1.0, 200.0
	for step, cost := range map[string]*float64{"cheap": &cheap, "dear": &dear} {
		for range 2 { // the second comes from the cache, and no rule is evaluated
			if _, err := g.Gate(t.Context(), who, made.WorkflowID, step, gate.GateRequest{StepType: "tool_call", CostUSD: cost}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := p.write("rules.yaml", goodRules)
	r := p.want(exitVerified, p.run("policy", "test", path))
	says(t, r, "~ "+made.WorkflowID+"/dear 1 allow require_approval dear", made.WorkflowID+"/cheap 1 allow allow",
		"2 steps: 1 as before or expected, 1 changed (~), 0 without an answer; 0 not as expected (!)")
	says(t, p.want(exitAttention, p.run("policy", "test", path, "--same")), "! "+made.WorkflowID+"/dear", "1 not as expected (!)")
	says(t, p.want(exitVerified, p.run("policy", "test", path, "--tenant", "other")), "No steps to try the rules on.")
}
