package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
)

func TestDoctorNamesWhatProgramsCanRead(t *testing.T) {
	const text = "ledger: a.db\ndestinations:\n  files: {type: mcp, command: [node, a.js], contract: filesystem%s}\n  far: {type: mcp, url: 'https://a.example', contract: filesystem}\n"
	for name, c := range map[string]struct {
		user     string
		undumped bool
		want     []string
	}{
		"same user":  {"", true, []string{"ok memory", "warning programs: files"}},
		"other user": {", user: nobody", true, []string{"ok memory", "ok programs"}},
		"no Linux":   {", user: nobody", false, []string{"warning memory: DB_PASSWORD, SHOP_TOKEN", "ok programs"}},
	} {
		cfg, err := config.Read(name, []byte(fmt.Sprintf(text, c.user)), config.Environment{})
		if err != nil {
			t.Fatal(err)
		}
		e := &examination{}
		examinePrograms(e, cfg, c.undumped, []string{"SHOP_TOKEN=x", "PATH=/bin", "DB_PASSWORD=x"})
		var got []string
		for i, one := range e.Checks.Checks {
			line := string(one.State) + " " + one.Name
			if i < len(c.want) && line != c.want[i] && holdsAll(one, c.want[i], line) {
				line = c.want[i]
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	e := &examination{}
	if examinePrograms(e, config.Config{}, false, nil); len(e.Checks.Checks) > 0 {
		t.Errorf("no program is started: %+v", e.Checks.Checks)
	}
}

// holdsAll reports whether a check names what a line lists after its colon.
func holdsAll(c report.Check, want, line string) bool {
	names, ok := strings.CutPrefix(want, line+": ")
	return ok && (strings.Contains(c.What, names) || strings.Contains(c.Do, names))
}
