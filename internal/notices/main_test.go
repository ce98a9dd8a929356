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
	all, err := linked(t.Context(), "../..")
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

func TestSystemsAreThoseOfTheMakefile(t *testing.T) {
	text, err := os.ReadFile("../../Makefile") // which a test holds against .goreleaser.yaml
	if err != nil || !strings.Contains(string(text), "for target in "+strings.Join(systems, " ")+"; do") {
		t.Errorf("make cross builds for other systems than %v: %v", systems, err)
	}
}
