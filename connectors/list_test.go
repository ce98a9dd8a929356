package connectors_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

func TestScopeHolds(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		scope  connectors.Scope
		at     time.Time
		want   bool
		reason string
	}{
		"no bounds":   {connectors.Scope{}, noon, true, "all of it is asked for"},
		"at the ends": {connectors.Scope{From: noon, Until: noon}, noon, true, "both ends belong to it"},
		"before":      {connectors.Scope{From: noon}, noon.Add(-1), false, "it is older"},
		"after":       {connectors.Scope{Until: noon}, noon.Add(1), false, "it is younger"},
		"not known":   {connectors.Scope{From: noon, Until: noon}, time.Time{}, true, "what cannot be told is listed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.scope.Holds(c.at); got != c.want {
				t.Errorf("%t, want %t: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestIsStamp(t *testing.T) {
	ours := intent.WriteIntent{Tenant: "t", Workflow: "w", Tool: "x"}.Stamp()
	for text, want := range map[string]bool{
		ours: true, "": false, "rb-short": false, ours + "x": false, "x" + ours: false, "rb-" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567": false,
	} {
		if got := connectors.IsStamp(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
