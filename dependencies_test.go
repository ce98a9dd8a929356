package readback_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goList asks the go command for values of T, one JSON object after the other.
func goList[T any](t *testing.T, args ...string) []T {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off") // this module, without the adapters
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// row is what docs/maintain.md must say of a module.
type row struct{ version, released, importedBy string }

func TestDependencies(t *testing.T) {
	modules := goList[struct {
		Path, Version  string
		Main, Indirect bool
	}](t, "-m", "all")
	importedBy := map[string]map[string]bool{}
	for _, m := range modules {
		if !m.Main && !m.Indirect {
			importedBy[m.Path] = map[string]bool{}
		}
	}
	for _, f := range parsed(t) {
		for _, p := range f.imports(t) {
			of := "" // the longest: a module can lie within another one's path
			for path := range importedBy {
				if (p == path || strings.HasPrefix(p, path+"/")) && len(path) > len(of) {
					of = path
				}
			}
			if of != "" && !f.test {
				importedBy[of][f.dir] = true
			}
		}
	}
	rows, last := dependencyRows(t)
	for _, m := range modules {
		if importedBy[m.Path] == nil {
			continue
		}
		// The date is not compared: module proxies give different ones of one version.
		want := row{m.Version, rows[m.Path].released, "tests"}
		if where := slices.Sorted(maps.Keys(importedBy[m.Path])); len(where) > 0 {
			want.importedBy = strings.Join(where, ", ")
		}
		if rows[m.Path] != want {
			t.Errorf("docs/maintain.md has %+v of %s; want %+v", rows[m.Path], m.Path, want)
		}
		if last[m.Path] != "this one" && last[m.Path] != "not listed" && last[m.Path][strings.LastIndex(last[m.Path], " ")+1:] < want.released {
			t.Errorf("docs/maintain.md: the last release of %s, %s, is older than the version in use, of %s", m.Path, last[m.Path], want.released)
		}
		delete(rows, m.Path)
	}
	for path := range rows {
		t.Errorf("docs/maintain.md has a row of %s, which go.mod does not name", path)
	}
}

// dependencyRows reads the table, and each module's last release from it.
func dependencyRows(t *testing.T) (rows map[string]row, last map[string]string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("docs", "maintain.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, last = map[string]row{}, map[string]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 6 || !strings.Contains(cells[0], ".") {
			continue
		}
		path := strings.TrimSpace(cells[0])
		rows[path], last[path] = row{cells[1], cells[2], cells[4]}, cells[3]
		if strings.TrimSpace(cells[5]) == "" {
			t.Errorf("docs/maintain.md does not say why %s is needed", path)
		}
	}
	return rows, last
}

// TestOldModulesStayBehindJira holds that a program without the connector of Jira
// contains none of the old modules that go-jira brings.
func TestOldModulesStayBehindJira(t *testing.T) {
	old := []string{"github.com/fatih/structs", "github.com/golang-jwt/jwt/v4", "github.com/google/go-querystring", "github.com/pkg/errors", "github.com/trivago/tgo"}
	moduleOf := func(path string) string {
		for _, m := range append(old, "github.com/andygrunwald/go-jira") {
			if path == m || strings.HasPrefix(path, m+"/") {
				return m
			}
		}
		return ""
	}
	imported := map[string]bool{}
	for _, p := range goList[struct {
		ImportPath string
		Imports    []string
	}](t, "-deps", "./...") {
		for _, i := range p.Imports {
			if m := moduleOf(i); slices.Contains(old, m) {
				imported[m] = true
				if moduleOf(p.ImportPath) == "" {
					t.Errorf("%s imports %s; want it in github.com/andygrunwald/go-jira alone", p.ImportPath, i)
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(imported)); fmt.Sprint(got) != fmt.Sprint(old) {
		t.Errorf("these old modules are imported: %v; want %v. Correct docs/maintain.md and this list", got, old)
	}
}

// TestOnceHasNoDriver holds that a program with package once contains the heavy modules of its own
// store alone: the engine brings one, and the package none.
func TestOnceHasNoDriver(t *testing.T) {
	for _, p := range goList[struct{ ImportPath string }](t, "-deps", "./once") {
		for m := range heavy {
			if m != "github.com/DataDog/sketches-go" && strings.HasPrefix(p.ImportPath+"/", m+"/") {
				t.Errorf("package once brings %s", p.ImportPath)
			}
		}
	}
}
