package gate

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// TestStepsAreShownWithoutTokens: a sealed value is shown as its digest in every sentence
// about a step, and the stored step stays as it is.
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
	given := step{Decision: Block, Reason: said, Reports: []Report{{Reason: said}},
		Gated: []gated{{Reason: said, Facts: Facts{Verification: &Verification{Reason: said}}}}}
	o := new(Options)
	l := o.list("acme", ledger.Document{}, flow{Reason: said})
	l.Steps = append(l.Steps, o.trace("acme", "wf", flow{}, given, time.Time{}))
	shown, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(shown), redact.ShownPrefix); n != 5 || strings.Contains(string(shown), redact.Prefix) {
		t.Errorf("%d of 5 shown as digests: %s", n, shown)
	}
	if given.Gated[0].Reason != said || given.Gated[0].Facts.Verification.Reason != said || given.Reports[0].Reason != said {
		t.Errorf("what was given was changed: %+v", given)
	}
}
