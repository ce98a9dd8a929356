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
		"not known":   {connectors.Scope{From: noon, Until: noon}, time.Time{}, true, "what is unknown is listed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.scope.Holds(c.at); got != c.want {
				t.Errorf("%t, want %t: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestScopeOf(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	before, within, after := noon.Add(-time.Hour), noon.Add(time.Minute), noon.Add(2*time.Hour)
	scope := connectors.Scope{From: noon, Until: noon.Add(time.Hour)}
	var none time.Time
	for name, c := range map[string]struct {
		created, changed time.Time
		in, sure         bool
		reason           string
	}{
		"changed before":                 {none, before, false, true, "it is older"},
		"changed within":                 {none, within, true, true, "something happened then"},
		"changed after":                  {none, after, true, false, "it may have been made then, and changed once more"},
		"created within, changed after":  {within, after, true, true, "it was made then"},
		"created after":                  {after, after, false, true, "it was not there yet"},
		"created before, changed after":  {before, after, true, false, "it may have been changed in between"},
		"created before, changed within": {before, within, true, true, "it was changed then"},
		"nothing declared":               {none, none, true, false, "what is unknown is listed"},
	} {
		t.Run(name, func(t *testing.T) {
			in, sure := scope.Of(connectors.Listed{Created: c.created, Changed: c.changed})
			if in != c.in || sure != c.sure {
				t.Errorf("in %t, sure %t; want %t, %t: %s", in, sure, c.in, c.sure, c.reason)
			}
		})
	}
	if in, sure := (connectors.Scope{}).Of(connectors.Listed{}); !in || !sure {
		t.Error("without bounds nothing is left out")
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
