package office

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/workflow"
)

// TestStepsAreShownWithoutTokens: what is sealed is shown as its digest wherever a
// sentence about a step holds it, and what is shown is nobody else's copy.
func TestStepsAreShownWithoutTokens(t *testing.T) {
	v, err := redact.New([]redact.Key{{ID: "k", Secret: []byte("a key of 32 bytes for the tests!")}}, redact.Options{Patterns: []redact.Pattern{{Name: "x", Regexp: regexp.MustCompile("hot")}}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := v.Scope("acme", "about").Seal("hot")
	if err != nil {
		t.Fatal(err)
	}
	said := "it was " + token
	given := workflow.StepTrace{Reason: said, Heard: []workflow.Heard{{Reason: said}},
		Decisions: []workflow.StepDecision{{Reason: said, Known: workflow.StepKnown{Verification: &workflow.StepSeen{Reason: said}}}}}
	shown, err := json.Marshal(ShownSteps(workflow.StepList{Reason: said, Steps: []workflow.StepTrace{given}}))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(shown), redact.ShownPrefix); n != 5 || strings.Contains(string(shown), redact.Prefix) {
		t.Errorf("%d of 5 shown as digests: %s", n, shown)
	}
	if given.Decisions[0].Reason != said || given.Decisions[0].Known.Verification.Reason != said || given.Heard[0].Reason != said {
		t.Errorf("what was given was changed: %+v", given)
	}
}
