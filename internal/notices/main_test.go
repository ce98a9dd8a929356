package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Everything that is linked into the command on any system is named with its licence,
// and the text is the same each time.
func TestNoticesOfThisProgram(t *testing.T) {
	all, err := linked(t.Context(), "../..", "./cmd/readback", systems...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := notices(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		_, part, ok := bytes.Cut(text, []byte("\n"+m.name+"\n\n--- "))
		if part, _, _ = bytes.Cut(part, []byte("\n"+strings.Repeat("=", 80)+"\n")); !ok || len(part) < 200 {
			t.Errorf("%s: %d bytes", m.name, len(part))
		}
	}
	var names []string
	for _, m := range all {
		name, _, _ := strings.Cut(m.name, " ")
		names = append(names, name)
	}
	for _, want := range []string{"Go", "github.com/spf13/cobra", "github.com/inconshreveable/mousetrap"} { // the last on Windows alone
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	if strings.Contains(strings.Join(names, " "), "readback") || strings.Contains(string(text), "/pkg/mod/") {
		t.Error("our own module, or a path of this machine, is among them")
	}
	slices.Reverse(all)
	for _, m := range all {
		slices.Reverse(m.packages)
	}
	again, err := notices(all)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("it is another text the second time: %v", err)
	}
}

func TestLicencesOfAModule(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"LICENSE", "NOTICE.txt", "licensed.go", "license.go", "a/b/COPYING", "a/c/LICENSE", "README.md"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := module{name: "m", dir: dir, packages: []string{dir, filepath.Join(dir, "a", "b")}}
	files, err := m.licences()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"LICENSE", "NOTICE.txt", filepath.Join("a", "b", "COPYING")}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := module{name: "m", dir: filepath.Join(dir, "a"), packages: []string{filepath.Join(dir, "a")}}
	if _, err := none.licences(); !errors.Is(err, errNone) {
		t.Errorf("a module without a licence: %v", err)
	}
}

// unlicensed are modules whose repositories contain no licence, and why they are tolerated.
var unlicensed = map[string]string{
	"github.com/nexus-rpc/nexus-proto-annotations": "one generated file that Temporal's API imports; docs/reference/rough-edges.md names it",
}

// Every module that a package of readback or of an adapter needs, also those that only
// embedders link, has an allowed licence.
func TestLicencesAreAllowed(t *testing.T) {
	modules, err := filepath.Glob("../../adapters/*/go.mod")
	if err != nil || len(modules) < 6 {
		t.Fatalf("%d adapters, %v", len(modules), err)
	}
	used, without := map[string]bool{}, map[string]bool{}
	for _, mod := range append(modules, "../../go.mod") {
		all, err := linked(t.Context(), filepath.Dir(mod), "./...", "linux/amd64", "windows/amd64")
		if err != nil || len(all) < 10 {
			t.Fatalf("%s: %d modules, %v", mod, len(all), err)
		}
		for _, m := range all {
			files, err := m.licences()
			path, _, _ := strings.Cut(m.name, " ")
			if unlicensed[path] != "" && errors.Is(err, errNone) {
				without[path] = true
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", mod, err)
			}
			var found []string
			for _, name := range files {
				text, err := os.ReadFile(filepath.Join(m.dir, name))
				if err != nil {
					t.Fatal(err)
				}
				ids, err := identify(name, text)
				if err != nil {
					t.Errorf("%s: %s: %v", mod, m.name, err)
				}
				found = append(found, ids...)
			}
			if len(found) == 0 {
				t.Errorf("%s: %s: no licence is recognised in %v", mod, m.name, files)
			}
			for _, id := range found {
				used[id] = true
			}
		}
	}
	for id := range allowed {
		if !used[id] {
			t.Errorf("%s is allowed, and no module has it", id)
		}
	}
	for path := range unlicensed {
		if !without[path] {
			t.Errorf("%s has a licence, or is not used", path)
		}
	}
}

func TestALicenceThatIsNotAllowed(t *testing.T) {
	const agpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU Affero General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n\n" +
		"This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU Affero General Public License for more details.\n\n" +
		"You should have received a copy of the GNU Affero General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.\n"
	for name, c := range map[string]struct {
		file, text string
		want       error
	}{
		"copyleft":          {"LICENSE", agpl, errNotAllowed},
		"in a list":         {"LICENSE-3RD-PARTY.md", "# Others\n\n" + agpl, errNotAllowed},
		"text of their own": {"sub/COPYING", "You may use this for good, not for evil.\n", errUnknown},
		"a notice":          {"NOTICE", "Copyright 2020 The Authors\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if ids, err := identify(filepath.FromSlash(c.file), []byte(c.text)); !errors.Is(err, c.want) {
				t.Errorf("%v, %v; want %v", ids, err, c.want)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, filepath.FromSlash(c.file))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(c.text), 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := notices([]module{{name: "m", dir: dir, packages: []string{filepath.Dir(path)}}}); !errors.Is(err, c.want) {
				t.Errorf("the text for releases: %v; want %v", err, c.want)
			}
		})
	}
}

func TestSystemsAreThoseOfTheMakefile(t *testing.T) {
	text, err := os.ReadFile("../../Makefile") // which a test holds against .goreleaser.yaml
	if err != nil || !strings.Contains(string(text), "for target in "+strings.Join(systems, " ")+"; do") {
		t.Errorf("make cross builds for other systems than %v: %v", systems, err)
	}
}
