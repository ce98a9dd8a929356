package access_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/need"
)

var update = flag.Bool("update", false, "render docs/guide/people.md anew")

func TestDocument(t *testing.T) {
	acts := []struct {
		act   access.Act
		means string
	}{
		{access.Submit, "declare writes, begin sagas, gate steps"},
		{access.Read, "outcomes, sagas and destinations of their tenant"},
		{access.Trace, "intents, evidence and events of others' writes; search, activity, numbers"},
		{access.Decide, "about writes and steps that wait for a reviewer"},
		{access.Operate, "stop and release, release business operations, cancel and close sagas"},
	}
	roles := []engine.Role{engine.RoleAgent, engine.RoleReviewer, engine.RoleAuditor, engine.RoleOperator}
	var b strings.Builder
	b.WriteString("| act | what | agent | reviewer | auditor | operator |\n|---|---|---|---|---|---|\n")
	for _, a := range acts {
		fmt.Fprintf(&b, "| %s | %s |", a.act, a.means)
		for _, role := range roles {
			cell := " |"
			if (access.Identity{Tenant: "t", Role: role}).May(a.act) == nil {
				cell = " yes |"
			}
			b.WriteString(cell)
		}
		b.WriteString("\n")
	}
	need.Document(t, "../../docs/guide/people.md", "go test ./internal/access -run TestDocument -update", b.String(), *update)
}

func TestZeroIdentityMayDoNothing(t *testing.T) {
	for name, who := range map[string]access.Identity{
		"zero": {}, "no tenant": {Role: engine.RoleOperator}, "no role": {Tenant: "t"}, "another role": {Tenant: "t", Role: "root"},
	} {
		for _, act := range []access.Act{access.Submit, access.Read, access.Trace, access.Decide, access.Operate, ""} {
			if who.May(act) == nil {
				t.Errorf("%s may %q", name, act)
			}
		}
	}
	agent := access.Identity{Tenant: "t", Role: engine.RoleAgent}
	for _, act := range []access.Act{access.Trace, access.Decide, access.Operate} {
		if agent.May(act) == nil {
			t.Errorf("an agent may %s", act)
		}
	}
}
