package eval

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// A value marked as sensitive is not in a report, which a build stores.
func TestSensitiveValuesAreNotReported(t *testing.T) {
	at := target{profile: connectors.Profile{Sensitive: []string{"/iban"}}, intent: intent.WriteIntent{Sensitive: []string{"/card/number"}},
		members: []member{{intent: intent.WriteIntent{Sensitive: []string{"/pin"}}}}}
	for path, want := range map[string]struct {
		hides  bool
		reason string
	}{
		"/iban":          {true, "the destination marks it"},
		"/card/number":   {true, "the intent does"},
		"/card":          {true, "it holds it"},
		"/card/number/1": {true, "it is a part of it"},
		"/pin":           {true, "another write of the same record does"},
		"/pink":          {false, "it only begins like it"},
		"/amount":        {false, "it is not marked"},
	} {
		got := at.differ([]verify.Mismatch{{Path: path, Problem: verify.Differs, Want: "canary one", Got: "canary two"}})
		if hides := !strings.Contains(got, "canary"); hides != want.hides || !strings.HasPrefix(got, path) {
			t.Errorf("%q: %s", got, want.reason)
		}
	}
}
