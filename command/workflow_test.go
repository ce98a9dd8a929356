package command

import (
	"context"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
)

const stepTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// night is a ledger in which an operation was begun by one workflow, and requested by
// another, which was blocked; a third was blocked by the rules.
type night struct {
	*place
	begun, blocked, ruled string
}

type byTool struct{}

// Decide blocks the step that has no key.
func (byTool) Decide(_ context.Context, f gate.Facts) (gate.Ruling, error) {
	if f.StepID != "late" {
		return gate.Ruling{Decision: gate.Allow, Reason: "nothing speaks against it"}, nil
	}
	m := []gate.PolicyMatch{{PolicyID: "no-orders-at-night", Action: "block"}}
	return gate.Ruling{Decision: gate.Block, Reason: "nobody is\x1b[31m there", Evaluated: m, Matched: m}, nil
}

func newNight(t *testing.T) night {
	t.Helper()
	n := night{place: newPlace(t, orders.Plain.Options())}
	l, err := sqlite.Open(t.Context(), n.ledger, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(l, &gate.Options{Rules: byTool{}})
	who := gate.Caller{Tenant: "acme", Name: "bot-7", Role: engine.RoleAgent}
	ctx := engine.WithTraceparent(t.Context(), "00-"+stepTrace+"-00f067aa0ba902b7-01")
	ask := func(name, step, key string) string {
		t.Helper()
		made, err := g.Create(ctx, who, gate.CreateRequest{WorkflowName: name})
		if err == nil {
			_, err = g.Gate(ctx, who, made.WorkflowID, step, gate.GateRequest{StepType: "tool_call", IdempotencyKey: key,
				ToolContext: &gate.ToolContext{ToolName: "create_order"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.WorkflowID
	}
	n.begun, n.blocked, n.ruled = ask("shop", "order", "order:1"), ask("shop again", "again", "order:1"), ask("late shop", "late", "")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWhyDidNothingHappen: a user with a tool and a key, or a workflow, and no address of
// a step, gets the gate's decision.
func TestWhyDidNothingHappen(t *testing.T) {
	n := newNight(t)
	prior := n.writes()[0].ID
	operation := []string{"operation", "show", "--tool", "create_order", "--key", "order:1"}
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		says   []string
		not    []string
	}{
		"by the operation": {"both steps, with what was decided", operation, exitVerified, []string{
			`ALLOWED step "order" of workflow ` + n.begun + ` ("shop")`, "The gate answered allow, and granted the lease to the caller", "write " + string(prior),
			`BLOCKED step "again" of workflow ` + n.blocked, `in its way write ` + string(prior) + ` of step "order" of workflow ` + n.begun + ", then entrusted",
			"The gate answered block.", "Asked by bot-7: tool create_order, risk class auto, retry policy idempotent, digest ", "Known: It was asked for the first time; the rules alone gave allow.", "In trace " + stepTrace,
		}, []string{"late"}},
		"another tool":           {"one key means something else to another tool", []string{"operation", "show", "--tool", "other", "--key", "order:1"}, exitVerified, []string{"No write has begun"}, []string{n.blocked}},
		"the operation, tenant":  {"nothing crosses tenants", append(operation, "--tenant", "other"), exitVerified, []string{"No write has begun"}, []string{n.blocked, "bot-7"}},
		"by the workflow":        {"a blocked step is found without its address", []string{"workflow", "show", n.blocked}, exitVerified, []string{n.blocked + ` "shop again", in progress, begun`, "trace " + stepTrace, "Steps 1 to 1 of 1", "again blocked 1", "bot-7"}, []string{n.begun + " "}},
		"with its write":         {"what was begun has one", []string{"workflow", "show", n.begun}, exitVerified, []string{"order allowed 1", string(prior)[:len("wr_")+8] + " entrusted"}, nil},
		"by rules":               {"the rule is named", []string{"workflow", "show", n.ruled, "late"}, exitVerified, []string{`BLOCKED step "late"`, `Why: Nobody is\x1b[31m there.`, "Rules: no-orders-at-night.", "asked for the first time.", `"retry_policy": "reevaluate"`}, []string{"\x1b"}},
		"from its write":         {"it leads to what was decided", []string{"show", string(prior)}, exitVerified, []string{"readback workflow show " + n.begun}, nil},
		"one that was blocked":   {"and what stood in its way", []string{"workflow", "show", n.blocked, "again"}, exitVerified, []string{`operation "order:1" of tool "create_order"`, "readback show " + string(prior)}, nil},
		"the workflow, tenant":   {"nothing crosses tenants", []string{"workflow", "show", n.blocked, "--tenant", "other"}, exitRefused, []string{"no such workflow"}, []string{"again"}},
		"the step, tenant":       {"nothing crosses tenants", []string{"workflow", "show", n.blocked, "again", "--tenant", "other"}, exitRefused, []string{"no such step"}, []string{"bot-7"}},
		"no such workflow":       {"nothing is made up", []string{"workflow", "show", "wf_none"}, exitRefused, []string{"no such workflow", "--tenant"}, nil},
		"no such step":           {"nothing is made up", []string{"workflow", "show", n.blocked, "none"}, exitRefused, []string{"no such step", "readback workflow show"}, nil},
		"behind the end":         {"no page is empty without a word", []string{"workflow", "show", n.blocked, "--offset", "3"}, exitVerified, []string{"It has 1 steps, and none behind --offset 3"}, nil},
		"too many":               {"an answer is bounded", []string{"workflow", "show", n.blocked, "--limit", "101"}, exitUsage, []string{"want 1 to 100"}, nil},
		"below zero":             {"no such place", []string{"workflow", "show", n.blocked, "--offset", "-1"}, exitUsage, []string{"--offset is -1"}, nil},
		"no word":                {"a script that forgot it must hear of it", []string{"workflow"}, exitUsage, []string{"want show"}, nil},
		"a name that is no name": {"what no step can be named is not found", []string{"workflow", "show", n.blocked, strings.Repeat("s", 300)}, exitRefused, []string{"no such step"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := n.want(tt.code, n.run(tt.args...))
			says(t, r, tt.says...)
			for _, piece := range tt.not {
				if strings.Contains(r.out, piece) {
					t.Errorf("%s: %q in\n%s", tt.reason, piece, r)
				}
			}
		})
	}
	n.calls(0)
}

// TestGateDecisionsInJSON: the same for machines.
func TestGateDecisionsInJSON(t *testing.T) {
	n := newNight(t)
	one := func(v any, keys ...any) any {
		t.Helper()
		for _, k := range keys {
			switch k := k.(type) {
			case string:
				v = v.(map[string]any)[k]
			case int:
				v = v.([]any)[k]
			}
		}
		return v
	}
	op := decode(t, n.want(exitVerified, n.run("operation", "show", "--tool", "create_order", "--key", "order:1", "--json")))
	flow := decode(t, n.want(exitVerified, n.run("workflow", "show", n.blocked, "--json")))
	step := decode(t, n.want(exitVerified, n.run("workflow", "show", n.blocked, "again", "--json")))
	if past := one(op, "past").([]any); len(past) != 0 {
		t.Errorf("the holder of the operation is shown as a former one: %v", past)
	}
	if got := len(one(op, "steps").([]any)); got != 2 || one(op, "steps", 0, "decisions", 0, "lease") != "granted" {
		t.Errorf("%d steps: %v", got, op["steps"])
	}
	for name, s := range map[string]any{"operation": one(op, "steps", 1), "workflow": one(flow, "gate", "steps", 0), "step": step} {
		if one(s, "step_id") != "again" || one(s, "decision") != "block" || one(s, "prior", "prior_workflow_id") != n.begun ||
			one(s, "decisions", 0, "ruled") != "allow" || one(s, "decisions", 0, "by") != "bot-7" || one(s, "decisions", 0, "known", "gate_count") != 1.0 ||
			!strings.Contains(one(s, "decisions", 0, "trace").(string), stepTrace) {
			t.Errorf("%s: %v", name, s)
		}
	}
}

// TestWorkflowOfWritesAlone: a workflow that never came to the gate has its writes, and
// what came to nothing is among those of its operation.
func TestWorkflowOfWritesAlone(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	twoApprove(p, "deny")
	held := id(t, p.submit(exitReview, keyed("wf-1", "1999")))
	says(t, p.want(exitVerified, p.run("workflow", "show", "wf-1")), "wf-1 was not begun at the gate", held[:11]+" held")
	p.want(exitNotApplied, p.run("review", held, "deny", "--by", "ann", "--reason", "r"))
	show := []string{"operation", "show", "--tool", "create_order", "--key", "order:1"}
	says(t, p.want(exitVerified, p.run(show...)), "No write has begun operation", "Writes of it that block no other:", held[:11]+" settled (denied)")
	past := decode(t, p.want(exitVerified, p.run(append(show, "--json")...)))["past"].([]any)
	if len(past) != 1 || past[0].(map[string]any)["id"] != held {
		t.Errorf("past %v", past)
	}
	if r := p.want(exitVerified, p.run(append(show, "--tenant", "other")...)); strings.Contains(r.out, held) {
		t.Errorf("another tenant's write is shown\n%s", r)
	}
}

// TestStepsThatCannotBeOpened: a user without the keys gets that reason, and everything
// else that can be read.
func TestStepsThatCannotBeOpened(t *testing.T) {
	n := newNight(t)
	n.configure(n.url, "redaction: {keys: [{id: a, key_env: SEAL}]}\n")
	operation := []string{"operation", "show", "--tool", "create_order", "--key", "order:1"}
	r := n.run(operation...)
	if r.code == exitVerified {
		t.Errorf("as if all were shown\n%s", r)
	}
	says(t, r, "stops others yes", "what the gate decided cannot be read", "SEAL")
	if answer := decode(t, n.run(append(operation, "--json")...)); answer["error"] == nil || len(answer["holders"].([]any)) != 1 {
		t.Errorf("%v", answer)
	}
	if r := n.run("workflow", "show", n.blocked); r.code != exitConfig {
		t.Errorf("want %d: %s", exitConfig, r)
	}
	n.variable = map[string]string{"SEAL": strings.Repeat("0123456789abcdef", 4)}
	says(t, n.want(exitVerified, n.run(operation...)), "stops others yes", `BLOCKED step "again"`)
	says(t, n.want(exitVerified, n.run("workflow", "show", n.blocked)), "again blocked")
}
