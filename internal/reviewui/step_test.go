package reviewui

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

const (
	blockTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	laterTrace = "0af7651916cd43dd8448eb211c80319c"
)

// blocking are rules that block everything.
type blocking struct{}

func (blocking) Decide(context.Context, gate.Facts) (gate.Ruling, error) {
	m := []gate.PolicyMatch{{PolicyID: "no-refunds-at-night", PolicyName: "no refunds", Action: "block"}}
	return gate.Ruling{Decision: gate.Block, Reason: "no reviewer is there <b>now</b>", Evaluated: m, Matched: m}, nil
}

// blockedStep is a review UI with a step that the gate blocked, requested twice.
func blockedStep(t *testing.T) (h http.Handler, path string) {
	t.Helper()
	book := ledger.NewMemory()
	g := gate.New(book, &gate.Options{Rules: blocking{}})
	bot := gate.Caller{Tenant: "acme", Name: agent.name, Role: engine.RoleAgent}
	f, err := g.Create(t.Context(), bot, gate.CreateRequest{WorkflowName: "refund"})
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range []string{blockTrace, laterTrace} {
		ctx := engine.WithTraceparent(t.Context(), "00-"+trace+"-00f067aa0ba902b7-01")
		step, err := g.Gate(ctx, bot, f.WorkflowID, "pay/1", gate.GateRequest{StepType: "tool_call", StepInput: json.RawMessage(`{"amount":1}`)})
		if err != nil || step.Decision != gate.Block {
			t.Fatalf("%+v, %v; want it blocked", step, err)
		}
	}
	o := service.New(service.Parts{Ledger: book, Registry: new(connectors.Registry), Steps: g})
	return New(o, &Options{Who: byHeader{}, FormToken: formToken}), stepPath(f.WorkflowID, "pay/1")
}

// A step that was blocked never had a write: its page has the reason.
func TestABlockedStepSaysWhoAskedAndWhichRule(t *testing.T) {
	h, path := blockedStep(t)
	for _, who := range []person{operator, reviewer, auditor} {
		a := who.get(t, h, path)
		if a.Status != http.StatusOK {
			t.Fatalf("status %d: %s", a.Status, a.text())
		}
		checkPage(t, a)
		from := 0
		for _, want := range []string{"blocked", "The gate answered block", "No reviewer is there <b>now</b>", "Asked for: tool pay/1, risk class auto", "Known: it was asked for the first time", "asked by bot-7", "rule no-refunds-at-night", "trace " + blockTrace, "The gate answered block again, without asking the rules", "trace " + laterTrace, "does not wait for a decision"} {
			i := strings.Index(a.text()[from:], want)
			if i < 0 {
				t.Fatalf("the page does not say %q behind what comes before it: %s", want, a.text())
			}
			from += i + len(want)
		}
	}
	for name, tt := range map[string]struct {
		who    person
		path   string
		status int
		reason string
	}{
		"agent":      {agent, path, http.StatusForbidden, "an agent does not see how it is ruled"},
		"anonymous":  {person{}, path, http.StatusUnauthorized, "an unknown caller sees nothing"},
		"outsider":   {outsider, path, http.StatusNotFound, "it is another tenant's"},
		"other step": {operator, path + "x", http.StatusNotFound, "there is no such step"},
		"no flow":    {operator, stepPath("wf_none", "pay/1"), http.StatusNotFound, "there is no such workflow"},
	} {
		t.Run(name, func(t *testing.T) {
			a := tt.who.get(t, h, tt.path)
			if a.Status != tt.status || strings.Contains(a.Body, "no-refunds") || strings.Contains(a.Body, blockTrace) {
				t.Errorf("status %d, want %d: %s: %s", a.Status, tt.status, tt.reason, a.text())
			}
			checkPage(t, a)
		})
	}
}

// Reviewers' decisions follow the gate's, and nothing can be decided any more.
func TestADecidedStepSaysWhoDecided(t *testing.T) {
	s := newShop(t)
	flow := s.step(t)
	path := stepPath(flow, "pay/1")
	form := reviewer.get(t, s, path).form(t, path+"/decision")
	form.Set("choice", "approve")
	form.Set("reason", why)
	if a := reviewer.send(t, s, http.MethodPost, path+"/decision", form); a.Status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", a.Status, a.text())
	}
	a := auditor.get(t, s, path)
	checkPage(t, a)
	asked, decided := strings.Index(a.text(), "The gate answered require_approval"), strings.Index(a.text(), "It was approved"+report.Sentence(why)+"decided by rita")
	if asked < 0 || decided < asked || !strings.Contains(a.text(), "asked by bot-7") {
		t.Errorf("the page does not show what was decided, in order: %s", a.text())
	}
	if a := reviewer.send(t, s, http.MethodPost, path+"/decision", form); a.Status != http.StatusNotFound {
		t.Errorf("it is decided twice: status %d", a.Status)
	}
}

// A step that does not fit into the inbox is still shown as waiting.
func TestAStepBeyondTheInboxIsShownAsWaiting(t *testing.T) {
	f := &fake{trace: gate.StepTrace{WorkflowID: "wf", StepID: "pay", Decision: gate.RequireApproval, Waits: true}}
	a := reviewer.get(t, f.newApp(nil), stepPath("wf", "pay"))
	checkPage(t, a)
	if a.Status != http.StatusOK || !strings.Contains(a.text(), "It waits for a reviewer") || strings.Contains(a.text(), "does not wait for a decision") {
		t.Errorf("status %d: %s", a.Status, a.text())
	}
}

// A blocked step is found by its workflow, without its address, and only by those whom it
// concerns.
func TestSearchShowsABlockedStepByItsWorkflow(t *testing.T) {
	h, path := blockedStep(t)
	flow := strings.Split(path, "/")[2]
	for name, tt := range map[string]struct {
		who    person
		query  string
		status int
		found  bool
		reason string
	}{
		"as a workflow": {auditor, "?by=workflow&q=" + flow, http.StatusOK, true, "it is one"},
		"as any name":   {reviewer, "?q=" + flow, http.StatusOK, true, "the kind of name need not be known"},
		"passed over":   {reviewer, "?by=workflow&q=" + flow + "&from=1", http.StatusOK, false, "there is but one"},
		"no number":     {reviewer, "?by=workflow&q=" + flow + "&from=-1", http.StatusOK, true, "a page that there is not is the first"},
		"of a state":    {reviewer, "?by=workflow&q=" + flow + "&state=review", http.StatusOK, false, "a step has no state of a write"},
		"as a key":      {reviewer, "?by=operation&q=" + flow, http.StatusOK, false, "it is no key"},
		"outsider":      {outsider, "?by=workflow&q=" + flow, http.StatusOK, false, "it is another tenant's"},
		"agent":         {agent, "?by=workflow&q=" + flow, http.StatusForbidden, false, "an agent does not see how it is ruled"},
	} {
		t.Run(name, func(t *testing.T) {
			a := tt.who.get(t, h, "/search"+tt.query)
			checkPage(t, a)
			if found := strings.Contains(a.Body, path) && strings.Contains(a.text(), "blocked") && strings.Contains(a.text(), "asked by bot-7"); a.Status != tt.status || found != tt.found {
				t.Errorf("%s: status %d, found %t, want %d, %t: %s", tt.reason, a.Status, found, tt.status, tt.found, a.text())
			}
		})
	}
}

// Steps of a workflow come a page at a time.
func TestStepsOfAWorkflowGoOn(t *testing.T) {
	f := &fake{steps: gate.StepList{WorkflowID: "wf", Total: 70, Steps: make([]gate.StepTrace, maxFound)}}
	a := reviewer.get(t, f.newApp(nil), "/search?by=workflow&q=wf")
	checkPage(t, a)
	if !strings.Contains(a.Body, "/search?by=workflow&amp;from=50&amp;q=wf") {
		t.Errorf("no link to the next page: %s", a.Body)
	}
}
