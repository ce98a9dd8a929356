package service

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/redact"
)

// TestStepsAreShownWithoutTokens: a sealed value is shown as its digest in every sentence
// about a step, and the result is a copy of its own.
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
	given := gate.StepTrace{Reason: said, Reports: []gate.Report{{Reason: said}},
		Decisions: []gate.StepDecision{{Reason: said, Known: gate.StepKnown{Verification: &gate.StepSeen{Reason: said}}}}}
	shown, err := json.Marshal(ShownSteps(gate.StepList{Reason: said, Steps: []gate.StepTrace{given}}))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(shown), redact.ShownPrefix); n != 5 || strings.Contains(string(shown), redact.Prefix) {
		t.Errorf("%d of 5 shown as digests: %s", n, shown)
	}
	if given.Decisions[0].Reason != said || given.Decisions[0].Known.Verification.Reason != said || given.Reports[0].Reason != said {
		t.Errorf("what was given was changed: %+v", given)
	}
}
