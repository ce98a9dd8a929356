// Package need is what tests need from the machine: programs, packages of npm
// for servers, clients and checkers that are not ours, and time. What is missing
// leaves a test out, with the reason, and fails it where nothing may be left out.
// A run with -short tries a part of each long suite, and leaves the longest tests
// out where that is allowed. [Document] compares a page with what renders it. It
// ships nothing, and knows of a package only what its lock file says.
package need

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ErrMissing is wrapped when something cannot be had on this machine.
var ErrMissing = errors.New("it cannot be had on this machine")

// patience is how long npm may take: it may have to fetch them.
const patience = 3 * time.Minute

// Install installs what package.json and package-lock.json of a folder name, in
// exactly these versions, below dir. No script of a package is run.
func Install(folder, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("packages of npm: %w: %w: %s", ErrMissing, err, out)
	}
	return nil
}

// strict reports whether nothing may be left out: READBACK_STRICT is 1.
func strict() bool { return os.Getenv("READBACK_STRICT") == "1" }

// Long leaves a test that takes long, or starts other programs, out of a short
// run, with the reason. Where nothing may be left out it runs.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() && !strict() {
		tb.Skip("skipped: -short leaves out what takes long or starts other programs")
	}
}

// OneIn is how many cases of a suite there are to one that is tried: one, so that
// all are, and n with -short. Cases lie in tables whose rows have equal lengths: an
// n that shares no divisor with these lengths meets each row and each column.
func OneIn(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// Have ends a test that something is missing for: skipped, with the reason; where
// nothing may be left out, and for any error but [ErrMissing], failed.
func Have(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && !strict():
		tb.Skipf("skipped: %v", err)
	default:
		tb.Fatal(err)
	}
}

// Program is the path of a program, without which the test ends as with [Have].
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Have(tb, fmt.Errorf("%s: %w: %w", name, ErrMissing, err))
	}
	return path
}

// Document compares the text between the line "rendered by" and the line "end" (or the end of
// the file) with rendered, and fails the test where they differ. With update it writes the file
// anew. by is the command that updates it.
func Document(t *testing.T, path, by, rendered string, update bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("<!-- rendered by %s: do not edit below -->\n", by)
	prose, old, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s lacks the line %q", path, mark)
	}
	old, rest, ended := strings.Cut(old, "\n<!-- end -->\n")
	if ended {
		rest = "\n<!-- end -->\n" + rest
	}
	if update {
		if err := os.WriteFile(path, []byte(prose+mark+"\n"+rendered+rest), 0o644); err != nil { //nolint:gosec // a document is for everybody to read
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(old), "\n"), strings.Split(strings.TrimSpace(rendered), "\n")); diff != "" {
		t.Errorf("%s does not agree; check the difference, then %s (-document +rendered):\n%s", path, by, diff)
	}
}
