package command

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
)

// keyed is an order of another workflow under the key of one business operation.
func keyed(workflow, amount string) string {
	text := order("A-1", `,"idempotency_key":"order:1"`)
	return strings.NewReplacer(`"workflow":"wf-1"`, `"workflow":"`+workflow+`"`, "1999", amount).Replace(text)
}

func TestBlockedSaysByWhom(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	prior := id(t, p.submit(exitVerified, keyed("wf-1", "1999")))
	r := p.submit(exitRefused, keyed("wf-2", "1999"))
	says(t, r, "workflow wf-1", "step step-A-1", "tool create_order", "write "+prior, "state settled (verified)",
		"outcome The order at \"orders\" was read back and is as requested.", "readback operation release --id "+prior)
	failed := decode(t, p.submit(exitRefused, keyed("wf-2", "1999"), "--json"))["error"].(map[string]any)
	before := failed["prior"].(map[string]any)
	if failed["kind"] != "blocked" || before["workflow"] != "wf-1" || before["write"] != prior || before["differs"] != false ||
		before["outcome"].(map[string]any)["status"] != "verified" {
		t.Errorf("the answer in JSON is %v", failed)
	}
	other := p.submit(exitRefused, keyed("wf-2", "2000"))
	says(t, other, "It asks for something else under the same key")
	p.calls(1)
	if got := len(p.writes()); got != 1 {
		t.Errorf("%d writes in the ledger, want the one that was first", got)
	}
}

func TestWaitPrior(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	prior := id(t, p.submit(exitInProgress, keyed("wf-1", "1999"), "--enqueue"))
	r := p.submit(exitVerified, keyed("wf-2", "1999"), "--wait-prior")
	says(t, r, `The operation was begun before, by workflow "wf-1" (step "step-A-1"); nothing was recorded or sent now.`, "verified "+prior)
	answer := decode(t, p.submit(exitVerified, keyed("wf-3", "1999"), "--wait-prior", "--json"))
	if answer["id"] != prior || answer["prior"].(map[string]any)["workflow"] != "wf-1" {
		t.Errorf("the answer in JSON is %v", answer)
	}
	says(t, p.submit(exitRefused, keyed("wf-2", "2000"), "--wait-prior"), "It asks for something else")
	says(t, p.submit(exitVerified, order("A-2", ""), "--wait-prior"), "verified")
	p.want(exitUsage, p.runIn(keyed("wf-2", "1999"), "submit", "-f", "-", "--enqueue", "--wait-prior"))
	p.calls(2)
}

func TestOperationShowAndRelease(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	prior := id(t, p.submit(exitVerified, keyed("wf-1", "1999")))
	show := []string{"operation", "show", "--tool", "create_order", "--key", "order:1"}
	says(t, p.want(exitVerified, p.run(show...)), `Operation "order:1" of tool "create_order"`, prior+" settled (verified)", "workflow wf-1", "stops others yes, until")
	says(t, p.want(exitVerified, p.run(append(show, "--tenant", "other")...)), "No write has begun operation")
	says(t, p.want(exitVerified, p.run("operation", "show", "--tool", "another", "--key", "order:1")), "No write has begun operation")
	holders := decode(t, p.want(exitVerified, p.run(append(show, "--json")...)))["holders"].([]any)
	if len(holders) != 1 || holders[0].(map[string]any)["blocks"] != true {
		t.Errorf("holders %v", holders)
	}
	release := []string{"operation", "release", "--id", prior, "--by", "ann", "--reason", "the shop lost it"}
	says(t, p.want(exitVerified, p.run(release...)), `Operation "order:1" of tool "create_order" is released: write `+prior)
	p.want(exitVerified, p.run(release...))
	says(t, p.want(exitVerified, p.run(show...)), "No write has begun operation")
	says(t, p.want(exitVerified, p.run("show", prior)), "ann person its business operation was released", "the shop lost it")
	p.submit(exitVerified, strings.ReplaceAll(keyed("wf-2", "1999"), "A-1", "A-2"))
	p.calls(2)
}

// TestOperationOfAStep: a write that a step makes itself blocks a write of the same
// operation, whose outcome is the first one's.
func TestOperationOfAStep(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	l, err := sqlite.Open(t.Context(), p.ledger, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(l, nil)
	who := gate.Caller{Tenant: "acme", Name: "bot"}
	made, err := g.Create(t.Context(), who, gate.CreateRequest{WorkflowName: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Gate(t.Context(), who, made.WorkflowID, "order", gate.GateRequest{StepType: "tool_call", IdempotencyKey: "order:1",
		ToolContext: &gate.ToolContext{ToolName: "create_order"}}); err != nil {
		t.Fatal(err)
	}
	says(t, p.submit(exitRefused, keyed("wf-2", "1999")), "workflow "+made.WorkflowID, "step order", "state entrusted", "--wait-prior")
	says(t, p.submit(exitInProgress, keyed("wf-2", "1999"), "--wait-prior", "--wait", "0"), `by workflow "`+made.WorkflowID+`" (step "order")`)
	says(t, p.want(exitVerified, p.run("operation", "show", "--tool", "create_order", "--key", "order:1")),
		`create_order by step "order" of workflow "`+made.WorkflowID+`" itself`, "stops others yes, for as long as it is open")
	if _, err := g.CompleteStep(t.Context(), who, made.WorkflowID, "order", gate.CompleteRequest{IdempotencyKey: "order:1"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	says(t, p.submit(exitUnproven, keyed("wf-2", "1999"), "--wait-prior"), "reported")
	p.calls(0)
}

func TestBadOperations(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	prior := id(t, p.submit(exitVerified, order("A-1", "")))
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		"no word":       {"a script that forgot it must hear of it", nil, exitUsage, "want show or release"},
		"no tool":       {"one key means something else to another tool", []string{"show", "--key", "k"}, exitUsage, "--tool is missing"},
		"no key":        {"all operations are no operation", []string{"show", "--tool", "t"}, exitUsage, "--key is missing"},
		"no id":         {"which", []string{"release", "--by", "ann", "--reason", "r"}, exitUsage, "--id is missing"},
		"no name":       {"an operator answers for it", []string{"release", "--id", prior, "--reason", "r"}, exitUsage, "--by is missing"},
		"no reason":     {"and says why", []string{"release", "--id", prior, "--by", "ann", "--reason", " "}, exitUsage, "--reason is missing"},
		"unknown write": {"nothing is made up", []string{"release", "--id", "wr_0", "--by", "ann", "--reason", "r"}, exitRefused, "no such write"},
		"another's":     {"nothing crosses tenants", []string{"release", "--tenant", "other", "--id", prior, "--by", "ann", "--reason", "r"}, exitRefused, "no such write"},
		"no operation":  {"it blocks no workflow anyway", []string{"release", "--id", prior, "--by", "ann", "--reason", "r"}, exitRefused, "has no idempotency key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := p.run(append([]string{"operation"}, tt.args...)...)
			if r.code != tt.code {
				t.Fatalf("%s: exit code %d, want %d\n%s", tt.reason, r.code, tt.code, r)
			}
			says(t, r, tt.says)
		})
	}
}

// What waits for reviewers is denied: no message suggests another way to release it.
func TestOperationThatIsHeld(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	twoApprove(p, "deny")
	held := id(t, p.submit(exitReview, keyed("wf-1", "1999")))
	list := p.want(exitVerified, p.run("operation", "show", "--tool", "create_order", "--key", "order:1"))
	says(t, list, "readback review "+held+" approve|deny")
	other := p.submit(exitRefused, keyed("wf-2", "1999"))
	says(t, other, "It waits for people; when they deny it, it stops no other.")
	for name, r := range map[string]result{"show": list, "another workflow": other} {
		if strings.Contains(r.out+r.err, "operation release") {
			t.Errorf("%s: advised to release it\n%s", name, r)
		}
	}
	says(t, p.want(exitRefused, p.run("operation", "release", "--id", held, "--by", "ann", "--reason", "r")), "deny it, and it stops no other write")
	p.want(exitNotApplied, p.run("review", held, "deny", "--by", "ann", "--reason", "r"))
	p.submit(exitReview, keyed("wf-2", "1999"))
	p.calls(0)
}
